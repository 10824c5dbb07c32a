-- Prompts: a verse up to its first comma is given, the rest is to be said. Only what is to be said
-- has a target, so only that counts in any mean. `prompts=supervised objective=prompts:0.5` lets
-- prompts count half, in the same denominator.

local marea = require "marea"
local nn, optim, objective = marea.nn, marea.optim, marea.objective
local sampler, corpus = marea.sampler, marea.corpus

return marea.recipe {
  name = "prompts",
  config = { seed = 20, ranks = 2, updates = 60, accumulation = 2, batch_size_per_rank = 8,
             lr = 3e-3, clip_norm = 1, width = 64, layers = 2, prompts = "ignored" },

  -- {"prompt": "In the beginning, ", "completion": "..."}
  corpus = function(c)
    return corpus.jsonl { path = "data/prompts.jsonl", fields = { "book" }, context = 128,
                          prompts = c.prompts }
  end,

  model = function(c)
    return nn.Transformer { vocabulary = 258, context = 128, width = c.width, heads = 4,
                            layers = c.layers, norm = "pre", activation = "gelu", tied = true }
  end,

  optimizer = function(parameters, c) return optim.AdamW(parameters, { lr = c.lr }) end,

  -- an epoch's last window may be short: it has its own denominator
  plan = function(rows, c) return sampler.shuffled(rows, c, { last = "keep" }) end,

  objective = objective.global_token,          -- a mean over the bytes of completions
}
