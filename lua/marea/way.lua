-- How gradients are reduced over the ranks: in memory that the ranks of a host share, by MPI, or by
-- NCCL between GPUs.

local way = {}

-- Once in a run, on rank 0.
local function tell(model, world, why)
  if why == "" or world:rank() ~= 0 or world.told_way then return end
  world.told_way = true
  local gradients = model:gradients()
  local bytes = gradients:count() * (gradients:dtype() == "f64" and 8 or 4)
  io.stderr:write(("marea: the gradients of %.1f MB x %d ranks do not fit into shared memory " ..
                   "(%s): reducing through MPI\n"):format(bytes / 1e6, world:local_size(), why))
end

---@class marea.Way
---@field name string as unit:share_gradients has it
---@field problem? string what was in the way of shared memory

--- Moves the gradients of a model into memory that the ranks of a host share, and says so where
--- they do not fit; all ranks call it.
---@param model marea.Module root module, materialized
---@param world marea.World
---@return marea.Way
function way.choose(model, world)
  local name, why = model.unit:share_gradients(world.group)
  tell(model, world, why)
  return { name = name, problem = why ~= "" and why or nil }
end

return way
