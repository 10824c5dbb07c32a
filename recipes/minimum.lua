-- The smallest run that shows what is averaged over what. Even ranks read short sequences and odd
-- ranks long ones, so the mean of the ranks' means is not the mean over the tokens.

local marea = require "marea"
local nn, optim, objective = marea.nn, marea.optim, marea.objective
local sampler, corpus = marea.sampler, marea.corpus

return marea.recipe {
  name = "minimum",
  config = { seed = 20, ranks = 2, updates = 100, stop = 50, accumulation = 2,
             batch_size_per_rank = 4, lr = 0.1, dropout = 0 },

  corpus = function(c)
    return corpus.symbols { seed = c.seed, train = 1024, validation = 128, test = 256 }
  end,

  model = function(c)
    return nn.Transformer { vocabulary = 6, classes = 4, context = 128, width = 128, hidden = 256,
                            heads = 4, layers = 2, norm = "post", activation = "relu",
                            causal = true, dropout = c.dropout }
  end,

  optimizer = function(parameters, c) return optim.SGD(parameters, { lr = c.lr }) end,

  -- plan[step][rank][microbatch] is a list of sequence ids; even ranks draw short sequences, odd
  -- ranks long ones
  plan = function(rows, c) return sampler.by_length(rows, c, { limit = 64 }) end,

  -- one loss per supervised position, unweighted
  loss = function(model, batch) return nn.cross_entropy(model(batch), batch.targets) end,

  objective = objective.global_token, -- or .mean_of_means, .per_sequence, or a unit of your own

  accumulate = function(replica, window)
    replica:zero_grad()
    for i, batch in ipairs(window) do
      local _ <close> = i < #window and replica:no_sync()   -- forward and backward are both inside
      replica:loss(batch, window:weights(batch)):backward() -- the weighted sum of recipe.loss
    end
  end,
}
