-- marea parity: the recipe's own gradient on all ranks against the reference, with controls.

local arguments = require "marea.cli.arguments"
local json = require "marea.json"
local parity = require "marea.parity"
local plan = require "marea.plan"
local prepare = require "marea.prepare"
local recipe_of = require "marea.recipe"
local run_of = require "marea.run"
local saves = require "marea.saves"
local together = require "marea.together"
local world_of = require "marea.world"

local failed = 3

local function define(parser)
  arguments.recipe(parser)
  arguments.step(parser)
  parser:option("--checkpoint", "With the parameters of a checkpoint, a run, or 'latest' of the " ..
                "recipe's run (default: the first ones)."):argname("FOLDER")
end

local function dtype_line(name, result, components)
  local line = ("%s   %d of %d components within %g + %g |b|; largest error %.3g"):format(
    name, components - result.failing - result.rounding, components, result.atol, result.rtol,
    result.max_abs)
  if result.rounding > 0 then line = line .. ("; %d by rounding"):format(result.rounding) end
  if result.failing > 0 then
    line = line .. ("\n      %d FAIL, worst %s[%d]: got %.9g, expected %.9g"):format(
      result.failing, result.worst.parameter, result.worst.index, result.worst.values[1],
      result.worst.values[2])
  end
  return line
end

local function control_line(entry)
  local verdict
  if not entry.told_apart then
    verdict = "not told apart: " .. entry.reason
  elseif entry.detected then
    verdict = ("detected: off by %.3g in %d components (%s)"):format(entry.max_abs, entry.failing,
                                                                     entry.meaning)
  else
    verdict = ("NOT DETECTED (%s)"):format(entry.meaning)
  end
  return ("control   %-26s %s"):format(entry.name, verdict)
end

local function is_exact(report)
  return report.f32.failing == 0 and report.f64.failing == 0
end

-- What a failing gradient is instead.
local function cause_lines(report)
  local lines, factor, equals = {}, report.factor, report.equals
  if factor then
    lines[#lines + 1] = ("factor    the gradient is %s times the reference throughout%s"):format(
      json.number(factor.value), factor.name and ": " .. factor.name or "")
  end
  if equals then
    lines[#lines + 1] = ("instead   it is the gradient of %s%s"):format(equals.objective,
      equals.factor == 1 and "" or (" times %s%s"):format(json.number(equals.factor),
        equals.name and ": " .. equals.name or ""))
  end
  if not report.uses_weights then
    lines[#lines + 1] = "weights   the loop does not use window:weights(batch), which carries " ..
                        "the declared weights"
  end
  return lines
end

-- How a loop that is right once is not right again.
local function unsteady_lines(steady)
  local lines = {}
  if not steady.repeats then
    lines[#lines + 1] = "again     the same window gives OTHER bits a second time: the loop " ..
                        "keeps something from window to window"
  end
  if steady.next and steady.next.failing > 0 then
    lines[#lines + 1] = ("next      update %d after it: %d components FAIL, off by %.3g"):format(
      steady.next.step, steady.next.failing, steady.next.max_abs)
  end
  if steady.depends_on_microbatch then
    lines[#lines + 1] = ("losses    those of sequence %s CHANGE with its microbatch: recipe.loss" ..
      " divides by something that belongs to the objective"):format(steady.depends_on_microbatch)
  end
  return lines
end

local function text(report)
  local window = report.window
  local lines = {
    ("parity of %s: %s, update %d, %d rank%s, %d tokens (%s)"):format(
      report.recipe, report.objective, window.step, report.world, report.world == 1 and "" or "s",
      window.tokens, table.concat(window.rank_tokens, " + ")),
    dtype_line("f32", report.f32, report.components),
    dtype_line("f64", report.f64, report.components),
  }
  if window.masked_rank then
    lines[#lines + 1] = ("window    as planned it tells no wrong weighting apart, so half of " ..
      "the targets of every second sequence of rank %d are masked"):format(window.masked_rank)
  end
  table.move(cause_lines(report), 1, 3, #lines + 1, lines)
  if is_exact(report) then
    for _, entry in ipairs(report.controls) do lines[#lines + 1] = control_line(entry) end
  else
    lines[#lines + 1] = "controls  not judged while the gradient itself is not the declared one"
  end
  table.move(unsteady_lines(report.steady), 1, 3, #lines + 1, lines)
  if not report.begun_equal then
    lines[#lines + 1] = "ranks     began with DIFFERENT parameters: broadcast rank 0's to all"
  end
  if not report.equal_on_all_ranks then
    lines[#lines + 1] = "ranks     the reduced gradients are NOT the same on all ranks"
  end
  lines[#lines + 1] = report.pass and "pass" or "FAIL"
  return table.concat(lines, "\n")
end

local function find_checkpoint(options, run, world)
  if not options.checkpoint then return nil end
  return together.on_root(world, function()
    return (saves.resolve(options.outputs, options.checkpoint, run.folder))
  end)
end

local function run_command(options)
  local world = world_of.get()
  local recipe = recipe_of.require(options.recipe, options.settings, world:size())
  recipe:require_ranks(world:size())
  local prepared = prepare.make(recipe, world)
  plan.require_step(prepared.plan, options.step)
  local run <close> = run_of.open {
    outputs = options.outputs, name = options.run or recipe.name, way = "any", world = world,
  }
  local report = parity.run(recipe, {
    step = options.step, checkpoint = find_checkpoint(options, run, world),
    shared = prepared })
  local verdict = together.on_root(world, function()
    json.write(run:path("parity.json"), report)
    print(options.json and json.encode(report) or text(report))
    return report.pass and "pass" or "fail"
  end)
  return verdict == "pass" and 0 or failed
end

---@type marea.Command
return {
  name = "parity",
  summary = "Prove the recipe's own gradient against the reference, with controls.",
  example = "marea launch -n 2 parity recipes/minimum.lua objective=per_sequence",
  define = define,
  run = run_command,
}
