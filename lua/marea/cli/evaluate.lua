-- marea evaluate: loss per token and token accuracy of a checkpoint on a split.

local arguments = require "marea.cli.arguments"
local evaluate = require "marea.evaluate"
local find_checkpoint = require "marea.cli.find_checkpoint"
local json = require "marea.json"
local recipe_of = require "marea.recipe"
local run_of = require "marea.run"
local together = require "marea.together"
local world_of = require "marea.world"

local function text(result)
  return ("%s: %s split, %d sequences, %d tokens: loss %.5f a token%s"):format(
    result.checkpoint, result.split, result.sequences, result.tokens, result.loss,
    result.accuracy and (", accuracy %.2f %%"):format(100 * result.accuracy) or "")
end

local function run_command(options)
  local world = world_of.get()
  local recipe = recipe_of.require(options.recipe, options.settings, world:size())
  local run <close> = run_of.open {
    outputs = options.outputs, name = options.run or recipe.name, world = world, beside = true,
    way = options.checkpoint == "latest" and "existing" or "any" }
  local session = evaluate.session(recipe, world)
  local folder = together.on_root(world, function()
    return find_checkpoint(options.outputs, options.checkpoint, run.folder)
  end)
  evaluate.load(session, folder)
  local result = evaluate.split(session, options.split)
  result.checkpoint = folder
  together.on_root(world, function()
    json.write(run:path("evaluate.json"), result)
    print(options.json and json.encode(result) or text(result))
  end)
  return 0
end

---@type marea.Command
return {
  name = "evaluate",
  summary = "Loss per token and token accuracy of a checkpoint on a split.",
  example = "marea evaluate recipes/minimum.lua --split test",
  define = function(parser)
    arguments.recipe(parser)
    parser:option("--checkpoint", "A checkpoint, a run, or 'latest' of the recipe's run.", "latest")
      :argname("FOLDER")
    parser:option("--split", "train, validation or test.", "test")
      :choices { "train", "validation", "test" }
  end,
  run = run_command,
}
