-- marea accumulation: one window in N microbatches of B, for every N: loss, gradient, memory.

local accumulation = require "marea.accumulation"
local arguments = require "marea.cli.arguments"
local json = require "marea.json"
local prepare = require "marea.prepare"
local recipe_of = require "marea.recipe"
local run_of = require "marea.run"
local together = require "marea.together"
local world_of = require "marea.world"

local failed = 3

local function define(parser)
  arguments.recipe(parser)
  arguments.step(parser)
end

local function text(report, recipe, world)
  local first = report.rows[1]
  local lines = {
    ("accumulation in %s: %d sequences, %d tokens, %d rank%s, %s; gate %g"):format(
      recipe.name, first.sequences, first.tokens, world:size(), world:size() == 1 and "" or "s",
      report.dtype, report.gate),
    "",
    ("%-14s %-20s %-12s %12s %9s %11s"):format("N x B a rank", "loss", "gradient off", "peak, KiB",
                                              "kernels", "reductions"),
  }
  for _, row in ipairs(report.rows) do
    lines[#lines + 1] = ("%-14s %-20.15g %-12.3g %12.1f %9d %11d%s"):format(
      ("%d x %d"):format(row.microbatches, row.size), row.loss, row.gradient_difference,
      row.peak / 1024, row.kernel_calls, row.reductions, row.good and "" or "   BAD")
  end
  local last, alone = report.rows[#report.rows], report.alone
  lines[#lines + 1] = ""
  lines[#lines + 1] = ("memory: %d x %d takes %.3f times the peak of one longest sequence alone " ..
    "(%.1f KiB), and %.3f times that of %d x %d"):format(
    last.microbatches, last.size, last.peak / alone.peak, alone.peak / 1024,
    last.peak / first.peak, first.microbatches, first.size)
  lines[#lines + 1] = report.pass and "pass" or "FAIL"
  return table.concat(lines, "\n")
end

---@type marea.Command
return {
  name = "accumulation",
  summary = "Show that N microbatches of B give the loss and gradient of one batch of N x B.",
  example = "marea launch -n 2 accumulation recipes/minimum.lua batch_size_per_rank=8",
  define = define,
  run = function(options)
    local world = world_of.get()
    local recipe = recipe_of.require(options.recipe, options.settings, world:size())
    recipe:require_ranks(world:size())
    local prepared = prepare.make(recipe, world)
    local run <close> = run_of.open {
      outputs = options.outputs, name = options.run or recipe.name, way = "any", world = world,
    }
    local report = accumulation.measure(recipe, options.step, prepared)
    together.on_root(world, function()
      json.write(run:path("accumulation.json"), report)
      print(options.json and json.encode(report) or text(report, recipe, world))
    end)
    return report.pass and 0 or failed
  end,
}
