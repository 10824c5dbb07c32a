-- marea export: the weights of a checkpoint as a tensor file of their own.

local checkpoint = require "marea.checkpoint"
local core = require "marea.core"
local evaluate = require "marea.evaluate"
local fault = require "marea.fault"
local find_checkpoint = require "marea.cli.find_checkpoint"
local json = require "marea.json"
local recipe_of = require "marea.recipe"
local together = require "marea.together"
local weights = require "marea.weights"
local world_of = require "marea.world"

-- outputs/NAME of outputs/NAME/checkpoints/step-000050, where it lies in a run; else itself.
local function run_of_checkpoint(folder)
  return folder:match("^(.*)/checkpoints/[^/]+$") or folder
end

-- The tensors of a checkpoint that is verified, and what is said of them.
local function read(folder)
  local opened = checkpoint.open(folder)
  local parameters <close> = opened.parameters
  opened.optimizer:close()
  local list = {}
  for i, name in ipairs(parameters:names()) do list[i] = { name, parameters:tensor(name) } end
  return list, {
    run = opened.manifest.run, update = ("%d"):format(opened.manifest.update),
    corpus = opened.state.lock.corpus, config = json.encode(opened.state.lock.config.values),
    marea = require "marea.version",
  }
end

-- With a recipe the checkpoint must fit its model and its corpus.
local function check_recipe(options, world)
  local recipe = recipe_of.require(options.source, options.settings, world:size())
  local session = evaluate.session(recipe, world)
  local own = options.outputs .. "/" .. (options.run or recipe.name)
  local folder = together.on_root(world, function()
    return find_checkpoint(options.outputs, options.checkpoint or "latest", own)
  end)
  evaluate.load(session, folder)
  return folder
end

local function text(result)
  return ("%s: %d tensors, %d parameters, %s, of %s"):format(
    result.file, result.tensors, result.parameters, result.dtype, result.checkpoint)
end

-- Weights that were exported before make room; another file is somebody's.
local function refuse_foreign(path, options)
  if options.force or not core.file.exists(path) then return end
  local good, about = pcall(function()
    local file <close> = core.safetensors.open(path)
    return file:metadata()
  end)
  if good and about.kind == weights.kind then return end
  fault.raise_at(2, "", "%s is there and is no earlier export; --force overwrites it", path)
end

local function write(options, folder)
  local path = options.to or run_of_checkpoint(folder) .. "/weights.safetensors"
  refuse_foreign(path, options)
  local list, metadata = read(folder)
  weights.write(path, list, { dtype = options.dtype, metadata = metadata })
  local count = 0
  for _, item in ipairs(list) do count = count + item[2]:count() end
  local result = { file = path, checkpoint = folder, tensors = #list, parameters = count,
                   dtype = options.dtype or list[1] and list[1][2]:dtype(),
                   sha256 = core.file.sha256_of(path) }
  print(options.json and json.encode(result) or text(result))
end

local function run_command(options)
  local world = world_of.get()
  local folder
  if options.source:find("%.lua$") then
    folder = check_recipe(options, world)
  elseif #options.settings > 0 then
    fault.raise_at(2, "", "export: key=value is for a recipe, and %s is a run", options.source)
  end
  together.on_root(world, function()
    folder = folder or find_checkpoint(options.outputs, options.checkpoint or options.source,
                                       options.outputs .. "/" .. options.source)
    write(options, folder)
  end)
  return 0
end

---@type marea.Command
return {
  name = "export",
  summary = "Write the weights of a checkpoint as safetensors, for other tools.",
  example = "marea export recipes/minimum.lua --to minimum.safetensors",
  define = function(parser)
    parser:argument("source", "A recipe's file (checked against the checkpoint), a run or a " ..
                    "checkpoint."):argname("RECIPE.lua|RUN")
    parser:argument("settings", "key=value for the recipe's config."):args("*")
    parser:option("--checkpoint", "A checkpoint's folder, or 'latest' (the default).")
      :argname("FOLDER")
    parser:option("--to", "The file (default: weights.safetensors in the run's folder).")
      :argname("FILE")
    parser:flag("--force", "Overwrite a file that is no earlier export.")
    parser:option("--dtype", "f32, f64 or bf16 (default: the checkpoint's)."):choices {
      "f32", "f64", "bf16" }
  end,
  run = run_command,
}
