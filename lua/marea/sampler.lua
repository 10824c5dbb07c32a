-- Samplers: they make a plan before a run begins. plan[step][rank][microbatch] is a list of
-- sequence ids; `rank` is a list index here, so rank 0 stands at 1.
--
-- Draws come from counter-based streams of seed + 10 that nothing else uses, so a plan depends on
-- the rows and the config only, and the beginning of a longer plan is the shorter plan.

local core = require "marea.core"
local documents = require "marea.corpus.documents"
local fault = require "marea.fault"
local json = require "marea.json"
local kind = require "marea.kind"
local options = require "marea.options"
local plan_of = require "marea.plan"

---@class marea.parts.sampler
local sampler = {}

local function ids_of(rows)
  local ids = {}
  for i, row in ipairs(rows) do ids[i] = row.id end
  return ids
end

-- The config answers to a name with an integer, a list of rows with nothing.
local function check_arguments(rows, c, what)
  local right = type(rows) == "table" and type(c) == "table" and rows ~= c and
    (#rows > 0 or next(rows) == nil and getmetatable(rows) == nil)
  if not right or math.type(c.updates) ~= "integer" then
    fault.raise(2, "%s expects the rows and the config that the plan callback was given, got %s " ..
                "and %s", what, kind.of(rows), kind.of(c))
  end
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
  check_arguments(rows, c, "sampler.by_length")
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

-- Epoch after epoch, each in an order of its own; take(order, position) makes one window of the ids
-- from `position` on, and returns the position behind it, and whether the window is full.
local function in_epochs(rows, c, what, last, take)
  if #rows == 0 then fault.raise(2, "%s: the training split has no sequences", what) end
  if last ~= nil and last ~= "keep" and last ~= "drop" then
    fault.raise(2, '%s: last must be "keep" or "drop", got %s', what, tostring(last))
  end
  local stream, order, plan = stream_of(c, 0), ids_of(rows), {}
  local position, made_of_epoch = #order + 1, 1
  while #plan < c.updates do
    if position > #order then
      if made_of_epoch == 0 then
        fault.raise(2, "%s: the %d training sequences do not fill one window, and last = %q " ..
                    "drops what is not full", what, #order, last)
      end
      shuffle_(order, stream)
      position, made_of_epoch = 1, 0
    end
    local window, behind, full = take(order, position)
    if full or last ~= "drop" then
      plan[#plan + 1] = window
      made_of_epoch = made_of_epoch + 1
    end
    position = behind
  end
  return plan
end

--- Epochs over all rows, each in a new order without replacement. A window holds
--- ranks x accumulation x batch_size_per_rank sequences. Where an epoch's last window is short,
--- last = "keep" keeps what is left, however little: ranks then hold fewer sequences, or none, and
--- nothing is repeated; "drop" leaves it out on all ranks alike.
--- Errors, code 2: no rows; not one full window where short ones are dropped; unknown options.
---@param rows marea.Sequence[] of the training split
---@param c marea.Config seed, ranks, updates, accumulation, batch_size_per_rank
---@param given? {last?: "keep"|"drop"} "keep" unless given
---@return marea.Plan plan
function sampler.shuffled(rows, c, given)
  local what = "sampler.shuffled"
  check_arguments(rows, c, what)
  given = options.check(given, what, { "last" })
  local size = c.ranks * c.accumulation * c.batch_size_per_rank
  return in_epochs(rows, c, what, given.last, function(order, position)
    local behind = math.min(position + size, #order + 1)
    return deal(table.move(order, position, behind - 1, 1, {}), c), behind,
           behind - position == size
  end)
end

-- --- budgets ----------------------------------------------------------------------------------

-- As many ids from `position` on as fit into the budget, the position behind them, and whether
-- nothing more would have fitted.
local function fill(order, position, budget, size_of)
  local ids, left = {}, budget
  while position <= #order and size_of[order[position]] <= left do
    ids[#ids + 1] = order[position]
    left = left - size_of[order[position]]
    position = position + 1
  end
  return ids, position, position <= #order or left == 0
end

local function sizes_of(rows, measure, budget, what)
  local size_of = {}
  for _, row in ipairs(rows) do
    local size = measure == "tokens" and row.tokens or row.length
    if size > budget then
      fault.raise(2, "%s: sequence %d has %d %s, more than the budget of %d", what, row.id, size,
                  measure, budget)
    end
    size_of[row.id] = size
  end
  return size_of
end

local function budget_of(given, what)
  if (given.tokens == nil) == (given.inputs == nil) then
    fault.raise(2, "%s expects a budget, either tokens = n or inputs = n", what)
  end
  if given.per ~= nil and given.per ~= "rank" and given.per ~= "microbatch" then
    fault.raise(2, '%s: per must be "rank" or "microbatch", got %s', what, tostring(given.per))
  end
  local measure = given.tokens and "tokens" or "inputs"
  return measure, options.integer(given[measure], ("%s: %s"):format(what, measure), 1)
end

-- Every rank in turn fills its budget; microbatches have at most `batch_size` sequences.
local function window_of_ranks(order, position, c, fits)
  local window, full = {}, true
  for rank = 1, c.ranks do
    local ids, behind, rank_full = fits(order, position)
    position, full, window[rank] = behind, full and rank_full, {}
    for first = 1, #ids, c.batch_size_per_rank do
      local last = math.min(first + c.batch_size_per_rank - 1, #ids)
      table.insert(window[rank], table.move(ids, first, last, 1, {}))
    end
  end
  return window, position, full
end

-- Every microbatch fills its budget; the ranks take them in turn.
local function window_of_microbatches(order, position, c, fits)
  local window, full = {}, true
  for rank = 1, c.ranks do window[rank] = {} end
  for _ = 1, c.accumulation do
    for rank = 1, c.ranks do
      local ids, behind, microbatch_full = fits(order, position)
      position, full = behind, full and microbatch_full
      if #ids > 0 then table.insert(window[rank], ids) end
    end
  end
  return window, position, full
end

---@class marea.BudgetOptions
---@field tokens? integer supervised positions that fit; either this
---@field inputs? integer or inputs that fit, which bounds memory
---@field per? "rank"|"microbatch" what they fit into: a rank's share of a window, cut into
---  microbatches of batch_size_per_rank sequences, so that ranks get different numbers of them; or
---  each of a rank's `accumulation` microbatches (default "rank")
---@field last? "keep"|"drop" an epoch's last window, where it is short (default "keep")

--- Epochs as of sampler.shuffled, with as many sequences as fit into a budget, taken in the epoch's
--- order.
--- Errors, code 2: a sequence beyond the budget; what sampler.shuffled refuses.
---@param rows marea.Sequence[] of the training split
---@param c marea.Config seed, ranks, updates, accumulation, batch_size_per_rank
---@param given marea.BudgetOptions
---@return marea.Plan plan
function sampler.token_budget(rows, c, given)
  local what = "sampler.token_budget"
  check_arguments(rows, c, what)
  given = options.check(given, what, { "tokens", "inputs", "per", "last" })
  local measure, budget = budget_of(given, what)
  local size_of = sizes_of(rows, measure, budget, what)
  local function fits(order, position) return fill(order, position, budget, size_of) end
  local window_of = given.per == "microbatch" and window_of_microbatches or window_of_ranks
  return in_epochs(rows, c, what, given.last, function(order, position)
    return window_of(order, position, c, fits)
  end)
end

-- --- files ------------------------------------------------------------------------------------

--- A plan from a file: plan.json of a run, or JSON written otherwise, {"steps": steps} or the steps
--- alone: steps[step][rank][microbatch] lists ids. It is looked for beside the recipe first, and
--- checked like any other plan.
--- Errors: code 2 for no such file, or one that is no plan; code 3 for a hash of another plan.
---@param path string
---@return marea.Plan plan
function sampler.from_file(path)
  local text, found = documents.read(path, "sampler.from_file")
  local record, problem = json.decode(text)
  if type(record) == "table" and record.hash ~= nil then return plan_of.read(found) end
  local steps = type(record) == "table" and (record.steps or record) or nil
  if type(steps) ~= "table" or steps[1] == nil then
    fault.raise_at(2, found, "no plan: %s", problem or "it has no steps")
  end
  return steps
end

return sampler
