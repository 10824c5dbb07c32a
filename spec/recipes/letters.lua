-- A recipe of text for specs: 24 short lines that repeat, read as bytes by a decoder of a few
-- thousand parameters.

local marea = require "marea"
local nn, optim, sampler = marea.nn, marea.optim, marea.sampler

local words = { "ebb", "flow", "moon", "tide" }

local function line(number)
  local list = {}
  for i = 1, 2 + number % 3 do list[i] = words[(number + i) % #words + 1] end
  return table.concat(list, " ")
end

local function sequence(number, split)
  local inputs, targets, text = { 256 }, {}, line(number)
  for i = 1, #text do
    targets[i] = text:byte(i)
    inputs[i + 1] = targets[i]
  end
  inputs[#inputs] = nil
  return { inputs = inputs, targets = targets, split = split }
end

return marea.recipe {
  name = "letters",
  config = { seed = 3, ranks = 1, updates = 30, accumulation = 1, batch_size_per_rank = 4,
             lr = 0.01, width = 16, context = 24 },

  corpus = function()
    local list = {}
    for number = 1, 16 do list[number] = sequence(number, "train") end
    for number = 17, 20 do list[number] = sequence(number, "validation") end
    for number = 21, 24 do list[number] = sequence(number, "test") end
    return marea.corpus.from { sequences = list, vocabulary = 258, begin = 256, pad = 257 }
  end,

  model = function(c)
    return nn.Transformer { vocabulary = 258, context = c.context, width = c.width, heads = 2,
                            layers = 1, tied = true, dropout = 0.1 }
  end,

  optimizer = function(parameters, c) return optim.AdamW(parameters, { lr = c.lr }) end,

  plan = function(rows, c) return sampler.shuffled(rows, c) end,
}
