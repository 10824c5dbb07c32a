-- The ranks of a run: every collective of the engine, under one object per process.
--
-- `intercept` lets the audit look at, or turn into nothing, an all_reduce of the recipe's own.

local core = require "marea.core"

---@class marea.World
local World = {}
World.__index = World

local delegated = {
  "rank", "size", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "send", "receive",
  "barrier", "all_reduce_async", "broadcast_async", "all_gather_async", "reduce_scatter_async",
  "all_to_all_async", "barrier_async", "send_async", "receive_async", "ledger",
}
for _, name in ipairs(delegated) do
  World[name] = function(self, ...) return self.group[name](self.group, ...) end
end

--- Reduces a tensor in place over all ranks.
---@param tensor userdata
---@param operation string "sum", "mean", "max" or "min"; a mean of integers is refused
---@return userdata tensor
function World:all_reduce(tensor, operation)
  if self.intercept and self.intercept(tensor, operation) then return tensor end
  return self.group:all_reduce(tensor, operation)
end

local function wrap(group) return setmetatable({ group = group }, World) end

--- The group of the ranks that give the same color, ordered by key, then rank.
---@param color integer at least 0; -1 joins no group
---@param key? integer
---@return marea.World? group nil for a rank that joins none
function World:split(color, key)
  local group = self.group:split(color, key)
  return group and wrap(group)
end

local world = {}

local current

--- The ranks of this run; a single one outside mpirun.
---@return marea.World
function world.get()
  if not current then current = wrap(core.world()) end
  return current
end

--- A world of this process alone: what a rank computes by itself. All ranks make it together.
---@return marea.World
function world.alone() return world.get():split(world.get():rank()) end

return world
