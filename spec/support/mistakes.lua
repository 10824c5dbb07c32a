-- Recipes with one mistake each, as fields of bad.place: small ones, so that the shapes in messages
-- are known.

local mistakes = {}

-- Ten symbols in five training sequences; microbatches of two.
local small = {
  corpus = "function() local list = {} for i = 1, 5 do list[i] = { inputs = { 4, i % 4 }, " ..
    "targets = { i % 4, 0 }, split = 'train' } end return corpus.from { vocabulary = 6, " ..
    "sequences = list } end",
  config = "{ updates = 2, batch_size_per_rank = 2, accumulation = 2, lr = 0.1 }",
}

--- The text of the usual losses.
mistakes.losses = "nn.cross_entropy(model(batch), batch.targets)"

--- The small recipe with other fields.
---@param fields table
---@return table fields
function mistakes.with(fields) return setmetatable(fields, { __index = small }) end

-- A function that puts a body into the text of one field.
local function field(name, text)
  return function(body) return mistakes.with { [name] = text:format(body) } end
end

--- The small recipe with the body of a callback.
mistakes.loss = field("loss", "function(model, batch) %s end")
mistakes.loop = field("accumulate", "function(replica, window) %s end")
mistakes.plan = field("plan", "function(rows, c) %s end")
mistakes.optimizer = field("optimizer", "function(m, c) %s end")
mistakes.corpus = field("corpus", "function() return %s end")

--- With the options of its Transformer behind extents that fit.
mistakes.model = field("model", "function() return nn.Transformer { vocabulary = 6, " ..
                       "classes = 4, context = 8, width = 8, %s } end")

--- With what its loop does with each microbatch.
mistakes.each = field("accumulate", "function(replica, window) replica:zero_grad() " ..
                      "for i, batch in ipairs(window) do %s end end")

--- With a unit of its own.
---@param body string
---@return table fields
function mistakes.unit(body)
  return mistakes.with { objective = '"mine"',
                         units = ("{ mine = function(s, window) %s end }"):format(body) }
end

return mistakes
