-- marea reference: the gradient of a window's declared objective by one process, as a file.

local arguments = require "marea.cli.arguments"
local core = require "marea.core"
local plan = require "marea.plan"
local prepare = require "marea.prepare"
local recipe_of = require "marea.recipe"
local reference = require "marea.reference"
local run_of = require "marea.run"
local Session = require "marea.session"
local together = require "marea.together"
local world_of = require "marea.world"

local function define(parser)
  arguments.recipe(parser)
  arguments.step(parser)
end

-- {{"f32.NAME", tensor}, ...} and the loss, in one dtype.
local function compute(recipe, dtype, prepared, step, named)
  local session = Session.open(recipe:with { dtype = dtype }, prepared)
  local model = Session.new_model(session.recipe)
  local result = reference.gradient(session, model, step)
  for _, pair in ipairs(reference.named(model, result.gradient)) do
    named[#named + 1] = { dtype .. "." .. pair[1], pair[2] }
  end
  return result
end

local function write(path, recipe, prepared, step)
  local named = {}
  local f32 = compute(recipe, "f32", prepared, step, named)
  local f64 = compute(recipe, "f64", prepared, step, named)
  core.safetensors.write(path, named, {
    objective = recipe.config.objective, step = tostring(step),
    ["loss.f32"] = ("%.17g"):format(f32.loss), ["loss.f64"] = ("%.17g"):format(f64.loss),
    tokens = tostring(f64.windows[1].tokens),
  })
  print(("reference of %s, update %d: loss %.9g over %d tokens; gradients in %s"):format(
    recipe.name, step, f64.loss, f64.windows[1].tokens, path))
end

local function run_command(options)
  local world = world_of.get()
  local recipe = recipe_of.require(options.recipe, options.settings, world:size())
  local prepared = prepare.make(recipe, world)
  plan.require_step(prepared.plan, options.step)
  local run <close> = run_of.open {
    outputs = options.outputs, name = options.run or recipe.name, way = "any", world = world,
  }
  together.on_root(world, function()
    write(run:path("reference.safetensors"), recipe, prepared, options.step)
  end)
  return 0
end

---@type marea.Command
return {
  name = "reference",
  summary = "Compute the gradient of the declared objective by one process.",
  example = "marea reference recipes/minimum.lua objective=per_sequence",
  define = define,
  run = run_command,
}
