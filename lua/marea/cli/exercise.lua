-- marea exercise: asks for a prediction, then shows it beside what comes out.

local core = require "marea.core"
local exercise = require "marea.exercise"
local fault = require "marea.fault"
local json = require "marea.json"
local launch = require "marea.launch"
local recipe_of = require "marea.recipe"
local run_of = require "marea.run"
local together = require "marea.together"
local world_of = require "marea.world"

local failed = 3

local function define(parser)
  parser:argument("answers", "mean_of_means= token_mean= overweighted= changes=")
    :args("*"):argname("key=value")
  parser:flag("--answer", "Do not ask; show the right answers.")
end

local function find_question(key)
  for _, question in ipairs(exercise.questions) do
    if question.key == key then return question end
  end
  local keys = {}
  for i, question in ipairs(exercise.questions) do keys[i] = question.key end
  fault.raise_at(2, "", "the exercise has no answer '%s'%s", key,
                 require("marea.nearest").hint(key, keys))
end

local function read_words(words)
  local answers = {}
  for _, word in ipairs(words) do
    local key, value = word:match("^([%w_]+)=(.*)$")
    if not key then fault.raise_at(2, "", "expected key=value, got '%s'", word) end
    local question = find_question(key)
    local answer, expected = exercise.read(question, value)
    if answer == nil then
      fault.raise_at(2, "", "%s must be %s, got '%s'", key, expected, value)
    end
    answers[key] = answer
  end
  return answers
end

local function questions_text()
  local lines = {}
  for i, question in ipairs(exercise.questions) do
    lines[i] = ("%d. %s\n   %s=  (%s)"):format(i, question.text:gsub("\n", "\n   "), question.key,
                                               question.expects)
  end
  return table.concat(lines, "\n")
end

local function ask(question, i)
  io.write(("\n%d. %s\n"):format(i, question.text))
  while true do
    io.write(("   %s (%s): "):format(question.key, question.expects))
    io.flush()
    local line = io.read("l")
    if not line then fault.raise_at(2, "", "the exercise was left unanswered") end
    local answer, expected = exercise.read(question, (line:match("^%s*(.-)%s*$")))
    if answer ~= nil then return answer end
    io.write(("   expected %s\n"):format(expected))
  end
end

local function missing(answers)
  for _, question in ipairs(exercise.questions) do
    if answers[question.key] == nil then return true end
  end
  return false
end

-- Rank 0 asks; the others only compute.
local function collect(options)
  local answers = read_words(options.answers)
  if options.answer then
    for _, question in ipairs(exercise.questions) do
      answers[question.key] = answers[question.key] or question.right
    end
  end
  if not missing(answers) then return answers end
  if launch.under_launcher() or not core.process.is_terminal(0) then
    print(questions_text())
    fault.raise_at(2, "", "the exercise needs its answers: in a terminal it asks for them; else " ..
                   "give mean_of_means= token_mean= overweighted= changes=, or --answer")
  end
  for i, question in ipairs(exercise.questions) do
    if answers[question.key] == nil then answers[question.key] = ask(question, i) end
  end
  return answers
end

local function shown(value)
  return type(value) == "number" and ("%.6g"):format(value) or tostring(value)
end

local function text(report)
  local lines = {}
  local function add(format, ...)
    lines[#lines + 1] = format:format(...):gsub(" +$", "")
  end
  add("%-15s %-15s %s", "", "your answer", "right")
  for _, mark in ipairs(report.marks) do
    add("%-15s %-15s %-15s %s", mark.key, shown(mark.answer), shown(mark.right),
        mark.correct and "" or "<- not so")
  end
  add("")
  add("By hand, losses of 1 and 3 a token:   12 + 12 tokens   12 + 36 tokens")
  local hand, engine = report.hand, report.engine
  add("  mean of means                       %-16s %s", shown(hand.before.mean_of_means),
      shown(hand.after.mean_of_means))
  add("  token mean                          %-16s %s", shown(hand.before.token_mean),
      shown(hand.after.token_mean))
  add("")
  add("By the engine, on a real model        12 + 12 tokens   12 + 36 tokens   gradient moved by")
  for _, name in ipairs { "mean_of_means", "token_mean" } do
    add("  %-35s %-16.6f %-16.6f %.3g", name:gsub("_", " "), engine[name].before,
        engine[name].after, engine[name].gradient_moved)
  end
  add("")
  for _, check in ipairs(report.checks) do
    add("%-4s  %s", check.good and "good" or "BAD", check.name)
  end
  add("")
  add("Used for the token mean, the mean of means has a gradient that is off by %.3g.", engine.gap)
  local one = report.one_parameter
  add("A loss gap of 0.5 is no gradient gap of 0.5. With one parameter w = 1, the losses 1 and w")
  add("are both %s, and their gradients are %s and %s.", shown(one.constant.loss),
      shown(one.constant.gradient), shown(one.slope.gradient))
  return table.concat(lines, "\n")
end

local function run_command(options)
  local world = world_of.get()
  if world:size() > 2 then
    fault.raise_at(2, "", "exercise is about two ranks: start it on 1 or 2, not on %d",
                   world:size())
  end
  local answers
  together.on_root(world, function() answers = collect(options) end)
  local recipe = recipe_of.load(launch.root() .. "/recipes/exercise.lua", {}, 2)
  local run <close> = run_of.open {
    outputs = options.outputs, name = options.run or recipe.name, way = "any", world = world,
  }
  local report = exercise.run(recipe, world)
  together.on_root(world, function()
    report.marks = exercise.mark(answers)
    json.write(run:path("exercise.json"), report)
    print(options.json and json.encode(report) or text(report))
  end)
  return report.pass and 0 or failed
end

---@type marea.Command
return {
  name = "exercise",
  summary = "Predict the loss of 12 and 36 tokens on two ranks, then see it.",
  example = "marea exercise mean_of_means=2 token_mean=2.5 overweighted=mean_of_means changes=N",
  define = define,
  run = run_command,
}
