-- Units made for a field or a class, in numbers that can be worked out on paper, however the
-- sequences lie on microbatches and ranks.

local objective = require "marea.objective"
local recipe_of = require "marea.recipe"
local weightings = require "marea.weightings"
local Window = require "marea.window"
local numeric = dofile "spec/support/numeric.lua"
local training = dofile "spec/support/training.lua"

-- Book A has 2 + 2 positions in two sequences, B 1, C 3; D has none with a target.
local a1 = { 1, 1, fields = { book = "A", cost = 3 } }
local b = { 5, fields = { book = "B", cost = 1 } }
local a2 = { 1, 4, fields = { book = "A", cost = 2 } }
local c = { 2, { 1e9 }, 2, 2, fields = { book = "C", cost = 0.5 } }
local d = { { 9 }, { 9 }, fields = { book = "D", cost = 100 } }

-- The same four microbatches on one rank, two and four, and otherwise.
local layouts = {
  { { { a1 }, { b, d }, { a2 }, { c } } },
  { { { a1 }, { b, d } }, { { a2 }, { c } } },
  { { { a1 } }, { { b, d } }, { { a2 } }, { { c } } },
  { { { c, a2, d, b, a1 } } },
  { {}, { { a2 } }, { { a1, b }, {}, { c, d } } },
}

local function assert_everywhere(expected, unit, ranks_of)
  for _, ranks in ipairs(ranks_of or layouts) do
    for _, reduction in ipairs { "mean", "sum" } do
      for _, layout in ipairs { "packed", "padded" } do
        local session = training.session(training.toy(ranks, { objective = unit }, {
          reduction = reduction, layout = layout }))
        assert.near(expected, training.play(session):get(1), 1e-14)
        local by_one = training.reference(session)
        assert.near(expected, by_one.loss, 1e-14)
        assert.near(expected, by_one.gradient:get(1), 1e-14)
      end
    end
  end
end

local function refused(unit, ranks)
  local session = training.session(training.toy(ranks or layouts[2], { objective = unit }))
  return numeric.refusal(function() training.play(session) end)
end

describe("the unit of a field", function()
  it("counts each value once, in however many sequences, microbatches and ranks", function()
    assert_everywhere((7 / 4 + 5 + 2) / 3, objective.per "book")
  end)

  it("is another one than those of tokens and of sequences", function()
    assert_everywhere(18 / 8, objective.global_token)
    assert_everywhere((1 + 5 + 2.5 + 2) / 4, objective.per_sequence)
  end)

  it("is that of sequences where each has a value of its own", function()
    assert_everywhere((1 + 5 + 2.5 + 2) / 4, objective.per "id")
    assert_everywhere((1 + 5 + 2.5 + 2) / 4, objective.per "cost")
  end)

  it("counts what has a target only: half of a document is masked away", function()
    local masked = { { 1e9 }, 4, fields = { book = "A", cost = 2 } }
    assert_everywhere(((1 + 1 + 4) / 3 + 5) / 2, objective.per "book", {
      { { { a1 }, { masked } }, { { b } } }, { { { a1, b, masked } } } })
  end)

  it("is refused where the corpus has no such field, with the nearest name", function()
    local message, code = refused(objective.per "bok")
    assert.equal('per:bok needs the field "bok", which sequence 1 of the corpus does not have; ' ..
                 'did you mean "book"?', message)
    assert.equal(2, code)
    assert.matches("it has book, cost$", refused(objective.per "author"))
    assert.matches("the corpus has no fields$", refused(objective.per "book", { { { { 1 } } } }))
  end)

  it("needs the name of a field, which is none of a window's places", function()
    for _, case in ipairs {
      { nil, "got nothing" }, { 3, "got a number" }, { "", 'got ""' }, { "a,b", 'got "a,b"' },
      { "rank", "rank is no field of the corpus" },
    } do
      local message, code = numeric.refusal(function() objective.per(case[1]) end)
      assert(message:find(case[2], 1, true), message)
      assert.equal(2, code)
    end
  end)
end)

describe("the unit of a cost", function()
  it("counts every position as much as its sequence costs", function()
    assert_everywhere((3 * 2 + 5 + 2 * 5 + 0.5 * 6) / (3 * 2 + 1 + 2 * 2 + 0.5 * 3),
                      objective.scaled_by "cost")
  end)

  it("leaves out what costs nothing", function()
    local free = { 100, 200, fields = { book = "E", cost = 0 } }
    assert_everywhere(5, objective.scaled_by "cost", { { { { free } }, { { b, free } } } })
  end)

  it("is refused where the field is missing, no number, negative or not finite", function()
    local message, code = refused(objective.scaled_by "costs")
    assert.matches('^scaled_by:costs needs the field "costs", which sequence 1 .*"cost"%?$',
                   message)
    assert.equal(2, code)
    message, code = refused(objective.scaled_by "book")
    assert.equal('scaled_by:book needs a number in the field "book"; that of sequence 1 is a ' ..
                 'string, "A"', message)
    assert.equal(2, code)
    for _, case in ipairs { { -0.5, "-0.5" }, { math.huge, "inf" } } do
      message, code = refused(objective.scaled_by "cost", {
        { { a1 } }, { { b, { 1, fields = { book = "X", cost = case[1] } } } } })
      assert.equal("window 1: scaled_by:cost needs finite numbers of at least 0 in the field " ..
                   '"cost"; that of sequence 3 is ' .. case[2], message)
      assert.equal(5, code)
    end
  end)

  it("is refused where nothing costs anything", function()
    local free = { 100, 200, fields = { book = "E", cost = 0 } }
    local message, code = refused(objective.scaled_by "cost", { { { free } } })
    assert.matches("are zero for all 2 supervised positions", message)
    assert.equal(5, code)
  end)
end)

describe("the unit of classes", function()
  local one = { 1, 2, 3, { 9 }, classes = { 0, 1, 2, 0 } }
  local two = { 4, 5, classes = { 1, 1 } }
  local ranks_of = { { { { one, two } } }, { { { one }, { two } } }, { { { one } }, { { two } } } }

  it("weighs each position by its target, in one denominator", function()
    assert_everywhere((3 * 1 + 0.5 * (2 + 4 + 5) + 3) / (3 + 0.5 * 3 + 1),
                      objective.by_class { [0] = 3, [1] = 0.5 }, ranks_of)
    assert_everywhere(11 / 3, objective.by_class { [0] = 0, [2] = 0 }, ranks_of)
  end)

  it("knows the targets that a window has hidden", function()
    local session = training.session(training.toy({ { { one } } }))
    local window = Window.new(session, 1, 0, { mask_rank = 0 })
    local sequence = window:sequences()()
    assert.same({ 1, 2 }, objective.targets(sequence, window))
    assert.same({ 7, 1 }, objective.by_class { [0] = 5, [1] = 7 }(sequence, window))
  end)

  it("is refused for classes that are no ids, and weights that are none", function()
    for _, case in ipairs {
      { {}, "got an empty one" }, { 3, "got number" }, { { [-1] = 1 }, "from 0, got -1" },
      { { a = 1 }, "from 0, got a" }, { { [2] = -1 }, "the weight of class 2 must be a finite" },
      { { [2] = 0 / 0 }, "must be a finite" }, { { [2] = "1" }, "must be a finite" },
    } do
      local message, code = numeric.refusal(function() objective.by_class(case[1]) end)
      assert(message:find(case[2], 1, true), message)
      assert.equal(2, code)
    end
  end)
end)

describe("the unit of prompts", function()
  -- two of three positions are prompt, none of one, both of two
  local one = { 1, 2, 3, fields = { prompt_tokens = 2, book = "A" } }
  local two = { 4, fields = { prompt_tokens = 0, book = "B" } }
  local three = { 5, 6, fields = { prompt_tokens = 2, book = "A" } }
  local ranks_of = { { { { one, two, three } } }, { { { one }, { two }, { three } } },
                     { { { three } }, { { two, one } } },
                     { { { one } }, {}, { { two }, { three } } } }

  it("lets them count half, in the same denominator", function()
    assert_everywhere((0.5 * 3 + 3 + 4 + 0.5 * 11) / (0.5 * 4 + 2), objective.prompts(0.5),
                      ranks_of)
    assert_everywhere((3 + 4) / 2, objective.prompts(0), ranks_of)
    assert_everywhere(21 / 6, objective.prompts(1), ranks_of)
  end)

  it("multiplies with others", function()
    -- book A: 5 positions, of which 4 prompt
    assert_everywhere(((0.5 * 14 + 3) / 5 + 4) / ((0.5 * 4 + 1) / 5 + 1), objective.product {
      objective.per "book", objective.prompts(0.5) }, ranks_of)
  end)

  it("knows what of a prompt a window has hidden", function()
    local session = training.session(training.toy({ { { one } } }))
    local window = Window.new(session, 1, 0, { mask_rank = 0 })
    assert.same({ 0.5, 1 }, objective.prompts(0.5)(window:sequences()(), window))
  end)

  it("is refused where nothing says what is prompt, and for a weight that is none", function()
    local message, code = refused(objective.prompts(0.5))
    assert.matches("^prompts:0.5 needs supervised prompts, .* sequence 1 does not say", message)
    assert.equal(2, code)
    assert.equal(2, select(2, numeric.refusal(function() objective.prompts(-1) end)))
    assert.equal(2, select(2, numeric.refusal(function() objective.prompts() end)))
  end)
end)

describe("a product of units", function()
  it("weighs by all of them", function()
    -- A: 3/4 twice and 2/4 twice, B: 1, C: 0.5/3 three times
    assert_everywhere((1.5 + 2.5 + 5 + 1) / (1.5 + 1 + 1 + 0.5),
                      objective.product { objective.per "book", objective.scaled_by "cost" })
    assert_everywhere((1.5 + 2.5 + 5 + 1) / (1.5 + 1 + 1 + 0.5), objective.product {
      function(sequence) return sequence.cost end, objective.per "book" })
  end)

  it("may have numbers and lists in any order", function()
    local function rising(sequence)
      local list = {}
      for i = 1, sequence.tokens do list[i] = i end
      return list
    end
    local expected = (3 * (1 + 2) + 5 + 2 * (1 + 8) + 0.5 * 12) / (9 + 1 + 6 + 3)
    assert_everywhere(expected, objective.product { rising, objective.scaled_by "cost" })
    assert_everywhere(expected, objective.product { objective.scaled_by "cost", rising })
    assert_everywhere((3 * (1 + 4) + 5 + 2 * 17 + 0.5 * 28) / (15 + 1 + 10 + 7),
                      objective.product { rising, objective.scaled_by "cost", rising })
  end)

  it("is refused for what a factor must not give, as that factor would be", function()
    for _, case in ipairs {
      { nil, "finite weights of at least 0, got nothing" }, { "x", "got a string" },
      { { 1 }, "gave 1 weights for sequence 1, which has 2" }, { { 1, "2" }, "got a string" },
    } do
      local message, code = refused(objective.product { objective.per "book",
                                                        function() return case[1] end })
      assert(message:find(case[2], 1, true), message)
      assert.equal(5, code)
    end
    for _, list in ipairs { {}, { "per" }, { objective.per "book", 3 } } do
      assert.equal(2, select(2, numeric.refusal(function() objective.product(list) end)))
    end
    assert.equal(2, select(2, numeric.refusal(function() objective.product() end)))
  end)
end)

describe("the text of a unit", function()
  local function product(...) return objective.product { ... } end

  it("says how it was made, and is read back", function()
    for text, unit in pairs {
      ["per:book"] = objective.per "book", ["scaled_by:cost"] = objective.scaled_by "cost",
      ["prompts:0.5"] = objective.prompts(0.5), ["prompts:0.1"] = objective.prompts(0.1),
      ["by_class:0=3,by_class:12=0.25"] = objective.by_class { [12] = 0.25, [0] = 3 },
      ["per:book,scaled_by:cost"] = product(objective.per "book", objective.scaled_by "cost"),
      ["mean_of_means,per:book"] = product(objective.mean_of_means, objective.per "book"),
      global_token = objective.global_token,
    } do
      assert.equal(text, weightings.text(unit))
      assert.equal(text, weightings.text(weightings.parse(text, objective.named)))
    end
    assert.is_nil(weightings.text(product(objective.per "book", function() return 1 end)))
    assert.is_nil(weightings.text(function() return 1 end))
  end)

  it("is the objective's name in the config, and chooses it there", function()
    local given = { objective = objective.per "book", units = {
      own = function(sequence) return sequence.cost end } }
    local function play(overrides)
      local session = training.session(training.toy(layouts[2], given, overrides))
      return session.config.objective, training.play(session):get(1)
    end
    local function assert_plays(name, value, overrides)
      local found, gradient = play(overrides)
      assert.equal(name, found)
      assert.near(value, gradient, 1e-14)
    end
    assert_plays("per:book", 8.75 / 3)
    assert_plays("scaled_by:cost", 24 / 12.5, { objective = "scaled_by:cost" })
    assert_plays("per:book,scaled_by:cost", 10 / 4, { objective = "per:book,scaled_by:cost" })
    assert_plays("per:book,own", 10 / 4, { objective = "per:book,own" })
    given.objective = "scaled_by:cost"
    assert_plays("scaled_by:cost", 24 / 12.5)
  end)

  it("is refused where it stands for nothing", function()
    for text, expected in pairs {
      ["pre:book"] = 'there is no objective "pre:book"', ["per:book,"] = "there is no objective",
      ["per:"] = 'expects the name of a field of the corpus, got ""',
      ["by_class:a"] = "expected by_class:ID=WEIGHT, got by_class:a",
      ["by_class:1=x"] = "the weight of class 1 must be a finite number of at least 0, got x",
      ["prompts:half"] = "must be a finite number of at least 0, got half",
    } do
      local message, code = numeric.refusal(function()
        training.toy(layouts[1], {}, { objective = text })
      end)
      assert(message:find(expected, 1, true), message)
      assert.equal(2, code)
    end
  end)

  it("of a recipe stays what it was under other overrides", function()
    local recipe = training.toy(layouts[1], { objective = objective.per "book" })
    assert.equal(recipe.objective, recipe:with({ dtype = "f32" }).objective)
    assert.is_true(recipe_of.is(recipe.declared))
  end)
end)
