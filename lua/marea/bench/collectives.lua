-- Reductions over the ranks, in turns: marea's all-reduce in a shared window, and of a buffer
-- elsewhere, beside MPI's own; a mean beside a sum that is divided afterwards; and updates with and
-- without overlap.

local core = require "marea.core"
local statistics = require "marea.bench.statistics"

local collectives = {}

local sizes = { 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24 } -- bytes

---@class marea.CollectiveRow
---@field bytes integer
---@field window_microseconds? number of marea's all-reduce, a sum, of gradients in a shared
---  window; none where the ranks have none
---@field window_to_mpi? number over MPI_Allreduce, the median of pairs
---@field microseconds number of marea's all-reduce, a sum, of any other buffer
---@field mpi_microseconds number of MPI_Allreduce in place
---@field to_mpi number their ratio, the median of pairs
---@field mean_to_sum number a mean over a sum with a division behind it, the median of pairs; in
---  the window where there is one

local function timed(world, action)
  core.finish()
  world:barrier()
  local began = core.seconds()
  action()
  core.finish()
  return (core.seconds() - began) * 1e6
end

-- Gradients of as many bytes, in a shared window; nil where the ranks have none.
local function windowed(world, bytes)
  local unit = core.unit({ { name = "all", shape = { bytes // 4 } } }, "f32")
  local way = unit:share_gradients(world.group)
  return way:find("^shared window") and unit:gradients() or nil
end

local function measure_size(world, bytes, repeats)
  local buffer = core.full({ bytes // 4 }, 1 / 64, "f32")
  local plain = buffer:device() == "cpu" and buffer or
    core.host.full({ bytes // 4 }, 1 / 64, "f32")
  local window = windowed(world, bytes)
  local best = window or buffer
  local inside, ours, theirs, means, divided = {}, {}, {}, {}, {}
  local function time(list, i, tensor, action)
    tensor:fill_(1 / 64)
    list[i] = timed(world, function() action(tensor) end)
  end
  local function sum(tensor) world:all_reduce(tensor, "sum") end
  local function turn(i)
    if window then time(inside, i, window, sum) end
    time(ours, i, buffer, sum)
    time(theirs, i, plain, function(tensor) core.plain_all_reduce(world.group, tensor) end)
    time(means, i, best, function(tensor) world:all_reduce(tensor, "mean") end)
    time(divided, i, best, function(tensor)
      world:all_reduce(tensor, "sum")
      tensor:scale_(1 / world:size())
    end)
  end
  turn(1)
  for i = 1, repeats do turn(i) end
  return { bytes = bytes, microseconds = statistics.median(ours),
           mpi_microseconds = statistics.median(theirs),
           window_microseconds = window and statistics.median(inside),
           window_to_mpi = window and statistics.ratio(inside, theirs).median,
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
