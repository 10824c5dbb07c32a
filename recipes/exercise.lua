-- An exercise: rank 0 keeps its 12 tokens, rank 1 goes from 12 to 36. Rank 1's further tokens are
-- its first ones over again, so what it measures does not change, only how much of it there is: the
-- mean of the ranks' means must stay, and the token mean must move. `marea exercise` asks first,
-- then shows.

local marea = require "marea"
local nn, optim, objective, corpus = marea.nn, marea.optim, marea.objective, marea.corpus

-- 12 symbols each; the second one stands four times in the corpus, under four ids
local short = { 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3 }
local other = { 2, 2, 3, 1, 1, 0, 0, 2, 1, 1, 3, 3 }

local function sequence(symbols)
  local inputs = table.move(symbols, 1, #symbols - 1, 2, { 4 })        -- 4 begins a sequence
  return { inputs = inputs, targets = symbols, split = "train" }
end

return marea.recipe {
  name = "exercise",
  config = { seed = 20, ranks = 2, updates = 2, accumulation = 1, batch_size_per_rank = 3,
             lr = 0.1 },

  corpus = function()
    return corpus.from { vocabulary = 6, begin = 4, pad = 5, sequences = {
      sequence(short), sequence(other), sequence(other), sequence(other) } }
  end,

  model = function()
    return nn.Transformer { vocabulary = 6, classes = 4, context = 16, width = 32, heads = 2,
                            layers = 1 }
  end,

  optimizer = function(parameters, c) return optim.SGD(parameters, { lr = c.lr }) end,

  -- window 1: 12 and 12 tokens; window 2: 12 and 36
  plan = function() return { { { { 1 } }, { { 2 } } }, { { { 1 } }, { { 2, 3, 4 } } } } end,

  loss = function(model, batch) return nn.cross_entropy(model(batch), batch.targets) end,

  objective = objective.global_token,
}
