-- Small trainings for specs: a toy whose gradient is worked out on paper, a small Transformer, and
-- what runs a window of either through the library's own window, objective and replica.

local core = require "marea.core"
local marea = require "marea"
local parity = require "marea.parity"
local recipe_of = require "marea.recipe"
local reference = require "marea.reference"
local Session = require "marea.session"
local Window = require "marea.window"

local nn, corpus, optim = marea.nn, marea.corpus, marea.optim

local training = {}

--- A loaded recipe. `given.steps` is its plan as data, or `given.plan` makes one; objective,
--- accumulate, loss, units and replicate are as in a recipe. Anything may be overridden by name.
---@param given table {corpus, model, steps or plan, config, ...}
---@param overrides? table config values
---@return table recipe
function training.recipe(given, overrides)
  local config = { seed = 20, lr = 0.1 }
  if given.steps then config.updates, config.ranks = #given.steps, #given.steps[1] end
  for key, value in pairs(given.config or {}) do config[key] = value end
  return recipe_of.resolve(recipe_of.declare {
    name = "spec", config = config,
    corpus = type(given.corpus) == "function" and given.corpus or
      function() return given.corpus end,
    model = given.model,
    plan = given.plan or function() return given.steps end,
    optimizer = given.optimizer or function(model, c) return optim.SGD(model, { lr = c.lr }) end,
    loss = given.loss, objective = given.objective, units = given.units,
    accumulate = given.accumulate, replicate = given.replicate,
  }, { overrides = overrides })
end

-- --- the toy of the public cases -----------------------------------------------------------------

-- One parameter w = 1. Symbol i of the vocabulary has a value x; a position's loss is w x, so the
-- gradient of a sum of losses is the sum itself. Symbol 0 pads and is poisonous.
local Toy = nn.class("spec.Toy")

function Toy:init(options)
  self.losses, self.real = options.losses, options.dtype
  self:parameter("w", {}, { value = 1 })
end

function Toy:forward(batch)
  local x = {}
  for row, id in ipairs(batch.ids:values()) do x[row] = self.losses[id] or 1e9 end
  return core.from(x, self.real, { #x }):multiply(self.w)
end

-- Adds a sequence of items to a list, and their losses to the toy's values; returns its id.
local function add_items(items, split, sequences, values)
  local inputs, targets = {}, {}
  for i, item in ipairs(items) do
    local masked = type(item) == "table"
    values[#values + 1] = masked and item[1] or item
    inputs[i] = #values
    targets[i] = masked and -100 or items.classes and items.classes[i] or 0
  end
  sequences[#sequences + 1] = { inputs = inputs, targets = targets, split = split,
                                fields = items.fields }
  return #sequences
end

--- A toy from its windows: each has ranks of microbatches of sequences of items. An item is the
--- loss of a supervised position; {5} is one of loss 5 that has no target. All sequences have
--- `fields`, or none has; `classes` are the targets of their items, 0 unless given; ids count from
--- 1 in the order written.
---@param windows table[] window -> rank -> microbatch -> sequence -> item
---@param given? table further fields of the recipe; validation: a list of sequences of that split
---@param overrides? table
---@return table recipe
function training.toys(windows, given, overrides)
  local sequences, values, steps = {}, {}, {}
  for w, ranks in ipairs(windows) do
    steps[w] = {}
    for r, microbatches in ipairs(ranks) do
      steps[w][r] = {}
      for m, list in ipairs(microbatches) do
        local ids = {}
        for s, items in ipairs(list) do ids[s] = add_items(items, "train", sequences, values) end
        steps[w][r][m] = ids
      end
    end
  end
  for _, items in ipairs(given and given.validation or {}) do
    add_items(items, "validation", sequences, values)
  end
  sequences[#sequences + 1] = { inputs = { 0 }, targets = { 0 }, split = "test", -- in no window
                                fields = sequences[1] and sequences[1].fields }
  local whole = {
    corpus = corpus.from { sequences = sequences, vocabulary = #values + 1 },
    steps = steps, config = { dtype = "f64" },
    model = function(c) return Toy { losses = values, dtype = c.dtype } end,
    loss = function(model, batch) return model(batch) end,
  }
  for key, value in pairs(given or {}) do whole[key] = value end
  return training.recipe(whole, overrides)
end

--- A toy of one window.
---@param ranks table[] rank -> microbatch -> sequence -> item
---@param given? table as of training.toys
---@param overrides? table
---@return table recipe
function training.toy(ranks, given, overrides) return training.toys({ ranks }, given, overrides) end

-- --- a small Transformer -------------------------------------------------------------------------

--- Sequences of 2 to 12 symbols of 7; in every third the first target does not count.
---@param count integer
---@return table corpus
function training.sequences(count)
  local stream, sequences = core.stream(7, 1), {}
  for i = 1, count do
    local inputs, targets = {}, {}
    for j = 1, 1 + stream:integer(11) do
      inputs[j], targets[j] = stream:integer(7) - 1, stream:integer(7) - 1
    end
    if i % 3 == 0 then targets[1] = -100 end
    sequences[i] = { inputs = inputs, targets = targets, split = "train" }
  end
  return corpus.from { sequences = sequences, vocabulary = 7, pad = 0 }
end

--- One layer of width 16; `activation` and `dropout` come from the config.
function training.transformer(c)
  return nn.Transformer { vocabulary = 7, context = 16, width = 16, hidden = 32, heads = 2,
                          layers = 1, activation = c.activation, dropout = c.dropout }
end

--- A recipe of the small Transformer on the ranks of a plan.
---@param given table as of training.recipe; config.activation: gelu
---@param overrides? table
---@return table recipe
function training.small(given, overrides)
  local whole = { corpus = training.sequences(60), model = training.transformer }
  for key, value in pairs(given) do whole[key] = value end
  whole.config = { activation = "gelu" }
  for key, value in pairs(given.config or {}) do whole.config[key] = value end
  return training.recipe(whole, overrides)
end

--- A plan of one step: `counts[rank][microbatch]` says how many sequences, dealt in order of ids.
---@param counts integer[][]
---@return table steps
function training.dealt(counts)
  local step, id = {}, 0
  for r, microbatches in ipairs(counts) do
    step[r] = {}
    for m, size in ipairs(microbatches) do
      step[r][m] = {}
      for s = 1, size do
        id = id + 1
        step[r][m][s] = id
      end
    end
  end
  return { step }
end

-- --- running windows -----------------------------------------------------------------------------

--- A session with its model built.
---@param recipe table
---@param options? table as of Session:build
---@return marea.Session
function training.session(recipe, options) return Session.open(recipe):build(options) end

--- What the ranks of a plan compute together, by this process playing each in turn: the recipe's
--- accumulate on every rank's window, then the mean or the sum over the ranks.
---@param session marea.Session
---@param step? integer 1
---@return userdata gradient flat, a copy
function training.play(session, step)
  step = step or 1
  local ranks = #session.plan[step]
  local is_mean = session.config.reduction == "mean"
  local flat = session.model:gradients()
  local sum = core.zeros(flat:shape(), flat:dtype())
  for rank = 0, ranks - 1 do
    local window = Window.new(session, step, rank):count()
    window.factor = is_mean and ranks or 1
    session:accumulate(window)
    sum:add_scaled_(is_mean and 1 / ranks or 1, flat)
  end
  return sum
end

--- The gradient of a window on the ranks of the session's world.
---@param session marea.Session
---@param step? integer 1
---@return userdata gradient flat, a copy
function training.run(session, step)
  session:accumulate(session:window(step or 1))
  return session.model:gradients():copy()
end

--- The reference of a window: by a model of its own with the session's parameters.
---@param session marea.Session
---@param step? integer 1
---@return table result as of reference.gradient
function training.reference(session, step)
  local model = session.recipe.model(session.config)
  model:materialize { seed = 0, dtype = session.config.dtype }
  model:values():copy_(session.model:values())
  return reference.gradient(session, model, step or 1)
end

--- Whether a tensor has the same bits on all ranks; all ask together.
---@param world marea.World
---@param tensor userdata
---@return boolean
function training.equal_on_all(world, tensor)
  local mine = math.tointeger(tonumber(tensor:hash():sub(1, 15), 16))
  for _, other in ipairs(world:all_gather(core.from({ mine }, "i64")):values()) do
    if other ~= mine then return false end
  end
  return true
end

--- parity's gate for f64, for core.compare.
training.gate = parity.gates.f64

return training
