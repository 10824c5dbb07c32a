-- A training that does not take place: what it would read, hold and write. Nothing is written.
--
-- Memory is measured, not guessed: the heaviest windows of the plan go through the recipe's own
-- loop, forward, backward and step, with the collector stopped. To that comes what a run holds
-- beside it: each update leaves a few hundred handles to the collector, which comes when Lua's heap
-- has doubled.

local batch = require "marea.batch"
local core = require "marea.core"
local evaluate = require "marea.evaluate"
local json = require "marea.json"
local prepare = require "marea.prepare"
local run_of = require "marea.run"
local Session = require "marea.session"
local state_of = require "marea.state"
local training = require "marea.training"

local dry_run = {}

local most_handles = 64 << 20 -- bytes; the engine has them collected when there are more

---@class marea.DryRun
---@field run string the run's folder
---@field moved_to? string where an older run would go
---@field held_by? string who uses the folder
---@field first integer the first update that would be done
---@field last integer the last one
---@field plan marea.DryPlan
---@field tokens integer[] supervised positions of each rank, over all updates
---@field dtype string
---@field parameters {name: string, shape: integer[], count: integer}[]
---@field count integer of all parameters
---@field memory marea.DryMemory bytes of a rank
---@field files string[] in the run's folder, without checkpoints
---@field checkpoints {updates: integer[], keep: integer, bytes: integer}

---@class marea.DryPlan
---@field updates integer
---@field ranks integer
---@field accumulation integer
---@field batch_size_per_rank integer

---@class marea.DryMemory
---@field peak integer the most that a rank holds
---@field parameters integer
---@field gradients integer
---@field optimizer integer
---@field updates integer[] on which it was measured

-- --- the plan -----------------------------------------------------------------------------------

local function each_microbatch(session, visit)
  for update, window in ipairs(session.plan) do
    for r, microbatches in ipairs(window) do
      for _, ids in ipairs(microbatches) do visit(update, r, ids) end
    end
  end
end

local function tokens_of(session)
  local tokens = {}
  for r = 1, session.config.ranks do tokens[r] = 0 end
  each_microbatch(session, function(_, r, ids)
    for _, id in ipairs(ids) do tokens[r] = tokens[r] + session.corpus:sequence(id).tokens end
  end)
  return tokens
end

-- Rows of a microbatch, and what attention within its sequences grows with.
local function weights_of(session, ids)
  local rows, longest, squares = 0, 0, 0
  for _, id in ipairs(ids) do
    local length = session.corpus:sequence(id).length
    rows, longest = rows + length, math.max(longest, length)
    squares = squares + length * length
  end
  if session.config.layout == "padded" then
    return #ids * longest, #ids * longest * longest
  end
  return rows, squares
end

-- The places {update, rank} of the heaviest microbatches among the updates first to last.
local function heaviest(session, first, last)
  local best = { { weight = -1 }, { weight = -1 } }
  each_microbatch(session, function(update, r, ids)
    if update < first or update > last then return end
    for kind, weight in ipairs { weights_of(session, ids) } do
      if weight > best[kind].weight then
        best[kind] = { weight = weight, update = update, rank = r - 1 }
      end
    end
  end)
  if best[1].update == best[2].update and best[1].rank == best[2].rank then best[2] = nil end
  return best
end

-- --- memory -------------------------------------------------------------------------------------

-- What the lines of a run's three logs leave in Lua's heap.
local function encode_lines(session, window, norm)
  local line = { update = window.step, objective = session.config.objective, tokens = window.tokens,
                 rank_tokens = window.rank_tokens, loss_per_token = norm, grad_norm = norm,
                 lr = session.optimizer.lr, parameter_spread = 0, ms = norm, bytes_sent = 0,
                 tokens_per_second = norm }
  for _ = 1, 3 do json.encode(line) end
end

-- One update as a run does it. A single process plays the rank of the place.
local function try(session, place)
  if session.world:size() == 1 then session.rank = place.rank end
  local window = session:window(place.update)
  session.statistics = {}
  session:accumulate(window)
  encode_lines(session, window, session.model.unit:norm())
  session.optimizer:step(session.optimizer.lr)
  window:release()
end

-- The peak of one update in a heap without garbage; what it leaves to the collector, and by how
-- much Lua's heap grows, both in bytes.
local function measure(session, place)
  collectgarbage()
  local heap, live = collectgarbage "count", core.memory().live
  collectgarbage "stop"
  core.memory_reset_peak()
  local good, problem = pcall(try, session, place)
  local peak, left = core.memory().peak, core.memory().live - live
  local grown = (collectgarbage "count" - heap) * 1024
  collectgarbage "restart"
  if not good then error(problem, 0) end
  return peak, left, grown
end

-- What saving takes beside the model: views of all tensors, and the pieces in which files are
-- hashed.
local function measure_save(session)
  local live = core.memory().live
  core.memory_reset_peak()
  local views = state_of.parameters(session.model)
  local optimizer = state_of.optimizer(session.model, session.optimizer)
  table.move(optimizer, 1, #optimizer, #views + 1, views)
  session.model:values():hash()
  core.file.sha256_of(session.recipe.path)
  local most = core.memory().peak - live
  for _, view in ipairs(views) do batch.end_tensor(view[2]) end
  return most
end

local function measure_evaluation(session)
  if not session.config.evaluate_every or #session.corpus:rows("validation") == 0 then return 0 end
  collectgarbage()
  core.memory_reset_peak()
  evaluate.split(session, "validation")
  return core.memory().peak
end

local function most_of_ranks(world, bytes)
  local all = world:all_gather(core.host.from({ bytes }, "i64", { 1 })):values()
  return math.tointeger(math.max(table.unpack(all)))
end

-- The peak of this start's updates on the rank that needs most.
local function peak_of(session, first, last, places)
  local peak = core.memory().peak -- of making corpus, plan and model
  if #places > 0 then try(session, places[1]) end -- makes what is made once
  collectgarbage()
  local heap = collectgarbage "count" * 1024
  for _, place in ipairs(places) do
    local need, left, grown = measure(session, place)
    local updates = math.min(last - first + 1, heap / math.max(grown, 1))
    local handles = math.min(most_handles, math.floor(math.max(left, 0) * updates))
    collectgarbage()
    local saving = core.memory().live + measure_save(session)
    peak = math.max(peak, handles + math.max(need, saving))
  end
  peak = math.max(peak, measure_evaluation(session))
  return most_of_ranks(session.world, peak)
end

local function memory_of(session, first, last)
  local dtype, count = session.config.dtype, session.model:values():count()
  local width = dtype == "f64" and 8 or 4
  local held, state = count * width, 0
  for _, flat in pairs(session.optimizer:state()) do state = state + flat:count() * width end
  local places, updates = heaviest(session, first, last), {}
  if places[1].weight < 0 then places = {} end
  for i, place in ipairs(places) do updates[i] = place.update end
  local copy = dtype == "bf16" and count * 2 or 0
  return { parameters = held + copy, gradients = held, optimizer = state, updates = updates,
           peak = peak_of(session, first, last, places) }
end

-- --- files --------------------------------------------------------------------------------------

local function files_of(session)
  local files = { "run.json", "metrics.jsonl", "corpus.safetensors", "corpus-card.json",
                  "plan.json", "lock.json" }
  for rank = 0, session.config.ranks - 1 do files[#files + 1] = ("rank-%d.jsonl"):format(rank) end
  return files
end

local function checkpoints_of(session, first, last, memory)
  local config, updates = session.config, {}
  for update = first, last do
    if update == last or config.save_every and update % config.save_every == 0 then
      updates[#updates + 1] = update
    end
  end
  return { updates = updates, keep = config.keep, bytes = memory.parameters + memory.optimizer }
end

local function parameters_of(session)
  local list = {}
  for i, range in ipairs(session.model.unit:ranges()) do
    list[i] = { name = range.name, shape = json.array(range.shape), count = range.count }
  end
  return list
end

-- --- the whole ----------------------------------------------------------------------------------

-- As for training; one process may look at a recipe of several ranks.
local function open(recipe, world)
  if world:size() > 1 then return training.session(recipe, world) end
  local prepared = prepare.make(recipe, world)
  return Session.open(recipe, { world = world, corpus = prepared.corpus,
                                plan = prepared.plan }):build(), prepared
end

--- What training a recipe would do. All ranks call it; nothing is written.
--- Errors: as training.run up to the first update; what callbacks raise.
---@param recipe marea.Recipe
---@param world marea.World
---@param options marea.TrainOptions
---@return marea.DryRun result
function dry_run.of(recipe, world, options)
  training.check_options(options)
  training.target(recipe.config, options, 0)
  local session, prepared = open(recipe, world)
  if options.init then training.begin_with(session, prepared, options.init) end
  local place = run_of.preview(options.outputs or "outputs", options.name or recipe.name)
  local at, own = 0, false
  if options.resume then at, own = training.look_at_resume(session, prepared, options) end
  local last = training.target(recipe.config, options, at)
  local memory = memory_of(session, at + 1, last)
  return {
    run = place.folder, moved_to = not own and place.moved_to or nil, held_by = place.held_by,
    first = at + 1, last = last, tokens = tokens_of(session), dtype = recipe.config.dtype,
    plan = { updates = #session.plan, ranks = recipe.config.ranks,
             accumulation = recipe.config.accumulation,
             batch_size_per_rank = recipe.config.batch_size_per_rank },
    parameters = parameters_of(session), count = session.model:count(), memory = memory,
    files = files_of(session), checkpoints = checkpoints_of(session, at + 1, last, memory),
  }
end

return dry_run
