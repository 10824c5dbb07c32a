-- marea prepare: corpus, corpus card, plan and lock of a recipe, into its run's folder.

local arguments = require "marea.cli.arguments"
local card = require "marea.corpus.card"
local json = require "marea.json"
local prepare = require "marea.prepare"
local recipe_of = require "marea.recipe"
local run_of = require "marea.run"
local world_of = require "marea.world"

local function run_command(options)
  local world = world_of.get()
  local recipe = recipe_of.require(options.recipe, options.settings, world:size())
  local prepared = prepare.make(recipe, world)
  local run <close> = run_of.open {
    outputs = options.outputs, name = options.run or recipe.name, way = "any", world = world,
  }
  prepared.lock.init = prepare.refuse_other_lock(run, prepared)
  local record = prepare.write(run, prepared)
  if run:writes() then
    if options.json then
      print(json.encode(record))
    else
      print(card.text(record))
      print(("written     %s: corpus.safetensors, corpus-card.json, plan.json, lock.json")
        :format(run.folder))
    end
  end
  return 0
end

---@type marea.Command
return {
  name = "prepare",
  summary = "Write a recipe's corpus, corpus card, plan and lock.",
  example = "marea prepare recipes/minimum.lua seed=3",
  define = arguments.recipe,
  run = run_command,
}
