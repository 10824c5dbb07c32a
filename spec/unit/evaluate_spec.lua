-- Evaluation in one process: what it averages over, and a model that learns a corpus by heart.

local corpus = require "marea.corpus"
local evaluate = require "marea.evaluate"
local fault = require "marea.fault"
local nn = require "marea.nn"
local objective = require "marea.objective"
local optim = require "marea.optim"
local recipe_of = require "marea.recipe"
local Session = require "marea.session"
local trainer_of = require "marea.trainer"
local training = dofile "spec/support/training.lua"
local world_of = require "marea.world"

-- A session to evaluate the toy: symbol i has the loss losses[i]; {x} has no target.
local function toy(sequences)
  local losses, list = {}, {}
  for s, items in ipairs(sequences) do
    local inputs, targets = {}, {}
    for i, item in ipairs(items) do
      local masked = type(item) == "table"
      losses[#losses + 1] = masked and 0 or item
      inputs[i], targets[i] = #losses, masked and -100 or 0
    end
    list[s] = { inputs = inputs, targets = targets, split = "test" }
  end
  list[#list + 1] = { inputs = { 0 }, targets = { 0 }, split = "train" }
  local made = corpus.from { sequences = list, vocabulary = #losses + 1 }
  local recipe = training.toy({ { { { 1 } } } }, { corpus = made, model = function()
    local Toy = nn.class("spec.Losses")
    function Toy:init() self:parameter("w", {}, { value = 1 }) end
    function Toy.forward(_, batch)
      local x = {}
      for row, id in ipairs(batch.ids:values()) do x[row] = losses[id] end
      return require("marea.core").from(x, "f64", { #x })
    end
    return Toy {}
  end })
  return evaluate.session(recipe, world_of.get())
end

describe("evaluation", function()
  it("divides the sum over all positions by their number, not by blocks", function()
    local result = evaluate.split(toy { { 1, 2, 3, 2 }, { 9 } }, "test")
    assert.are.equal(3.4, result.loss)
    assert.are.equal(5, result.tokens)
    assert.are.equal(2, result.sequences)
    assert.is_nil(result.accuracy) -- the toy gives no logits
    local many = {}
    for i = 1, 40 do many[i] = i == 40 and { 100, 100 } or { 1 } end
    assert.are.equal((39 + 200) / 41, evaluate.split(toy(many), "test").loss)
  end)

  it("counts supervised positions only, and a sequence scores what it scores alone", function()
    local result = evaluate.split(toy { { { 5 }, 1, 3 }, { 2, { 7 }, { 7 }, 2, 4, 6 } }, "test")
    assert.are.equal(6, result.tokens)
    assert.are.equal(18 / 6, result.loss)
  end)

  it("depends on neither batch size, accumulation, objective nor layout", function()
    local results = {}
    for i, words in ipairs { {}, { "batch_size_per_rank=7", "accumulation=3" },
                             { "objective=per_sequence" }, { "layout=padded", "dropout=0.5" } } do
      local recipe = recipe_of.require("spec/recipes/tiny.lua", words, 1)
      results[i] = evaluate.split(evaluate.session(recipe, world_of.get()), "test")
    end
    assert.are.equal(38, results[1].sequences)
    for i = 2, 4 do assert.are.same(results[1], results[i]) end
  end)

  it("takes the loss of the first term with one per position", function()
    local recipe = recipe_of.require("spec/recipes/tiny.lua", {}, 1)
    local plain = evaluate.split(evaluate.session(recipe, world_of.get()), "test")
    local session = evaluate.session(recipe, world_of.get())
    session.terms, session.named_terms = objective.terms {
      { name = "penalty", unit = "window" }, { name = "text", unit = "position" } }
    session.recipe = setmetatable({ loss = function(model, batch)
      return { penalty = model.embedding.weight:sum(),
               text = nn.cross_entropy(model(batch), batch.targets) }
    end }, { __index = recipe })
    assert.are.same(plain, evaluate.split(session, "test"))
  end)

  it("refuses a split without sequences or supervised positions", function()
    for _, case in ipairs { { toy { { 1 } }, "validation", 2, "has no sequences" },
                            { toy { { { 1 } } }, "test", 5, "no supervised position" } } do
      local good, problem = pcall(evaluate.split, case[1], case[2])
      assert.is_false(good)
      local message, code = fault.of(problem)
      assert.are.equal(case[3], code, message)
      assert.is_truthy(message:find(case[4], 1, true), message)
    end
  end)
end)

describe("a tiny model", function()
  it("learns 27 tokens by heart: 27 of 27 right", function()
    local text = { { 1, 3, 2, 0, 1, 1, 2 }, { 2, 2, 0, 3, 1 }, { 0, 1, 0, 0, 3, 2, 1, 1, 3 },
                   { 3, 0, 0, 2, 2, 1 } }
    local list = {}
    for s, symbols in ipairs(text) do
      local inputs = { 4 + s } -- each begins with a mark of its own
      table.move(symbols, 1, #symbols - 1, 2, inputs)
      list[s] = { inputs = inputs, targets = symbols, split = "train" }
    end
    local recipe = training.recipe {
      corpus = corpus.from { sequences = list, vocabulary = 9 },
      config = { updates = 120, accumulation = 2, batch_size_per_rank = 2, lr = 0.02 },
      model = function()
        return nn.Transformer { vocabulary = 9, classes = 4, context = 9, width = 16, hidden = 32,
                                heads = 2, layers = 1 }
      end,
      optimizer = function(model, c) return optim.AdamW(model, { lr = c.lr, decay = 0 }) end,
      plan = function()
        local plan = {}
        for step = 1, 120 do plan[step] = { { { 1, 2 }, { 3, 4 } } } end
        return plan
      end,
    }
    local session = Session.open(recipe):build()
    local before = evaluate.split(session, "train")
    assert.are.equal(27, before.tokens)
    assert.is_true(before.accuracy < 1)
    local trainer = trainer_of.new(session)
    for _ = 1, 120 do trainer:advance() end
    local after = evaluate.split(session, "train")
    assert.are.equal(1, after.accuracy)
    assert.is_true(after.loss < 0.1, tostring(after.loss))
  end)
end)
