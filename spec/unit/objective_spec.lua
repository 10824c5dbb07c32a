-- Objectives: what is averaged over what, in numbers that can be worked out on paper. Each gradient
-- is what the ranks of a plan compute together, with either reduction.

local objective = require "marea.objective"
local numeric = dofile "spec/support/numeric.lua"
local training = dofile "spec/support/training.lua"

-- Asserts a gradient with the mean and with the sum over ranks, and by the reference.
local function assert_gradient(expected, ranks, given, overrides)
  for _, reduction in ipairs { "mean", "sum" } do
    local config = { reduction = reduction }
    for key, value in pairs(overrides or {}) do config[key] = value end
    local session = training.session(training.toy(ranks, given, config))
    local found = training.play(session):get(1)
    assert.near(expected, found, 1e-14 * math.max(1, math.abs(expected)))
    local by_one = training.reference(session)
    assert.near(expected, by_one.gradient:get(1), 1e-14 * math.max(1, math.abs(expected)))
    assert.near(expected, by_one.loss, 1e-14 * math.max(1, math.abs(expected)))
  end
end

describe("the objective", function()
  it("of tokens and the mean of means differ as 2.5 and 2 do (12 and 36 tokens)", function()
    local ranks = { { { {} } }, { { {} } } }
    for i = 1, 12 do ranks[1][1][1][i] = 1 end
    for i = 1, 36 do ranks[2][1][1][i] = 3 end
    assert_gradient(2.5, ranks)
    assert_gradient(2, ranks, {}, { objective = "mean_of_means" })
  end)

  it("of tokens and of sequences do not change with the packing (B17)", function()
    local a, b, c = { 1, 1, 1 }, { 5 }, { 4, 4 }
    for _, ranks in ipairs {
      { { { a, b }, { c } } }, { { { a, b, c } } }, { { { a }, { b }, { c } } },
      { { { a, b } }, { { c } } }, { { { c } }, {}, { { b }, { a } } },
    } do
      for _, layout in ipairs { "packed", "padded" } do
        assert_gradient(10 / 3, ranks, {}, { objective = "per_sequence", layout = layout })
        assert_gradient(16 / 6, ranks, {}, { objective = "global_token", layout = layout })
      end
    end
  end)

  it("of tokens weights a microbatch by its tokens, not its sequences (B38 a)", function()
    local one, three = { 3, 3 }, { { 0.5, 0.5, 0.5 }, { 0.5, 0.5, 0.5 }, { 0.5, 0.5 } }
    assert_gradient(1, { { { one }, three } })
    assert_gradient(1, { { { one } }, { three } })
  end)

  it("of sequences leaves out one without a target, on any ranks (B38 b)", function()
    local two, four, six, none = { 2, 2 }, { 4 }, { 6, 6, 6 }, { { 100 }, { 100 } }
    for _, ranks in ipairs {
      { { { two }, { four }, { six }, { none } } },
      { { { two }, { four } }, { { six }, { none } } },
      { { { two } }, { { four } }, { { six } }, { { none } } }, { { { none, six, two, four } } },
    } do
      assert_gradient(4, ranks, {}, { objective = "per_sequence" })
    end
  end)

  it("undoes the mean over the ranks exactly once (B48)", function()
    local ranks = { { { { 1 } } }, { { { 3, 3, 3 } } }, { { { 1, 3 } } }, { { { 2, 0 } } } }
    assert_gradient(2, ranks)
    assert_gradient(1.75, ranks, {}, { objective = "mean_of_means" })
  end)

  it("of means counts only ranks that have targets", function()
    assert_gradient(2, { { { { 1, 1 } } }, {}, { { { 3, { 9 } } } }, { { { { 9 } } } } }, {},
                    { objective = "mean_of_means" })
  end)

  it("keeps every item where one rank has none in a microbatch, or runs out (B15, B43)", function()
    local three, one = { 3, 3 }, { 1, 1 }
    assert_gradient(1.8, { { { three }, { one } }, { {}, { one } }, { { three }, { one } } })
    for expected, ranks in pairs { [1.5] = { { { { 1 } } }, { { { 2 } } } },
                                   [5.5] = { { { { 5 } } }, { { { 6 } } } },
                                   [7.0] = { { { { 7 } } }, {} } } do
      assert_gradient(expected, ranks)
    end
  end)

  it("is the same for a window that is short (B13 a)", function()
    for _, microbatches in ipairs { 4, 2, 1 } do
      local rank = {}
      for m = 1, microbatches do rank[m] = { { 3 } } end
      assert_gradient(3, { rank })
    end
  end)

  it("is not changed by the number of microbatches (B05 a)", function()
    local ranks = { { { { 1, 1 } }, { { 2, 2 } }, { { 2, 3 } }, { { 2, 3 } } } }
    assert_gradient(2, ranks)
    assert_gradient(2, { { ranks[1][1], ranks[1][2] }, { ranks[1][3], ranks[1][4] } })
    assert_gradient(2, { { ranks[1][1] }, { ranks[1][2], ranks[1][3], ranks[1][4] }, {} })
  end)
end)

describe("a unit of one's own", function()
  local ranks = {
    { { { 1, 1, fields = { cost = 3 } } }, { { 4, fields = { cost = 1 } } } },
    { { { 2, 2, 2, { 9 }, fields = { cost = 2 } } } },
  }

  it("gives a number for all positions of a sequence", function()
    assert_gradient((6 + 4 + 12) / (6 + 1 + 6), ranks,
                    { objective = function(sequence) return sequence.cost end })
  end)

  it("gives a list with one number per supervised position", function()
    assert_gradient((1 + 2 + 4 + 2 + 4 + 6) / (1 + 2 + 1 + 1 + 2 + 3), ranks, {
      objective = function(sequence)
        local list = {}
        for i = 1, sequence.tokens do list[i] = i end
        return list
      end,
    })
  end)

  it("sees the window of all ranks", function()
    -- every cost counts the same, however many tokens it has on however many ranks
    local alike = {
      { { { 1, 1, fields = { cost = 3 } } }, { { 4, fields = { cost = 1 } } } },
      { { { 7, 7, 7, 7, fields = { cost = 3 } } } },
    }
    assert_gradient(((2 + 28) / 6 + 4) / 2, alike, {
      objective = function(sequence, window) return 1 / window:total("cost", sequence.cost) end,
    })
  end)

  it("is chosen by name among the recipe's units, and may be called as the library's", function()
    local units = { by_cost = function(sequence) return sequence.cost end,
                    per_sequence = function() return 1 end }
    assert_gradient(22 / 13, ranks, { units = units }, { objective = "by_cost" })
    assert_gradient(12 / 6, ranks, { units = units }, { objective = "per_sequence" })
  end)
end)

-- The auxiliary value of a microbatch is w times the `cost` of its first sequence.
local function with_cost(model, batch)
  local first = batch.sequences[1]
  return { main = model(batch), aux = model.w:scale(first and first.cost or 1e6) }
end

local function costs(...)
  local microbatches = {}
  for m, cost in ipairs { ... } do microbatches[m] = { { 1, 2, 3, fields = { cost = cost } } } end
  return microbatches
end

describe("several terms", function()
  local function terms(unit)
    return { objective = { { name = "main", unit = objective.global_token },
                           { name = "aux", unit = unit, coefficient = 0.1 } }, loss = with_cost }
  end

  it("have denominators of their own: a mean over microbatches (B05 b, c)", function()
    assert_gradient(2 + 0.05, { costs(0.2, 0.4, 0.6, 0.8) }, terms "microbatch")
    assert_gradient(2 + 0.06, { costs(0.2, 0.4, 0.6, 0.8), costs(0.4, 0.6, 0.8, 1.0) },
                    terms "microbatch")
  end)

  it("leave a microbatch without targets out of that mean", function()
    local ranks = { costs(0.2, 0.4), {} }
    ranks[1][3] = { { { 1 }, fields = { cost = 7 } } }
    assert_gradient(2 + 0.03, ranks, terms "microbatch")
  end)

  it("leave it out although its value is a mean over nothing, and no number", function()
    local function mean_of_squares(model, batch)
      local own = model(batch)
      return { main = own, aux = own:multiply(own):weighted_sum(own:detach():scale(0))
                 :add(model.w:scale(batch.tokens > 0 and 0.5 or 0 / 0)) }
    end
    local function given(...) return { objective = { ... }, loss = mean_of_squares } end
    local main, aux = { name = "main", unit = "position" },
                      { name = "aux", unit = "microbatch", coefficient = 2 }
    for _, ranks in ipairs { { { { { 3 } }, { { { 9 } } } } }, { { { { 3 } } }, {} },
                             { {}, { { { 3 } }, {} }, { { { { 9 } } } } } } do
      assert_gradient(3 + 1, ranks, given(main, aux))
      assert_gradient(3 + 1, ranks, given(aux, main))
    end
  end)

  it("count a penalty of the window once over all ranks and microbatches", function()
    local function penalty(model, batch)
      return { main = model(batch), l2 = model.w:multiply(model.w) }
    end
    local given = { loss = penalty, objective = {
      { name = "main", unit = "position" }, { name = "l2", unit = "window", coefficient = 0.25 } } }
    for _, ranks in ipairs { { costs(0) }, { costs(0, 0, 0), costs(0) },
                             { costs(0), {}, costs(0, 0) } } do
      local session = training.session(training.toy(ranks, given))
      assert.near(2 + 0.25 * 2, training.play(session):get(1), 1e-14)
      assert.near(2 + 0.25, training.reference(session).loss, 1e-14)
    end
  end)

  it("take one loss per sequence", function()
    local function longest(model, batch)
      local values = {}
      for s, sequence in ipairs(batch.sequences) do values[s] = sequence.cost end
      local core = require "marea.core"
      return { main = model(batch),
               aux = core.from(values, "f64", { #values }):multiply(model.w) }
    end
    local given = { loss = longest, objective = {
      { name = "main", unit = "position" }, { name = "aux", unit = "sequence", coefficient = 2 } } }
    -- two and one sequences that count, and one that does not: a mean over three
    local ranks = { { { { 1, 3, fields = { cost = 5 } }, { 2, 2, fields = { cost = 7 } },
                        { { 1 }, fields = { cost = 1000 } } } }, { costs(3)[1] } }
    assert_gradient((1 + 3 + 2 + 2 + 6) / 7 + 2 * (5 + 7 + 3) / 3, ranks, given)
  end)

  it("may use different weights per position, and a coefficient of 0", function()
    local function twice(model, batch) return { a = model(batch), b = model(batch):scale(10) } end
    local given = { loss = twice, objective = { { name = "a", unit = objective.global_token },
                                                { name = "b", unit = objective.mean_of_means } } }
    local ranks = { { { { 1, fields = { cost = 0 } } } },
                    { { { 3, 3, 3, fields = { cost = 0 } } } } }
    assert_gradient(2.5 + 20, ranks, given)
    given.objective[2].coefficient = 0
    assert_gradient(2.5, ranks, given)
  end)
end)

describe("a declaration of terms", function()
  it("is refused with code 2 where it is none", function()
    for _, case in ipairs {
      { {}, "an objective is a function or a list of terms, got table" },
      { "x", "an objective is a function or a list of terms, got string" },
      { { 3 }, "term 1 of the objective must be {name=, unit=, coefficient=}, got number" },
      { { { name = "a", unit = "row" } },
        "term 1 of the objective (a): unit must be a function, 'position', 'sequence', " ..
        "'microbatch' or 'window', got row" },
      { { { name = "a", unit = "position", coefficient = 0 / 0 } },
        "term 1 of the objective (a): coefficient must be a finite number, got " },
      { { { name = "a", unit = "position", coefficient = "2" } },
        "term 1 of the objective (a): coefficient must be a finite number, got 2" },
      { { { name = "a", unit = "position" }, { name = "a", unit = "window" } },
        'two terms of the objective have the name "a"' },
      { { { name = "a", unit = "position", coefficent = 2 } },
        'term 1 of the objective has no option "coefficent"; did you mean "coefficient"?' },
    } do
      local message, code = numeric.refusal(function() objective.terms(case[1]) end)
      assert.same({ case[2], 2 }, { message:sub(1, #case[2]), code })
    end
  end)

  it("gives a single unit the name loss and the coefficient 1", function()
    local terms, named = objective.terms(objective.global_token)
    assert.same({ { name = "loss", unit = objective.global_token, coefficient = 1 } }, terms)
    assert.is_false(named)
  end)
end)
