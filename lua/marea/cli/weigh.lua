-- marea weigh: what every rank, sequence and position weighs under each objective.

local arguments = require "marea.cli.arguments"
local json = require "marea.json"
local plan = require "marea.plan"
local prepare = require "marea.prepare"
local recipe_of = require "marea.recipe"
local run_of = require "marea.run"
local probe = require "marea.probe"
local together = require "marea.together"
local weigh = require "marea.weigh"
local weigh_text = require "marea.weigh_text"
local world_of = require "marea.world"

local failed = 3

local function define(parser)
  arguments.recipe(parser)
  arguments.step(parser)
  parser:flag("--measured", "Measure what the recipe's own loop weighs with, on the planned ranks.")
  parser:flag("--positions", "Also print the weight of every supervised position.")
end

-- All ranks run the loop; rank 0 judges.
local function measure(recipe, step, prepared)
  local measured = probe.measure(recipe, step, prepared)
  local verdict = probe.judge(measured)
  verdict.sequences, verdict.ranks = measured.sequences, weigh.ranks(measured)
  return verdict
end

local function run_command(options)
  local world = world_of.get()
  local recipe = recipe_of.require(options.recipe, options.settings, world:size())
  if options.measured then recipe:require_ranks(world:size()) end
  local prepared = prepare.make(recipe, world)
  plan.require_step(prepared.plan, options.step)
  local run <close> = run_of.open {
    outputs = options.outputs, name = options.run or recipe.name, way = "any", world = world,
  }
  local verdict = options.measured and measure(recipe, options.step, prepared) or nil
  together.on_root(world, function()
    local report = weigh.recipe(recipe, options.step, prepared)
    report.measured = verdict
    json.write(run:path("weigh.json"), report)
    print(options.json and json.encode(report) or weigh_text.of(report, options.positions))
  end)
  return (not verdict or verdict.pass) and 0 or failed
end

---@type marea.Command
return {
  name = "weigh",
  summary = "Show the weight of every rank, sequence and position under each objective.",
  example = "marea weigh recipes/minimum.lua objective=per_sequence",
  define = define,
  run = run_command,
}
