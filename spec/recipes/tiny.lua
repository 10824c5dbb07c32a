-- A recipe for specs that train as a user does: 48 short sequences, a decoder of 2,000 parameters,
-- AdamW with warm-up, clipping, dropout. Its own keys say what is to go wrong, where and when.

local marea = require "marea"
local nn, optim, sampler = marea.nn, marea.optim, marea.sampler

-- Counting modulo 5, from a start and by a step that the sequence's number gives; 5 begins.
local function sequence(number, split)
  local inputs, targets, symbol = { 5 }, {}, number % 5
  for i = 1, 3 + number % 6 do
    targets[i] = symbol
    inputs[i + 1] = symbol
    symbol = (symbol + 1 + number % 2) % 5
  end
  inputs[#inputs] = nil
  return { inputs = inputs, targets = targets, split = split }
end

return marea.recipe {
  name = "tiny",
  config = { seed = 7, ranks = 2, updates = 8, stop = 4, accumulation = 2, batch_size_per_rank = 2,
             lr = 0.02, dropout = 0.1, clip_norm = 1, warmup = 3, kind = "AdamW", width = 16,
             bad_rank = 0, raise_at = 0, poison_at = 0, part_at_start = false },

  corpus = function()
    local list = {}
    for number = 1, 48 do list[number] = sequence(number, "train") end
    for number = 49, 58 do list[number] = sequence(number, "validation") end
    for number = 59, 96 do list[number] = sequence(number, "test") end
    return marea.corpus.from { sequences = list, vocabulary = 6, begin = 5 }
  end,

  model = function(c)
    return nn.Transformer { vocabulary = 6, classes = 5, context = 8, width = c.width,
                            hidden = 2 * c.width, heads = 2, layers = 1, dropout = c.dropout }
  end,

  optimizer = function(parameters, c)
    if c.part_at_start and marea.world():rank() == c.bad_rank then
      parameters:values():fill_(0.5)
    end
    if c.kind == "SGD" then return optim.SGD(parameters, { lr = c.lr, momentum = 0.9 }) end
    return optim.AdamW(parameters, { lr = c.lr })
  end,

  schedule = function(c) return marea.schedule.warmup { warmup = c.warmup } end,

  plan = function(rows, c) return sampler.shuffled(rows, c) end,

  accumulate = function(replica, window)
    local c = window.session.config
    local bad = marea.world():rank() == c.bad_rank and window.step or -1
    replica:zero_grad()
    if bad == c.raise_at then error("the tide went out") end
    for i, batch in ipairs(window) do
      local _ <close> = i < #window and replica:no_sync()
      local loss = replica:loss(batch, window:weights(batch))
      if bad == c.poison_at then loss = loss:scale(math.huge) end
      loss:backward()
    end
  end,
}
