-- Data parallelism with nothing but all_reduce: no replica, no reducer, no scope. The recipe sends
-- round its parameters, adds up its gradients, and divides once. It passes the same parity as
-- recipes/minimum.lua, and gives the same bits.

local marea = require "marea"
local nn, optim, objective = marea.nn, marea.optim, marea.objective
local sampler, corpus = marea.sampler, marea.corpus
local world = marea.world()

return marea.recipe {
  name = "by_hand",
  replicate = false,
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

  optimizer = function(model, c)
    world:broadcast(model:values(), 0)          -- all ranks begin with rank 0's parameters
    return optim.SGD(model, { lr = c.lr })
  end,

  plan = function(rows, c) return sampler.by_length(rows, c, { limit = 64 }) end,

  loss = function(model, batch) return nn.cross_entropy(model(batch), batch.targets) end,

  objective = objective.global_token,

  -- 1/N and the factor W are in window:weights; the sum over ranks is divided by W once
  accumulate = function(model, window)
    model:zero_grad()
    for _, batch in ipairs(window) do
      model:loss(batch, window:weights(batch)):backward()
    end
    local gradients = model:gradients()
    world:all_reduce(gradients, "sum")
    gradients:scale_(1 / world:size())
  end,
}
