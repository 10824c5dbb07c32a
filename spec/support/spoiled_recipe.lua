-- A small recipe that trains, as text, with fields to be replaced by bad ones.

local order = { "name", "config", "corpus", "model", "optimizer", "plan", "loss", "objective",
                "units", "accumulate", "schedule", "replicate" }

-- Ids 1 to 8 are for training, 9 and 10 for validation, 11 and 12 for tests.
local base = {
  name = [["tide"]],
  config = "{ updates = 2, batch_size_per_rank = 2, lr = 0.1 }",
  corpus = "function() return corpus.symbols { train = 8, validation = 2, test = 2 } end",
  model = "function() return nn.Transformer { vocabulary = 6, classes = 4, context = 128, " ..
    "width = 8, heads = 2, layers = 1 } end",
  optimizer = "function(model, c) return optim.SGD(model, { lr = c.lr }) end",
  plan = "function(rows, c) return sampler.shuffled(rows, c) end",
}

local head = [[
local marea = require "marea"
local nn, optim, sampler, corpus = marea.nn, marea.optim, marea.sampler, marea.corpus
local world = marea.world()
]]

--- The text of a recipe, one field a line.
---@param fields? table<string, string|false> Lua text of fields that differ from those of a recipe
---  that trains; false leaves one out; `head` stands before the recipe, `tail` behind its fields
---@return string text
---@return table<string, integer> lines the line on which each field begins, and `recipe`
local function spoiled_recipe(fields)
  fields = fields or {}
  local text, lines = head, {}
  local function add(name, piece)
    lines[name] = select(2, text:gsub("\n", "")) + 1
    text = text .. piece .. "\n"
  end
  if fields.head then add("head", fields.head) end
  add("recipe", "return marea.recipe {")
  for _, name in ipairs(order) do
    local value = fields[name]
    if value == nil then value = base[name] end
    if value then add(name, ("  %s = %s,"):format(name, value)) end
  end
  if fields.tail then add("tail", "  " .. fields.tail) end
  return text .. "}\n", lines
end

return spoiled_recipe
