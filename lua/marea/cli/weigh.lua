-- marea weigh: what every rank, sequence and position weighs under each objective.

local core = require "marea.core"
local json = require "marea.json"
local prepare = require "marea.prepare"
local recipe_of = require "marea.recipe"
local run_of = require "marea.run"
local together = require "marea.together"
local weigh = require "marea.weigh"
local weigh_text = require "marea.weigh_text"
local world_of = require "marea.world"

local function define(parser)
  parser:argument("recipe", "The recipe's file."):argname("RECIPE.lua")
  parser:argument("overrides", "Config values."):args("*"):argname("key=value")
  parser:option("--step", "Which update's window (default: 1)."):argname("K")
    :convert(math.tointeger)
  parser:flag("--positions", "Also print the weight of every supervised position.")
end

local function run_command(options)
  local world = world_of.get()
  local recipe = recipe_of.require(options.recipe, options.overrides, world:size())
  local prepared = prepare.make(recipe, world)
  local run <close> = run_of.open {
    outputs = options.outputs, name = options.run or recipe.name, way = "any", world = world,
  }
  together.on_root(world, function()
    local report = weigh.recipe(recipe, options.step or 1, {
      world = world, corpus = prepared.corpus, plan = prepared.plan })
    core.file.write(run:path("weigh.json"), json.encode(report, { indent = true }) .. "\n")
    print(options.json and json.encode(report) or weigh_text.of(report, options.positions))
  end)
  return 0
end

return {
  name = "weigh",
  summary = "Show the weight of every rank, sequence and position under each objective.",
  example = "marea weigh recipes/minimum.lua objective=per_sequence",
  define = define,
  run = run_command,
}
