-- A GPT of four sizes, as benchmarks have them: pre-norm, GELU in its tanh form, biases, learned
-- positions, a tied head, AdamW. It trains on any text: `text=my.txt`, or JSON lines with a field
-- `text`. `marea bench recipes/gpt.lua size=M` measures its step.
--
-- 124M has the shape of GPT-2's smallest model, 124,439,808 parameters, and is for GPUs. GPT-2's
-- symbols are another set: a text with fewer commonest words than the vocabulary has places for
-- leaves rows of the embedding untrained, which costs a step the same. In f32 a rank holds 5.6 GB
-- at the peak (`--dry-run`, which computes two updates and so takes a minute on CPUs).

local marea = require "marea"
local nn, optim, objective = marea.nn, marea.optim, marea.objective
local sampler, schedule, corpus = marea.sampler, marea.schedule, marea.corpus

-- `batch` sequences of `length` symbols make a window of one microbatch a rank.
local sizes = {
  S = { layers = 2, width = 64, heads = 4, vocabulary = 64, batch = 8, length = 128 },
  M = { layers = 4, width = 256, heads = 8, vocabulary = 512, batch = 8, length = 128 },
  L = { layers = 6, width = 384, heads = 6, vocabulary = 8192, batch = 4, length = 256 },
  ["124M"] = { layers = 12, width = 768, heads = 12, vocabulary = 50257, batch = 4, length = 1024 },
}

local function shape_of(c)
  return sizes[c.size] or error(("size must be S, M, L or 124M, got %q"):format(c.size))
end

return marea.recipe {
  name = "gpt",
  config = { seed = 20, updates = 200, lr = 1e-3, clip_norm = 1, warmup = 20,
             size = "S", text = "data/verses.jsonl" },

  corpus = function(c)
    local shape = shape_of(c)
    return corpus.joined { path = c.text, vocabulary = shape.vocabulary, length = shape.length }
  end,

  model = function(c)
    local shape = shape_of(c)
    return nn.Transformer { vocabulary = shape.vocabulary, context = shape.length,
                            width = shape.width, heads = shape.heads, layers = shape.layers,
                            norm = "pre", activation = "gelu", tied = true, dropout = c.dropout }
  end,

  optimizer = function(parameters, c)
    return optim.AdamW(parameters, { lr = c.lr, beta2 = 0.95, decay = 0.1 })
  end,

  schedule = function(c)
    return schedule.cosine { updates = c.updates, warmup = c.warmup, final = 0.1 }
  end,

  -- The ranks share a window; the last one of an epoch is left out where it is short.
  plan = function(rows, c)
    return sampler.token_budget(rows, c, {
      tokens = shape_of(c).batch * shape_of(c).length // (c.ranks * c.accumulation),
      per = "microbatch", last = "drop" })
  end,

  loss = function(model, batch) return nn.cross_entropy(model(batch), batch.targets) end,

  objective = objective.global_token,

  accumulate = function(replica, window)
    replica:zero_grad()
    for i, batch in ipairs(window) do
      local _ <close> = i < #window and replica:no_sync()
      replica:loss(batch, window:weights(batch)):backward()
    end
  end,
}
