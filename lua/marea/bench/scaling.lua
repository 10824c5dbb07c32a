-- Scaling: a rank's own share of the work by itself, while the other ranks sleep, beside all ranks
-- together; the step, and the matrix products alone. Cores of one machine slow each other down even
-- where nothing is exchanged (caches, memory, clock), which the products show in the same turn; so
-- what counts is what the step keeps beyond that.

local core = require "marea.core"
local Session = require "marea.session"
local statistics = require "marea.bench.statistics"
local subject = require "marea.bench.subject"
local trainer_of = require "marea.trainer"
local world_of = require "marea.world"

local scaling = {}

local warm_up, least_turns = 2, 3
local turn_seconds, most_repeats = 0.25, 20 -- of a rank's steps in a turn
local nap_seconds = 0.002

---@class marea.Scaling
---@field step_alone_ms number the slowest rank's own share, by itself; median of turns
---@field step_together_ms number
---@field products_alone_ms number
---@field products_together_ms number
---@field step marea.Spread alone / together
---@field products marea.Spread alone / together
---@field ratio marea.Spread step over products: 1 where ranks cost nothing beyond shared hardware
---@field turns integer

-- The plan of this rank alone: its microbatches of each step.
local function own_plan(session)
  local list = {}
  for step, window in ipairs(session.plan) do list[step] = { window[session.rank + 1] } end
  return list
end

local function build_alone(session)
  local alone = Session.open(session.recipe, {
    world = world_of.alone(), corpus = session.corpus, plan = own_plan(session) }):build()
  return { advance = subject.advancer(trainer_of.new(alone)), products = subject.products(alone) }
end

-- Waits for all ranks without taking a core from those that work.
local function meet_asleep(world)
  local handle = world:barrier_async()
  while not handle:done() do core.nap(nap_seconds) end
  handle:wait()
end

local function run_products(part) return function() subject.run(part.products) end end

-- Each rank in turn; the slowest one's milliseconds of a step and of its products.
local function measure_alone(world, alone, count)
  local step, products = 0, 0
  for rank = 0, world:size() - 1 do
    meet_asleep(world)
    if rank == world:rank() then
      step = subject.median(count, alone.advance)
      products = subject.median(count, run_products(alone))
    end
  end
  meet_asleep(world)
  return subject.largest(world, step), subject.largest(world, products)
end

local function measure_together(world, all, count)
  world:barrier()
  local step = subject.median(count, all.advance)
  world:barrier()
  local products = subject.median(count, run_products(all))
  return subject.largest(world, step), subject.largest(world, products)
end

--- Measures on all ranks, which all call it.
---@param session marea.Session built
---@param all {advance: fun(), products: marea.products[]} of all ranks together
---@param seconds number how long turns are taken, about
---@return marea.Scaling
function scaling.measure(session, all, seconds)
  local world, alone = session.world, build_alone(session)
  local pace = measure_alone(world, alone, warm_up)
  local count = math.ceil(math.min(most_repeats, math.max(1, 1000 * turn_seconds / pace)))
  local began, t = core.seconds(), 0
  local steps, products = { {}, {} }, { {}, {} } -- alone, together
  repeat
    t = t + 1
    steps[1][t], products[1][t] = measure_alone(world, alone, count)
    steps[2][t], products[2][t] = measure_together(world, all, count)
    local left = subject.largest(world, seconds - (core.seconds() - began))
  until left <= 0 and t >= least_turns
  local step_shares, product_shares = {}, {}
  for i = 1, t do
    step_shares[i] = steps[1][i] / steps[2][i]
    product_shares[i] = products[1][i] / products[2][i]
  end
  return {
    step_alone_ms = statistics.median(steps[1]), step_together_ms = statistics.median(steps[2]),
    products_alone_ms = statistics.median(products[1]),
    products_together_ms = statistics.median(products[2]),
    step = statistics.spread(step_shares), products = statistics.spread(product_shares),
    ratio = statistics.ratio(step_shares, product_shares), turns = t,
  }
end

return scaling
