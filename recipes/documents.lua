-- Documents: every book of the Bible counts the same in a window, however many of its verses lie
-- there, on whatever microbatches and ranks. `objective=global_token` weighs every byte alike
-- instead, `objective=per_sequence` every verse.

local marea = require "marea"
local nn, optim, objective = marea.nn, marea.optim, marea.objective
local sampler, corpus = marea.sampler, marea.corpus

return marea.recipe {
  name = "documents",
  config = { seed = 20, ranks = 2, updates = 60, batch_size_per_rank = 6, lr = 3e-3, clip_norm = 1,
             width = 64, layers = 2, budget = 1000 },

  -- long = "split" would cut documents longer than the context into pieces, which keep theirs:
  -- objective.per "document"
  corpus = function()
    return corpus.jsonl { path = "data/verses.jsonl", fields = { "book" }, context = 128 }
  end,

  model = function(c)
    return nn.Transformer { vocabulary = 258, context = 128, width = c.width, heads = 4,
                            layers = c.layers, norm = "pre", activation = "gelu", tied = true }
  end,

  optimizer = function(parameters, c) return optim.AdamW(parameters, { lr = c.lr }) end,

  -- as many verses as fit into the budget of each rank, so ranks hold different numbers of
  -- microbatches
  plan = function(rows, c) return sampler.token_budget(rows, c, { tokens = c.budget }) end,

  objective = objective.per "book",
}
