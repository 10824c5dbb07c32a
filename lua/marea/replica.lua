-- Replicas: a model whose parameters were broadcast from rank 0, with a reducer for its gradients.

local core = require "marea.core"
local fault = require "marea.fault"
local loss = require "marea.loss"
local strict = require "marea.strict"
local way = require "marea.way"

---@class marea.ReplicaOptions: marea.reducer_options
---@field broadcast? boolean false leaves the ranks' parameters as they are (default true)

---@class marea.Replica
---@field model marea.Module
---@field world marea.World
---@field way marea.Way
---@overload fun(batch: marea.Batch): marea.tensor the model's own call
local Replica = {}
Replica.__index = Replica
Replica.__name = "replica"
Replica.__call = function(self, ...) return self.model(...) end

local function check_self(self, name)
  if getmetatable(self) ~= Replica then
    fault.raise(1, "functions of a replica are called with a colon: replica:%s(...)", name)
  end
end

--- Makes a replica of a materialized model on the ranks of a world. Its parameters become rank 0's.
---@param session marea.Session recipe, config, terms
---@param model marea.Module root module, materialized
---@param world marea.World
---@param options? marea.ReplicaOptions
---@return marea.Replica
function Replica.new(session, model, world, options)
  options = options or {}
  if options.broadcast ~= false and world:size() > 1 then world:broadcast(model:values(), 0) end
  local chosen = way.choose(model, world)
  local reducer = core.reducer(model.unit, world.group, {
    reduction = options.reduction or "mean",
    bucket_bytes = options.bucket_bytes,
    overlap = options.overlap,
  })
  return setmetatable({ session = session, model = model, world = world, reducer = reducer,
                        way = chosen }, Replica)
end

--- Sets all gradients to zero; the first thing of a window.
function Replica:zero_grad()
  check_self(self, "zero_grad")
  self.reducer:zero_grad()
end

--- A scope in which backward adds to this rank's gradients and nothing is sent. Both the forward
--- and its backward belong inside.
---@return marea.no_sync scope to be closed (`local _ <close> = ...`)
function Replica:no_sync()
  check_self(self, "no_sync")
  return self.reducer:no_sync()
end

--- The weighted sum of recipe.loss over a microbatch, ready for backward.
--- Errors, code 1: no batch or no weights; a loss that has not the shape its term asks for.
---@param batch marea.Batch of the window
---@param weights marea.Weights as window:weights gives them
---@return marea.tensor loss a scalar
function Replica:loss(batch, weights)
  check_self(self, "loss")
  return self.reducer:attach(loss.weighted(self.session, self.model, batch, weights))
end

--- The flat buffer of all gradients.
---@return marea.tensor tensor [elements with gaps]; shares memory
function Replica:gradients()
  check_self(self, "gradients")
  return self.model:gradients()
end

--- The flat buffer of all parameters.
---@return marea.tensor tensor [elements with gaps]; shares memory
function Replica:values()
  check_self(self, "values")
  return self.model:values()
end

--- Opens a window of as many backwards as it has batches; no optimizer steps until it is closed.
---@param window marea.Window
function Replica:begin_window(window) self.reducer:begin_window(#window) end

--- Stops following the parameters.
function Replica:close() self.reducer:close() end

--- Closes the window.
--- Errors, code 1: gradients that were not reduced, or another number of backwards.
function Replica:end_window() self.reducer:end_window() end

return strict.names(Replica, "a replica", { code = 1, optional = { "skip_reduction" } })
