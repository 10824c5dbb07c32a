-- Real text: verses of the King James Version, read as bytes by a small decoder. Verses have 17 to
-- 128 bytes, so the ranks' windows never hold equally many tokens: whether the loss is a mean over
-- tokens, over verses or over ranks is a choice, made with objective=.

local marea = require "marea"
local nn, optim, objective = marea.nn, marea.optim, marea.objective
local sampler, schedule, corpus = marea.sampler, marea.schedule, marea.corpus

return marea.recipe {
  name = "verses",
  config = { seed = 20, ranks = 2, updates = 60, accumulation = 2, batch_size_per_rank = 8,
             lr = 3e-3, dropout = 0, clip_norm = 1, warmup = 10, width = 96, layers = 2,
             save_every = 20 },

  corpus = function()
    return corpus.jsonl { path = "data/verses.jsonl", field = "text", split = "split",
                          fields = { "book" }, context = 128 }
  end,

  -- 256 bytes, a mark that begins a verse, and one that pads
  model = function(c)
    return nn.Transformer { vocabulary = 258, context = 128, width = c.width, heads = 4,
                            layers = c.layers, norm = "pre", activation = "gelu", tied = true,
                            dropout = c.dropout }
  end,

  optimizer = function(parameters, c)
    return optim.AdamW(parameters, { lr = c.lr, beta2 = 0.95, decay = 0.1 })
  end,

  schedule = function(c)
    return schedule.cosine { updates = c.updates, warmup = c.warmup, final = 0.1 }
  end,

  plan = function(rows, c) return sampler.shuffled(rows, c) end,

  loss = function(model, batch) return nn.cross_entropy(model(batch), batch.targets) end,

  objective = objective.global_token,          -- or .mean_of_means, .per_sequence: objective=NAME

  accumulate = function(replica, window)
    replica:zero_grad()
    for i, batch in ipairs(window) do
      local _ <close> = i < #window and replica:no_sync()
      replica:loss(batch, window:weights(batch)):backward()
    end
  end,
}
