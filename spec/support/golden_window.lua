-- spec/golden/minimum_window.safetensors as a recipe: the model of recipes/minimum.lua, one window
-- of 2 ranks x 2 microbatches x 4 sequences, and gradients under three objectives that another
-- program computed in f64 and stored in f32.

local core = require "marea.core"
local json = require "marea.json"
local marea = require "marea"
local training = dofile "spec/support/training.lua"

local nn = marea.nn

local golden = {}

local file = core.safetensors.open("spec/golden/minimum_window.safetensors")
golden.metadata = file:metadata()
golden.objectives = { "global_token", "mean_of_means", "per_sequence" }

-- Position t reads the beginning mark 4, then the tokens before t, and predicts token t.
local function corpus_of_file()
  local tokens, sequences, first = file:tensor("tokens"):values(), {}, 1
  for s, length in ipairs(file:tensor("lengths"):values()) do
    local targets = table.move(tokens, first, first + length - 1, 1, {})
    sequences[s] = { inputs = table.move(targets, 1, length - 1, 2, { 4 }), targets = targets,
                     split = "train" }
    first = first + length
  end
  return marea.corpus.from { sequences = sequences, vocabulary = 6, begin = 4, pad = 5 }
end

--- The recipe. `losses`, when given, takes the loss sum of each microbatch that is run.
---@param overrides? table
---@param losses? number[]
---@return table recipe
function golden.recipe(overrides, losses)
  return training.recipe({
    corpus = corpus_of_file(),
    steps = training.dealt { { 4, 4 }, { 4, 4 } },
    model = function()
      return nn.Transformer { vocabulary = 6, classes = 4, context = 128, width = 128, hidden = 256,
                              heads = 4, layers = 2, norm = "post", activation = "relu" }
    end,
    loss = function(model, batch)
      local loss = nn.cross_entropy(model(batch), batch.targets)
      if losses then losses[#losses + 1] = loss:total() end
      return loss
    end,
  }, overrides)
end

--- A session with the file's parameters.
---@param overrides? table
---@param losses? number[]
---@return marea.Session
function golden.session(overrides, losses)
  local session = training.session(golden.recipe(overrides, losses))
  for _, range in ipairs(session.model.unit:ranges()) do
    local stored = file:tensor("param." .. range.name):to(session.config.dtype)
    session.model.unit:parameter(range.name):copy_(stored)
  end
  return session
end

--- The stored gradient of an objective in the layout of a model.
---@param model table
---@param objective string
---@return userdata flat f32
function golden.gradient(model, objective)
  local stored, first = file:tensor("grad." .. objective), 1
  local flat = core.zeros(model:gradients():shape(), "f32")
  local order = json.decode(golden.metadata.gradient_order)
  for i, range in ipairs(model.unit:ranges()) do
    assert(order[i] == range.name, "parameters in another order than the file's")
    flat:slice(range.offset + 1, range.count):copy_(stored:slice(first, range.count))
    first = first + range.count
  end
  assert(first == stored:count() + 1, "the file holds another number of components")
  return flat
end

--- A number of the file's metadata.
---@param key string
---@return number
function golden.number(key) return assert(tonumber(golden.metadata[key])) end

return golden
