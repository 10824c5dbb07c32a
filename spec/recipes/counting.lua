-- A recipe for specs that tells the next of five symbols from the last one and its parity, without
-- attention: embedding, norm, two projections with GELU, a residual, a head.

local marea = require "marea"
local nn, optim, sampler = marea.nn, marea.optim, marea.sampler

-- Counting modulo 5, from a start and by 1.
local function sequence(number, split)
  local inputs, targets, symbol = { 5 }, {}, number % 5
  for i = 1, 3 + number % 6 do
    targets[i] = symbol
    inputs[i + 1] = symbol
    symbol = (symbol + 1) % 5
  end
  inputs[#inputs] = nil
  return { inputs = inputs, targets = targets, split = split }
end

local Model = nn.class "Counting"

function Model:init(options)
  local width = options.width
  self:child("embedding", nn.Embedding { rows = 6, width = width, std = 0.5 })
  self:child("norm", nn.LayerNorm { width = width })
  self:child("up", nn.Linear { input = width, output = 2 * width, std = 0.2 })
  self:child("down", nn.Linear { input = 2 * width, output = width, std = 0.2 })
  self:child("head", nn.Linear { input = width, output = 5 })
end

function Model:forward(batch)
  local x = self.embedding(batch.ids)
  local inner = self.norm(x):linear_gelu_linear(self.up.weight, self.up.bias, self.down.weight,
                                                self.down.bias)
  return self.head(x:add(inner))
end

return marea.recipe {
  name = "counting",
  config = { seed = 7, ranks = 1, updates = 40, accumulation = 2, batch_size_per_rank = 4,
             lr = 0.01, clip_norm = 1, width = 16, kind = "AdamW" },

  corpus = function()
    local list = {}
    for number = 1, 48 do list[number] = sequence(number, "train") end
    for number = 49, 58 do list[number] = sequence(number, "validation") end
    for number = 59, 68 do list[number] = sequence(number, "test") end
    return marea.corpus.from { sequences = list, vocabulary = 6, begin = 5 }
  end,

  model = function(c) return Model { width = c.width } end,

  optimizer = function(parameters, c)
    if c.kind == "SGD" then return optim.SGD(parameters, { lr = c.lr, momentum = 0.9 }) end
    return optim.AdamW(parameters, { lr = c.lr })
  end,

  plan = function(rows, c) return sampler.shuffled(rows, c) end,
}
