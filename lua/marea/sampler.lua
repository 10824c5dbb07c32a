-- Samplers: they make a plan before a run begins. plan[step][rank][microbatch] is a list of
-- sequence ids; `rank` is a list index here, so rank 0 stands at 1.
--
-- Draws come from counter-based streams of seed + 10 that nothing else uses, so a plan depends on
-- the rows and the config only, and the beginning of a longer plan is the shorter plan.

local core = require "marea.core"
local fault = require "marea.fault"
local options = require "marea.options"

local sampler = {}

local function ids_of(rows)
  local ids = {}
  for i, row in ipairs(rows) do ids[i] = row.id end
  return ids
end

-- Shuffles a list in place (Fisher-Yates).
local function shuffle_(list, stream)
  for i = #list, 2, -1 do
    local j = stream:integer(i)
    list[i], list[j] = list[j], list[i]
  end
  return list
end

-- Ids drawn without replacement, epoch after epoch. Where a new epoch begins inside a window, an id
-- that the window already holds changes places with a later one, so no window sees one twice.
local function new_pool(ids, stream)
  return { order = shuffle_(table.move(ids, 1, #ids, 1, {}), stream), next = 1, stream = stream }
end

local function draw(pool, taken)
  if pool.next > #pool.order then
    shuffle_(pool.order, pool.stream)
    pool.next = 1
  end
  local order, at = pool.order, pool.next
  while taken[order[at]] do at = at + 1 end
  order[at], order[pool.next] = order[pool.next], order[at]
  local id = order[pool.next]
  pool.next = pool.next + 1
  taken[id] = true
  return id
end

-- The stream of one class of rows: 0 for all or short ones, 1 for long ones.
local function stream_of(c, class)
  return core.stream(c.seed + 10, class)
end

local function require_rows(count, c, planned_ranks, what)
  local needed = planned_ranks * c.accumulation * c.batch_size_per_rank
  if count < needed then
    fault.raise(2, "sampler.by_length: a window draws %d different %s sequences (%d rank%s x %d " ..
                "microbatch%s x %d), and the training split has %d", needed, what, planned_ranks,
                planned_ranks == 1 and "" or "s", c.accumulation,
                c.accumulation == 1 and "" or "es", c.batch_size_per_rank, count)
  end
end

--- Even ranks draw sequences of at most `limit` inputs, odd ranks longer ones; each class is
--- shuffled without replacement, its ranks share it, and it begins anew when it is used up. With
--- one rank only short ones are drawn. No id repeats within a window.
--- Errors, code 2: a class that has fewer sequences than one window draws; unknown options.
---@param rows marea.Sequence[] of the training split
---@param c marea.Config seed, ranks, updates, accumulation, batch_size_per_rank
---@param given? {limit: integer} limit in inputs, 64 unless given
---@return marea.Plan plan
function sampler.by_length(rows, c, given)
  options.check(given, "sampler.by_length", { "limit" })
  local limit = options.integer(given and given.limit or 64, "sampler.by_length: limit", 1)
  local short, long = {}, {}
  for _, row in ipairs(rows) do
    local class = row.length <= limit and short or long
    class[#class + 1] = row
  end
  require_rows(#short, c, (c.ranks + 1) // 2, ("short (at most %d inputs)"):format(limit))
  require_rows(#long, c, c.ranks // 2, ("long (more than %d inputs)"):format(limit))
  local pools = {
    [0] = new_pool(ids_of(short), stream_of(c, 0)),
    [1] = new_pool(ids_of(long), stream_of(c, 1)),
  }
  local plan = {}
  for step = 1, c.updates do
    local taken, window = {}, {}
    for rank = 0, c.ranks - 1 do
      local microbatches = {}
      for m = 1, c.accumulation do
        local ids = {}
        for i = 1, c.batch_size_per_rank do ids[i] = draw(pools[rank % 2], taken) end
        microbatches[m] = ids
      end
      window[rank + 1] = microbatches
    end
    plan[step] = window
  end
  return plan
end

-- Deals ids to the ranks one at a time, then cuts each rank's hand into microbatches; a rank that
-- gets none has no microbatch.
local function deal(ids, c)
  local window = {}
  for rank = 1, c.ranks do window[rank] = {} end
  for i, id in ipairs(ids) do
    local microbatches = window[(i - 1) % c.ranks + 1]
    local last = microbatches[#microbatches]
    if not last or #last == c.batch_size_per_rank then
      last = {}
      microbatches[#microbatches + 1] = last
    end
    last[#last + 1] = id
  end
  return window
end

--- Epochs over all rows, each in a new order without replacement. A window holds
--- ranks x accumulation x batch_size_per_rank sequences; the last window of an epoch keeps what is
--- left, however little: ranks then hold fewer sequences, or none, and nothing is repeated.
--- Errors, code 2: no rows.
---@param rows marea.Sequence[] of the training split
---@param c marea.Config seed, ranks, updates, accumulation, batch_size_per_rank
---@return marea.Plan plan
function sampler.shuffled(rows, c)
  if #rows == 0 then fault.raise(2, "sampler.shuffled: the training split has no sequences") end
  local stream, order, plan = stream_of(c, 0), ids_of(rows), {}
  local size = c.ranks * c.accumulation * c.batch_size_per_rank
  local position = #order + 1
  for step = 1, c.updates do
    if position > #order then
      shuffle_(order, stream)
      position = 1
    end
    local last = math.min(position + size - 1, #order)
    plan[step] = deal(table.move(order, position, last, 1, {}), c)
    position = last + 1
  end
  return plan
end

return sampler
