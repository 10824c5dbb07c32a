-- Evaluation on several ranks adds the blocks in their order: a sum whose rounding depends on the
-- order is the same on any number of ranks.

local core = require "marea.core"
local corpus = require "marea.corpus"
local evaluate = require "marea.evaluate"
local nn = require "marea.nn"
local world_of = require "marea.world"
local training = dofile "spec/support/training.lua"

local world = world_of.get()

-- Sequences of one position each: 16 make a block, and all losses but the block's first are 0.
local function session_of(block_losses, last_block)
  local losses, list = {}, {}
  for b, loss in ipairs(block_losses) do
    for i = 1, b == #block_losses and last_block or 16 do
      losses[#losses + 1] = i == 1 and loss or 0
      list[#list + 1] = { inputs = { #losses }, targets = { 0 }, split = "test" }
    end
  end
  list[#list + 1] = { inputs = { 0 }, targets = { 0 }, split = "train" }
  local Given = nn.class("spec.Given")
  function Given:init() self:parameter("w", {}, { value = 1 }) end
  function Given.forward(_, batch)
    local x = {}
    for row, id in ipairs(batch.ids:values()) do x[row] = losses[id] end
    return core.from(x, "f64", { #x })
  end
  local recipe = training.toy({ { { { 1 } } } }, {
    corpus = corpus.from { sequences = list, vocabulary = #losses + 1 },
    model = function() return Given {} end })
  return evaluate.session(recipe, world), #losses
end

describe("the sum over blocks", function()
  it("is taken in their order, on any number of ranks", function()
    for _, given in ipairs { { 1e16, 1, -1e16, 1, 1 }, { 1, 1e16, -1e16 }, { 0.1, 0.2, 0.3, 0.4 },
                             { 1e16, -1e16, 1, 1e16, 1, -1e16, 1 }, { 5 } } do
      local session, count = session_of(given, 3)
      local expected = 0.0
      for _, loss in ipairs(given) do expected = expected + loss end
      local result = evaluate.split(session, "test")
      assert.are.equal(expected / count, result.loss)
      assert.are.equal(count, result.tokens)
      assert.are.equal(count, result.sequences)
    end
  end)
end)
