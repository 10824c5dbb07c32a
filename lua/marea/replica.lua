-- Replicas: a model whose parameters were broadcast from rank 0, with a reducer for its gradients.

local core = require "marea.core"
local loss = require "marea.loss"

---@class marea.Replica
local Replica = {}
Replica.__index = Replica
Replica.__call = function(self, ...) return self.model(...) end

--- Makes a replica of a materialized model on the ranks of a world. Its parameters become rank 0's.
---@param session table recipe, config, terms
---@param model table root module
---@param world table
---@param options? {reduction?: string, bucket_bytes?: integer, overlap?: boolean,
---  broadcast?: boolean} broadcast false leaves the ranks' parameters as they are
---@return marea.Replica
function Replica.new(session, model, world, options)
  options = options or {}
  if options.broadcast ~= false and world:size() > 1 then world:broadcast(model:values(), 0) end
  local reducer = core.reducer(model.unit, world.group, {
    reduction = options.reduction or "mean",
    bucket_bytes = options.bucket_bytes,
    overlap = options.overlap,
  })
  return setmetatable({ session = session, model = model, world = world, reducer = reducer },
                      Replica)
end

--- Sets all gradients to zero; the first thing of a window.
function Replica:zero_grad() self.reducer:zero_grad() end

--- A scope in which backward adds to this rank's gradients and nothing is sent. Both the forward
--- and its backward belong inside.
---@return userdata scope to be closed (`local _ <close> = ...`)
function Replica:no_sync() return self.reducer:no_sync() end

--- The weighted sum of recipe.loss over a microbatch, ready for backward.
---@param batch table one of the window's batches
---@param weights userdata|table<string, userdata> as window:weights gives them
---@return userdata loss a scalar
function Replica:loss(batch, weights)
  return self.reducer:attach(loss.weighted(self.session, self.model, batch, weights))
end

--- The flat buffer of all gradients.
---@return userdata tensor
function Replica:gradients() return self.model:gradients() end

--- The flat buffer of all parameters.
---@return userdata tensor
function Replica:values() return self.model:values() end

function Replica:begin_window(window) self.reducer:begin_window(#window) end

--- Stops following the parameters.
function Replica:close() self.reducer:close() end

function Replica:end_window() self.reducer:end_window() end

return Replica
