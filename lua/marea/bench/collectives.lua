-- Reductions over the ranks, in turns: marea's all-reduce beside MPI's own of the same buffer, a
-- mean beside a sum that is divided afterwards, and updates with and without overlap.

local core = require "marea.core"
local statistics = require "marea.bench.statistics"

local collectives = {}

local sizes = { 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24 } -- bytes

---@class marea.CollectiveRow
---@field bytes integer
---@field microseconds number of marea's all-reduce, a sum
---@field mpi_microseconds number of MPI_Allreduce in place
---@field to_mpi number their ratio, the median of pairs
---@field mean_to_sum number a mean over a sum with a division behind it, the median of pairs

local function timed(world, action)
  world:barrier()
  local began = core.seconds()
  action()
  return (core.seconds() - began) * 1e6
end

local function measure_size(world, bytes, repeats)
  local buffer = core.full({ bytes // 4 }, 1 / 64, "f32")
  local ours, theirs, means, divided = {}, {}, {}, {}
  local function turn(i)
    ours[i] = timed(world, function() world:all_reduce(buffer, "sum") end)
    buffer:fill_(1 / 64)
    theirs[i] = timed(world, function() core.plain_all_reduce(world.group, buffer) end)
    buffer:fill_(1 / 64)
    means[i] = timed(world, function() world:all_reduce(buffer, "mean") end)
    divided[i] = timed(world, function()
      world:all_reduce(buffer, "sum")
      buffer:scale_(1 / world:size())
    end)
    buffer:fill_(1 / 64)
  end
  turn(1)
  for i = 1, repeats do turn(i) end
  return { bytes = bytes, microseconds = statistics.median(ours),
           mpi_microseconds = statistics.median(theirs),
           to_mpi = statistics.ratio(ours, theirs).median,
           mean_to_sum = statistics.ratio(means, divided).median }
end

-- Milliseconds of updates whose reduction overlaps backward, and of such whose does not.
local function measure_overlap(session, advance, repeats)
  local times = { [true] = {}, [false] = {} }
  for i = 0, repeats do
    for _, overlap in ipairs { true, false } do
      session:drive { broadcast = false, overlap = overlap }
      local ms = timed(session.world, advance) / 1000
      if i > 0 then times[overlap][i] = ms end
    end
  end
  session:drive { broadcast = false }
  return { with_ms = statistics.median(times[true]), without_ms = statistics.median(times[false]),
           without_to_with = statistics.ratio(times[false], times[true]).median }
end

---@class marea.Collectives
---@field sizes marea.CollectiveRow[]
---@field overlap? {with_ms: number, without_ms: number, without_to_with: number} none without a
---  replica

--- Measures on all ranks, which all call it.
---@param session marea.Session
---@param advance fun() does one update
---@param repeats integer
---@return marea.Collectives
function collectives.measure(session, advance, repeats)
  local rows = {}
  for i, bytes in ipairs(sizes) do rows[i] = measure_size(session.world, bytes, repeats) end
  return { sizes = rows,
           overlap = session.recipe.replicate and
             measure_overlap(session, advance, repeats) or nil }
end

return collectives
