-- Measures a recipe's training step beside what it is judged by, in turns: the matrix products of
-- that step alone (the floor), a large product (the ceiling), and peers such as PyTorch.
--
-- Machines are disturbed for seconds at a time, so ratios are taken of what was measured in the
-- same turn, and each turn begins with a look at how much of the time others take.

local core = require "marea.core"
local device = require "marea.bench.device"
local growth = require "marea.bench.growth"
local statistics = require "marea.bench.statistics"
local subject = require "marea.bench.subject"
local trainer_of = require "marea.trainer"
local training = require "marea.training"

local bench = {}

local warm_up = 3        -- updates
local turn_seconds = 0.1 -- of steps in a turn, about
local spin_seconds = 0.01
local most_steps, least_turns = 50, 3
local settling = 2       -- updates of which a GPU's peak of memory is taken

---@class marea.BenchOptions
---@field seconds number how long turns are taken
---@field peers? fun(session: marea.Session): marea.Torch[] started before threads are bound
---@field profile? boolean
---@field collectives? boolean
---@field scaling? boolean on several ranks only
---@field growth? boolean
---@field ceiling integer extent of the large product

local function over_ranks(world, values, reduction)
  if world:size() == 1 then return values end
  return world:all_reduce(core.host.from(values, "f64", { #values }), reduction):values()
end

-- Forward and one gradient of a large product, as a tape of its own.
local function ceiling_products(dtype, extent)
  local shape = { extent, extent }
  local a = core.full(shape, 1 / 128, dtype):requires_gradient_(true)
  return core.products(a:matmul(core.full(shape, 1 / 128, dtype)))
end

---@class marea.Turns milliseconds, medians of each turn
---@field step number[]
---@field floor number[]
---@field ceiling number[]
---@field copy number[] on GPUs
---@field peers number[][]
---@field lost number[] shares
---@field all_steps number[] every step, not only medians
---@field steps_a_turn integer

local function repeated(count, action)
  local times = {}
  for i = 1, count do times[i] = subject.milliseconds(action) end
  return times
end

-- The slowest rank's median: all wait for it.
local function slowest(world, times)
  return over_ranks(world, { statistics.median(times) }, "max")[1]
end

local function take_turn(turns, t, parts)
  local world, count = parts.world, turns.steps_a_turn
  world:barrier()
  turns.lost[t] = core.spin(spin_seconds)
  local times = repeated(count, parts.advance)
  table.move(times, 1, #times, #turns.all_steps + 1, turns.all_steps)
  turns.step[t] = statistics.median(times)
  turns.floor[t] = slowest(world, repeated(count, function() subject.run(parts.products) end))
  turns.ceiling[t] = slowest(world, repeated(1, function() parts.ceiling:run() end))
  if parts.copy then turns.copy[t] = slowest(world, repeated(1, parts.copy)) end
  for i, peer in ipairs(parts.peers) do
    turns.peers[i][t] = statistics.median(peer:steps(count))
  end
end

-- Rank 0 decides how many steps a turn has and when there are turns enough.
local function take_turns(parts, seconds)
  local world = parts.world
  local pace = slowest(world, repeated(warm_up, parts.advance)) / 1000
  local turns = { step = {}, floor = {}, ceiling = {}, copy = {}, peers = {}, lost = {},
                  all_steps = {} }
  turns.steps_a_turn = math.max(1, math.min(most_steps, math.ceil(turn_seconds / pace)))
  for i, peer in ipairs(parts.peers) do
    turns.peers[i] = {}
    peer:steps(warm_up)
  end
  local began, t = core.seconds(), 0
  repeat
    t = t + 1
    take_turn(turns, t, parts)
    local left = over_ranks(world, { seconds - (core.seconds() - began) }, "max")[1]
  until left <= 0 and t >= least_turns
  return turns
end

-- The most memory that this process has held, as the system counts it.
local function resident_peak()
  local file = io.open "/proc/self/status"
  if not file then return 0 end
  local text <close> = file
  return (tonumber(text:read("a"):match "VmHWM:%s*(%d+)") or 0) * 1024
end

-- `own` is marea's peak, of all ranks; a peer's is that of all its processes. On a GPU both are of
-- the GPU's memory, else as the system counts.
local function judge_peers(turns, parts, own)
  local list, better, least = {}, nil, math.huge
  for i, peer in ipairs(parts.peers) do
    list[i] = { ranks = peer.ranks, threads = peer.threads, version = peer.version,
                variant = peer.variant,
                ms = statistics.spread(turns.peers[i]), resident_peak = peer.peak,
                ratio = statistics.ratio(turns.peers[i], turns.step) }
    least = math.min(least, peer.peak)
    if not better or list[i].ms.median < list[better].ms.median then better = i end
  end
  return { variants = list, better = better, ratio = list[better].ratio,
           resident_ratio = own / least }
end

-- On GPUs: the copy's rate, and what the parameters' least traffic takes of a step at that rate.
local function judge_copies(record, turns, parts)
  local rate = parts.copy_bytes / statistics.median(turns.copy) * 1000
  record.device = core.device().model
  record.copy_bytes_per_second, record.least_bytes = rate, parts.least_bytes
  record.copy_share = parts.least_bytes / record.ms.median * 1000 / rate
end

local function judge(turns, parts, session)
  local world, ms = parts.world, statistics.spread(turns.all_steps)
  local own = subject.operations(parts.products)
  local sums = over_ranks(world, { own.single, own.batched, resident_peak(),
                                   parts.peak or core.memory().peak,
                                   subject.operations({ parts.ceiling }).single }, "sum")
  local gflop, gflop_ceiling = (sums[1] + sums[2]) / 1e9, sums[5] / 1e9
  local tokens = subject.tokens(session)
  local ceiling = gflop_ceiling / statistics.median(turns.ceiling) * 1000
  local speed = gflop / ms.median * 1000
  return {
    ms = ms, tokens_per_second = tokens / ms.median * 1000, tokens = tokens,
    gflop_per_step = { linear = sums[1] / 1e9, attention = sums[2] / 1e9, total = gflop },
    gflops = speed, ceiling_gflops = ceiling, ceiling_share = speed / ceiling,
    floor_ms = statistics.spread(turns.floor),
    step_to_floor = statistics.ratio(turns.step, turns.floor),
    memory_peak = sums[4], resident_peak = sums[3], bytes_sent = parts.bytes_sent(),
    disturbed = { share = statistics.spread(turns.lost).median,
                  most = math.max(table.unpack(turns.lost)) },
    turns = #turns.step, steps_a_turn = turns.steps_a_turn, bound = parts.bound,
  }
end

-- What GPUs have beside: the peak of some updates before anything else takes of their memory, and
-- copies.
local function add_device(parts, session, ceiling)
  core.memory_reset_peak()
  for _ = 1, settling do parts.advance() end
  core.finish()
  parts.peak = core.memory().peak
  parts.copy, parts.copy_bytes = device.copier(ceiling)
  parts.least_bytes = device.least_bytes(session)
end

--- Measures a recipe. All ranks call it; what counts is what rank 0 returns.
--- Errors: as training.run up to the first update; those of peers.
---@param recipe marea.Recipe
---@param world marea.World
---@param options marea.BenchOptions
---@return table record what bench.json holds beside machine and command
function bench.measure(recipe, world, options)
  local session = training.session(recipe, world)
  if options.growth then growth.options_of(session) end -- refuses before anything is measured
  local peers = options.peers and world:rank() == 0 and options.peers(session) or {}
  local trainer = trainer_of.new(session)
  local advance, bytes_sent = subject.advancer(trainer)
  local parts = {
    world = world, peers = peers, advance = advance, bytes_sent = bytes_sent,
    bound = core.bind_threads(),
  }
  if core.device().name ~= "cpu" then add_device(parts, session, options.ceiling) end
  parts.products = subject.products(session)
  parts.ceiling = ceiling_products(session.config.dtype, options.ceiling)
  core.memory_reset_peak()
  -- The table of growth needs time of its own: all of it is to fit into a minute.
  local turns = take_turns(parts, options.growth and options.seconds / 2 or options.seconds)
  local record = judge(turns, parts, session)
  record.parameters = session.model:count()
  if parts.copy then judge_copies(record, turns, parts) end
  if #peers > 0 then
    record.torch = judge_peers(turns, parts,
                               parts.copy and record.memory_peak or record.resident_peak)
  end
  for _, peer in ipairs(peers) do peer:close() end
  if options.profile then
    record.profile = require("marea.bench.profile").measure(trainer, advance,
                                                            math.max(10, turns.steps_a_turn))
  end
  if options.scaling then
    record.scaling = require("marea.bench.scaling").measure(
      session, { advance = advance, products = parts.products }, options.seconds)
  end
  if options.growth then
    record.growth = growth.measure(session, options.seconds)
  end
  if options.collectives then
    record.collectives = require("marea.bench.collectives").measure(session, advance, 20)
  end
  return record
end

return bench
