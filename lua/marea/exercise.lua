-- The exercise: four questions about 12 and 36 tokens, and what the engine measures.
--
-- Two kinds of numbers stand apart: hand arithmetic on losses of 1 and 3 a token, and values of a
-- real model on recipes/exercise.lua's two windows (12 + 12, then 12 + 36 tokens).

local core = require "marea.core"
local nn = require "marea.nn"
local objective = require "marea.objective"
local Session = require "marea.session"

local exercise = {}

---@class marea.Question
---@field key string of the answer on the command line
---@field expects string what an answer is
---@field right number|string
---@field text string

---@class marea.Mark
---@field key string
---@field answer number|string
---@field right number|string
---@field correct boolean

--- The questions, in order.
---@type marea.Question[]
exercise.questions = {
  { key = "mean_of_means", expects = "a number", right = 2,
    text = "Rank 0 has 12 tokens with a loss of 1 each, rank 1 has 12 with a loss of 3 each; " ..
           "the mean of the\nranks' means is 2. Now rank 1 goes to 36 tokens, still with a " ..
           "loss of 3 each. What is the mean of means?" },
  { key = "token_mean", expects = "a number", right = 2.5,
    text = "And the mean over all tokens, which was 2 as well?" },
  { key = "overweighted", expects = "mean_of_means or token_mean", right = "mean_of_means",
    text = "Which of the two gives a token of the short rank more weight than one of the long " ..
           "rank?" },
  { key = "changes", expects = "W, N or division", right = "N",
    text = "From 12 + 12 to 12 + 36 tokens, what changes in the right computation: the number " ..
           "of ranks W, the\ntoken count N, or does it need a second division?" },
}

--- Reads an answer. Returns nil and what was expected when the word does not read as one.
---@param question marea.Question
---@param word string
---@return number|string? answer
---@return string? expected
function exercise.read(question, word)
  if question.expects == "a number" then
    local number = tonumber(word)
    if number then return number end
    return nil, "a number"
  end
  for choice in question.expects:gsub(" or ", ", "):gmatch("[%w_]+") do
    if choice:lower() == word:lower() then return choice end
  end
  return nil, question.expects
end

-- --- hand arithmetic --------------------------------------------------------------------------

local function by_hand()
  local function means(tokens)
    local sums = { tokens[1] * 1, tokens[2] * 3 }
    return { mean_of_means = (sums[1] / tokens[1] + sums[2] / tokens[2]) / 2,
             token_mean = (sums[1] + sums[2]) / (tokens[1] + tokens[2]) }
  end
  return { before = means { 12, 12 }, after = means { 12, 36 } }
end

-- --- the engine -------------------------------------------------------------------------------

-- On two ranks: the recipe's own loop, its reduction, and the mean of the ranks' weighted losses.
local function on_ranks(session, unit, step)
  return session:with_terms(function()
    session.statistics = { weighted = 0 }
    session:accumulate(session:window(step))
    local loss = core.host.from({ session.statistics.weighted }, "f64", { 1 })
    session.world:all_reduce(loss, session.config.reduction)
    return loss:get(1), session.model:gradients():copy()
  end, objective.terms(unit))
end

local function by_one_process(session, unit, step)
  local reference = require "marea.reference"
  return session:with_terms(function()
    local result = reference.gradient(session, session.model, step)
    return result.loss, result.gradient
  end, objective.terms(unit))
end

-- Loss and gradient of both windows under one unit, and how far the gradient moved between them.
local function two_windows(session, measure, unit)
  local loss_before, before = measure(session, unit, 1)
  local loss_after, after = measure(session, unit, 2)
  local moved = core.compare(after, before, { absolute = 0, relative = 0 }).max_abs
  return { before = loss_before, after = loss_after, gradient_moved = moved }, after
end

local function engine(recipe, world)
  local session = Session.open(recipe:with { dtype = "f64" }, { world = world })
  local measure = on_ranks
  if world:size() == 2 then
    session:build()
  else
    measure = by_one_process
    session.model = Session.new_model(session.recipe)
  end
  local means, wrong = two_windows(session, measure, objective.mean_of_means)
  local tokens, right = two_windows(session, measure, objective.global_token)
  return {
    mean_of_means = means, token_mean = tokens,
    gap = core.compare(wrong, right, { absolute = 1e-12, relative = 1e-9 }).max_abs,
  }
end

-- --- a loss gap is no gradient gap ------------------------------------------------------------

local Scalar = nn.class "exercise.Scalar"

--- Declares w = 1.
function Scalar:init() self:parameter("w", {}, { value = 1 }) end

-- Two losses of one parameter w = 1: the constant 1, and w itself.
local function one_parameter()
  local model = Scalar():materialize { seed = 0, dtype = "f64" }
  local constant = core.ones({ 1 }, "f64")
  local zero, one = core.zeros({ 1 }, "f64"), core.ones({ 1 }, "f64")
  local function measure(slope, offset)
    model:zero_grad()
    local loss = slope:multiply(model.w):add(offset):sum()
    loss:backward()
    return { loss = loss:item(), gradient = model:gradients():get(1) }
  end
  return { constant = measure(zero, constant), slope = measure(one, zero) }
end

-- --- verdicts ---------------------------------------------------------------------------------

local function close(a, b) return math.abs(a - b) <= 1e-12 + 1e-9 * math.abs(b) end

--- Measures everything.
---@param recipe marea.Recipe the loaded exercise recipe
---@param world marea.World one or two ranks
---@return table report {hand, engine, one_parameter, checks = list of {name, good}, pass}
function exercise.run(recipe, world)
  local report = { hand = by_hand(), engine = engine(recipe, world),
                   one_parameter = one_parameter() }
  local means, tokens = report.engine.mean_of_means, report.engine.token_mean
  report.checks = {
    { name = "the mean of means keeps its loss", good = close(means.after, means.before) },
    { name = "the mean of means keeps its gradient", good = means.gradient_moved <= 1e-12 },
    { name = "the token mean moves its loss", good = not close(tokens.after, tokens.before) },
    { name = "the token mean moves its gradient", good = tokens.gradient_moved > 1e-6 },
    { name = "the mean of means, used for the token mean, keeps failing",
      good = report.engine.gap > 1e-6 },
  }
  report.pass = true
  for _, check in ipairs(report.checks) do report.pass = report.pass and check.good end
  return report
end

--- Sets each answer beside the right one.
---@param answers table<string, number|string>
---@return marea.Mark[] marks in the order of the questions
function exercise.mark(answers)
  local marks = {}
  for i, question in ipairs(exercise.questions) do
    local answer = answers[question.key]
    marks[i] = { key = question.key, answer = answer, right = question.right,
                 correct = answer == question.right }
  end
  return marks
end

return exercise
