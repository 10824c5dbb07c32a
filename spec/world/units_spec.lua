-- Units on the ranks of this world: the same four microbatches on one rank, two, three and four
-- have the same loss and gradient, worked out on paper; and a unit that one rank cannot answer is
-- refused by all.

local objective = require "marea.objective"
local numeric = dofile "spec/support/numeric.lua"
local training = dofile "spec/support/training.lua"

local world = require("marea.world").get()
local size = world:size()

-- Book A has 2 + 2 positions in two sequences, B 1, C 3; D has none with a target.
local microbatches = {
  { { 1, 1, fields = { book = "A", cost = 3, prompt_tokens = 1 } } },
  { { 5, fields = { book = "B", cost = 1, prompt_tokens = 0 } },
    { { 9 }, { 9 }, fields = { book = "D", cost = 100, prompt_tokens = 2 } } },
  { { 1, 4, classes = { 1, 0 }, fields = { book = "A", cost = 2, prompt_tokens = 2 } } },
  { { 2, { 1e9 }, 2, 2, fields = { book = "C", cost = 0.5, prompt_tokens = 0 } } },
}

-- K = 4 on one rank, K = 2 on two, 2, 1 and 1 on three, K = 1 on four.
local function dealt(list)
  local ranks = {}
  for r = 1, size do ranks[r] = {} end
  for i, microbatch in ipairs(list) do
    table.insert(ranks[(i - 1) * size // #list + 1], microbatch)
  end
  return ranks
end

local function assert_gradient(expected, unit)
  for _, reduction in ipairs { "mean", "sum" } do
    local session = training.session(training.toy(dealt(microbatches), { objective = unit },
                                                  { reduction = reduction }))
    assert.near(expected, training.run(session):get(1), 1e-14)
    assert.near(expected, training.reference(session).loss, 1e-14)
  end
end

describe("whatever the number of ranks, the mean", function()
  it("over tokens is that of 8", function() assert_gradient(18 / 8, objective.global_token) end)

  it("over sequences is that of the four that have a target (B38 b)", function()
    assert_gradient((1 + 5 + 2.5 + 2) / 4, objective.per_sequence)
  end)

  it("over books counts one on two ranks once", function()
    assert_gradient((7 / 4 + 5 + 2) / 3, objective.per "book")
  end)

  it("by cost weighs positions by it", function()
    assert_gradient(24 / 12.5, objective.scaled_by "cost")
  end)

  it("over books by cost is their product", function()
    assert_gradient(10 / 4, objective.product { objective.per "book",
                                                objective.scaled_by "cost" })
  end)

  it("by class has one denominator", function()
    assert_gradient((18 + 3 * 1) / (8 + 3), objective.by_class { [1] = 4 })
  end)

  it("with prompts that count half has one denominator", function()
    -- prompt: 1 of book A's first sequence, both of its second
    assert_gradient((18 - 0.5 * (1 + 1 + 4)) / (8 - 0.5 * 3), objective.prompts(0.5))
  end)
end)

describe("a second term", function()
  local function with_costs(model, batch)
    local first = batch.sequences[1]
    return { main = model(batch), aux = model.w:scale(first and first.cost or 0 / 0),
             l2 = model.w:multiply(model.w) }
  end

  it("is a mean over microbatches that have a target, and a penalty counts once", function()
    local list = { microbatches[1], microbatches[4] }
    for i = 3, 2 * size do list[i] = { { { 1 }, fields = { book = "E", cost = 1e6,
                                                           prompt_tokens = 0 } } } end
    local session = training.session(training.toy(dealt(list), {
      loss = with_costs, objective = {
        { name = "main", unit = objective.per "book" },
        { name = "aux", unit = "microbatch", coefficient = 0.1 },
        { name = "l2", unit = "window", coefficient = 0.25 } } }))
    local window = session:window(1)
    assert.same({ 2, 2, #list }, window.denominators)
    assert.near((1 + 2) / 2 + 0.1 * (3 + 0.5) / 2 + 0.25 * 2, training.run(session):get(1), 1e-14)
  end)
end)

describe("a unit that only one rank's sequences refuse", function()
  local function refusal(unit, fields)
    local ranks = dealt(microbatches)
    table.insert(ranks[size], { { 1, fields = fields } })
    local session = training.session(training.toy(ranks, { objective = unit }))
    return numeric.refusal(function() session:window(1) end)
  end

  it("is refused by all ranks with one message", function()
    local message, code = refusal(objective.scaled_by "cost",
                                  { book = "A", cost = -1, prompt_tokens = 0 })
    assert.equal("window 1: scaled_by:cost needs finite numbers of at least 0 in the field " ..
                 '"cost"; that of sequence 6 is -1.0', message)
    assert.equal(5, code)
    message, code = refusal(objective.per "bok", { book = "A", cost = 1, prompt_tokens = 0 })
    assert.matches('^per:bok needs the field "bok", which sequence 1 .* did you mean "book"%?$',
                   message)
    assert.equal(2, code)
  end)
end)
