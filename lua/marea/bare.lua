-- A model without a reducer (`replicate = false`): the recipe broadcasts its parameters and reduces
-- its gradients itself. Here is only what notices whether it did.

local fault = require "marea.fault"
local loss = require "marea.loss"
local way = require "marea.way"

local bare = {}

---@class marea.Bare
---@field gradients marea.tensor flat
---@field way marea.Way
---@field skip_reduction? boolean a control: the recipe's own reduction is turned into nothing
local Bare = {}
Bare.__index = Bare

--- Lets a recipe drive a model by hand: gives it model:loss(batch, weights), and watches the world
--- for a reduction of the whole gradient buffer.
---@param session marea.Session
---@param model marea.Module root module
---@param world marea.World
---@return marea.Bare driver
function bare.new(session, model, world)
  local self = setmetatable({ model = model, world = world, reductions = 0 }, Bare)
  self.gradients, self.way = model:gradients(), way.choose(model, world)
  function model.loss(_, batch, weights) return loss.weighted(session, model, batch, weights) end
  return self
end

--- Begins to count reductions of the whole gradient buffer.
function Bare:begin_window()
  self.reductions = 0
  self.world.intercept = function(tensor)
    if not tensor:is_same(self.gradients) then return false end
    self.reductions = self.reductions + 1
    return self.skip_reduction
  end
end

--- Takes model:loss away again.
function Bare:close() self.model.loss = nil end

--- Refuses, with code 1, a window that several ranks did not reduce exactly once.
function Bare:end_window()
  self.world.intercept = nil
  if self.world:size() > 1 and self.reductions ~= 1 then
    fault.raise(1, "accumulate reduced the gradients of the model over the ranks %d times; a " ..
                "window is reduced once (all_reduce of model:gradients())", self.reductions)
  end
end

return bare
