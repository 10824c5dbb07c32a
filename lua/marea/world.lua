-- The ranks of a run: every collective of the engine, under one object per process.
--
-- `intercept` lets the audit look at, or turn into nothing, an all_reduce of the recipe's own.

local core = require "marea.core"

--- All that a group of the engine does, and what it does is described there.
---@class marea.World: marea.group
---@field group marea.group
---@field told_way? boolean whether this run has said why it reduces through MPI
---@field intercept? fun(tensor: marea.tensor, reduction: string): boolean? true: nothing is reduced
local World = {}
World.__index = World

local delegated = {
  "rank", "size", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "send", "receive",
  "barrier", "all_reduce_async", "broadcast_async", "all_gather_async", "reduce_scatter_async",
  "all_to_all_async", "barrier_async", "send_async", "receive_async", "ledger", "local_rank",
  "local_size", "name", "board", "progress", "waited", "summed", "use_nccl", "carrier",
}
for _, name in ipairs(delegated) do
  World[name] = function(self, ...) return self.group[name](self.group, ...) end
end

--- Reduces a tensor element by element over all ranks, in place.
--- Errors: code 1 for a mean of integers, code 6 where ranks disagree or one is lost.
---@param tensor marea.tensor same dtype and number of elements on all ranks
---@param reduction marea.reduction
---@return marea.tensor tensor
function World:all_reduce(tensor, reduction)
  if self.intercept and self.intercept(tensor, reduction) then return tensor end
  return self.group:all_reduce(tensor, reduction)
end

function World:__tostring() return ("world<rank %d of %d>"):format(self:rank(), self:size()) end

local function wrap(group) return setmetatable({ group = group }, World) end

--- The group of the ranks that give the same color, ordered by key, then rank; all ranks call it.
---@param color integer at least 0; -1 joins no group
---@param key? integer 0 unless given
---@return marea.World? group nil for a rank that joins none
function World:split(color, key)
  local group = self.group:split(color, key)
  return group and wrap(group)
end

local world = {}

local current

--- The ranks of this run; a single one outside mpirun. Errors: code 4 where MPI cannot start.
---@return marea.World
function world.get()
  if not current then current = wrap(core.world()) end
  return current
end

--- A world of this process alone: what a rank computes by itself. All ranks make it together.
---@return marea.World
function world.alone() return world.get():split(world.get():rank()) end

return world
