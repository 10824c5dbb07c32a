-- marea bench: how fast a recipe's training step is, beside its matrix products alone and PyTorch.
-- Without a recipe: what a GPU makes of the minimum recipe and GPT-2's smallest model.

local bench = require "marea.bench"
local core = require "marea.core"
local device_of = require "marea.device"
local fault = require "marea.fault"
local json = require "marea.json"
local recipe_of = require "marea.recipe"
local run_of = require "marea.run"
local together = require "marea.together"
local world_of = require "marea.world"

local function seconds(text)
  local value = tonumber(text)
  if not value or not (value > 0 and value <= 3600) then
    return nil, ("--seconds must be a number above 0, at most 3600, got %s"):format(text)
  end
  return value
end

local device_seconds = 235 -- for all subjects of a bench without a recipe
local ceilings = { cpu = 1024, gpu = 8192 }

local function extent(text)
  local value = math.tointeger(tonumber(text))
  if not value or value < 1 or value > 65536 then
    return nil, ("--ceiling must be a whole number from 1 to 65536, got %s"):format(text)
  end
  return value
end

local function define(parser)
  parser:argument("recipe", "The recipe's file; without one, what --device cuda makes of " ..
                  "recipes/minimum.lua and GPT-2 124M in f32 and bf16."):args("?")
  parser:argument("settings", "key=value for the recipe's config."):args("*")
  parser:option("--against", "A peer to take turns with."):argname("torch"):choices { "torch" }
  parser:flag("--profile", "Also where the time goes, by operation.")
  parser:flag("--collectives", "Also all-reduces by size, means and overlap, on several ranks.")
  parser:flag("--scaling", "Also a rank's share by itself beside all ranks together.")
  parser:flag("--growth", "Also what a token costs by length, width and number of sequences.")
  parser:flag("--operations", "Also what small recorded operations cost, called from Lua.")
  parser:flag("--instructions", "Also instructions of an update, counted by valgrind.")
  parser:flag("--whole-run", "Only whole trainings on the planned ranks, with start-up.")
  parser:option("--seconds", "How long turns are taken."):argname("N"):convert(seconds)
    :default "20"
  parser:option("--ceiling", "Extent of the large product (default: 1024, on GPUs 8192).")
    :argname("N"):convert(extent)
  parser:option("--sizes", "Without a recipe: full, or tiny, which shows that it runs.")
    :choices { "full", "tiny" }
end

local function find_torch()
  local torch = require "marea.bench.torch"
  local interpreter = torch.find()
  if not interpreter then
    fault.raise_at(4, "", "--against torch: no python3 here can import torch; on Debian it is " ..
                   "the package python3-torch")
  end
  return torch, interpreter
end

-- PyTorch on the same GPU, eager and compiled; what it lacks is said.
local function start_gpu_peers(session, ranks)
  if ranks > 1 then
    fault.raise_at(2, "", "--against torch compares one rank on a GPU: marea bench ...")
  end
  local torch, interpreter = find_torch()
  local peers = {}
  for _, compile in ipairs { false, true } do
    local peer, reason = torch.on_gpu(interpreter, session, compile)
    peers[#peers + 1] = peer
    if not peer then
      io.stderr:write(("marea: no %s PyTorch beside this: %s\n"):format(
        compile and "compiled" or "eager", reason))
    end
  end
  return peers
end

-- PyTorch on as many cores as this run has: in one process, and as one process a core.
local function start_peers(session)
  if core.device().name ~= "cpu" then return start_gpu_peers(session, session.world:size()) end
  local torch, interpreter = find_torch()
  local cores = session.world:size() * core.device().threads
  local peers = { torch.start(interpreter, session, 1, cores) }
  if cores > 1 then peers[#peers + 1] = torch.start(interpreter, session, cores, 1) end
  if not peers[1] then
    fault.raise_at(2, "", "--against torch: no rank of PyTorch would have a sequence in each " ..
                   "microbatch")
  end
  return peers
end

local function complete(record, recipe, options, world)
  local device = core.device()
  record.recipe, record.config = recipe.name, require("marea.config").values(recipe.config)
  record.ranks, record.threads, record.seconds = world:size(), device.threads, options.seconds
  record.machine = { host = core.process.host(), cores = core.process.cores(), blas = device.blas,
                     instruction_set = device.instruction_set }
  record.date = os.date "!%Y-%m-%dT%H:%M:%SZ"
  record.marea = require "marea.version"
  return record
end

local function measure_operations(options)
  local operations = require "marea.bench.operations"
  if not options.against then return operations.measure() end
  local torch, interpreter = find_torch()
  local peer <close> = torch.operations(interpreter, operations.names, operations.side)
  return operations.measure(peer)
end

local function measure_instructions(options)
  local words = { options.recipe, table.unpack(options.settings) }
  local found = require("marea.bench.instructions").measure(words)
  if not found then
    io.stderr:write "marea: no valgrind here, so no instructions are counted\n"
  end
  return found
end

local function measure_whole(options, recipe)
  local peer
  if options.against then
    local torch, interpreter = find_torch()
    peer = torch.whole(interpreter, require("marea.session").open(recipe):build())
  end
  local words = { options.recipe, table.unpack(options.settings) }
  return { whole_run = require("marea.bench.whole").measure(recipe, words, peer) }
end

-- Refuses, with code 2, what does not go with this number of ranks.
local function check_ranks(options, ranks)
  for _, name in ipairs { "collectives", "scaling" } do
    if options[name] and ranks == 1 then
      fault.raise_at(2, "", "--%s measures between ranks: marea launch -n 2 bench ...", name)
    end
  end
  for _, name in ipairs { "operations", "instructions", "whole_run" } do
    if options[name] and ranks > 1 then
      fault.raise_at(2, "", "--%s is for one process, which starts what it needs: marea bench ...",
                     (name:gsub("_", "-")))
    end
  end
end

-- Refuses, with code 2, what would not be measured beside whole trainings.
local function check_whole(options)
  for _, name in ipairs { "profile", "collectives", "scaling", "growth", "operations",
                          "instructions" } do
    if options[name] then
      fault.raise_at(2, "", "--whole-run measures trainings only: give --%s to a bench of its own",
                     name)
    end
  end
end

local function measure(options, recipe, world)
  if options.whole_run then return measure_whole(options, recipe) end
  -- first, as in a program of its own: what is loaded later makes each collection take longer
  local operations = options.operations and measure_operations(options) or nil
  local record = bench.measure(recipe, world, {
    seconds = options.seconds, profile = options.profile, collectives = options.collectives,
    scaling = options.scaling,
    growth = options.growth,
    ceiling = options.ceiling or ceilings[core.device().name == "cpu" and "cpu" or "gpu"],
    peers = options.against and start_peers })
  record.operations = operations
  if options.instructions then record.instructions = measure_instructions(options) end
  return record
end

local function write(run, record, as_json)
  core.file.write(run:path "bench.json", json.encode(record, { indent = true }) .. "\n")
  print(as_json and json.encode(record) or require("marea.bench.text").of(record))
end

-- Refuses, with code 2, what goes with a recipe only.
local function check_device(options, ranks)
  local asked = device_of.asked()
  if not asked or not asked:find "^cuda" then
    fault.raise_at(2, "", "bench: name a recipe, or --device cuda to measure a GPU")
  end
  for _, name in ipairs { "profile", "collectives", "scaling", "growth", "operations",
                          "instructions", "whole_run", "ceiling" } do
    if options[name] then
      fault.raise_at(2, "", "--%s needs a recipe", (name:gsub("_", "-")))
    end
  end
  if ranks > 1 then
    fault.raise_at(2, "", "without a recipe bench is for one process: marea bench --device cuda")
  end
end

-- The GPU by itself: PyTorch is beside it where it is found.
local function run_device(options, world)
  check_device(options, world:size())
  local against = options.against and find_torch() or require("marea.bench.torch").find()
  if not against then io.stderr:write "marea: no python3 here can import torch\n" end
  local run <close> = run_of.open {
    outputs = options.outputs, name = options.run or "device", way = "any", world = world }
  local record, code = require("marea.bench.device").measure(
    options.sizes or "full", against ~= nil, device_seconds)
  record.date, record.marea = os.date "!%Y-%m-%dT%H:%M:%SZ", require "marea.version"
  write(run, record, options.json)
  return code
end

local function run_command(options)
  local world = world_of.get()
  if not options.recipe then return run_device(options, world) end
  if options.sizes then fault.raise_at(2, "", "--sizes is for bench without a recipe") end
  local recipe = recipe_of.require(options.recipe, options.settings, world:size())
  check_ranks(options, world:size())
  if options.whole_run then check_whole(options) end
  local run <close> = run_of.open {
    outputs = options.outputs, name = options.run or recipe.name, way = "any", world = world }
  local record = measure(options, recipe, world)
  together.on_root(world, function()
    complete(record, recipe, options, world)
    write(run, record, options.json)
  end)
  return 0
end

---@type marea.Command
return {
  name = "bench",
  summary = "Measure a recipe's training step beside its matrix products alone, and PyTorch.",
  example = "marea bench recipes/gpt.lua size=M --against torch --profile, or marea bench " ..
    "--device cuda",
  define = define,
  run = run_command,
}
