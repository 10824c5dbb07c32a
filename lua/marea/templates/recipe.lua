-- NAME: a recipe for marea. It says what is averaged over what; the engine does the arithmetic.
--
--     marea prepare NAME.lua                       what the corpus is, and who reads what
--     marea launch -n 2 parity NAME.lua            is the gradient that of the declared objective?
--     marea launch -n 2 train NAME.lua lr=0.001    any config value can be given as key=value
--     marea evaluate NAME.lua                      loss and accuracy on the test split

local marea = require "marea"
local nn, optim, objective = marea.nn, marea.optim, marea.objective
local sampler, schedule, corpus = marea.sampler, marea.schedule, marea.corpus

return marea.recipe {
  name = "NAME",

  -- Keys that every recipe knows, and two of its own (width, layers). An unknown key is refused.
  config = {
    seed = 20,
    ranks = 2,                  -- the plan is made for so many ranks
    updates = 200,
    accumulation = 2,           -- microbatches of a rank behind one update
    batch_size_per_rank = 8,    -- sequences in a microbatch
    lr = 3e-3,
    clip_norm = 1,              -- of the whole gradient, once per update
    evaluate_every = 50,        -- loss on the validation split
    save_every = 100,
    width = 64,
    layers = 2,
  },

  -- corpus.jsonl reads a JSON object a line, with the text in `field`; further `fields` come along
  -- with each sequence. corpus.text { path = "my.txt", separator = "line" } reads plain text. Where
  -- no field names the split, a tenth each is drawn for validation and test.
  corpus = function()
    return CORPUS
  end,

  -- Bytes: 256 symbols, a mark that begins a text, and one that pads.
  model = function(c)
    return nn.Transformer { vocabulary = 258, context = 128, width = c.width, heads = 4,
                            layers = c.layers, norm = "pre", activation = "gelu", tied = true,
                            dropout = c.dropout }
  end,

  optimizer = function(parameters, c)
    return optim.AdamW(parameters, { lr = c.lr, decay = 0.1 })
  end,

  -- A factor of lr for every update, from 1.
  schedule = function(c)
    return schedule.cosine { updates = c.updates, warmup = 20, final = 0.1 }
  end,

  -- plan[step][rank][microbatch] is a list of sequence ids; rank 0 stands at 1.
  plan = function(rows, c)
    return sampler.shuffled(rows, c)
  end,

  -- One loss per position, unweighted: weights belong to the objective.
  loss = function(model, batch)
    return nn.cross_entropy(model(batch), batch.targets)
  end,

  -- Units of your own: the weight of each position of a sequence, a number or a list with one
  -- number per supervised position. sequence: id, tokens, rank, and the corpus's fields. window:
  -- tokens, rank_tokens, total(field, value). Choose with objective=UNIT.
  units = {
UNITS
  },
  objective = objective.global_token, -- or "UNIT", objective.per_sequence, .mean_of_means

  -- The loop of one window. Forward and backward of all microbatches but the last are inside
  -- no_sync, so gradients are reduced over the ranks once. marea parity proves what you change.
  accumulate = function(replica, window)
    replica:zero_grad()
    for i, batch in ipairs(window) do
      local _ <close> = i < #window and replica:no_sync()
      replica:loss(batch, window:weights(batch)):backward()
    end
  end,
}
