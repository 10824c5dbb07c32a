-- Accumulation: the sequences of one window, cut into N microbatches of B for every N that divides
-- them, must give one loss and one gradient. What changes is the memory.

local core = require "marea.core"
local fault = require "marea.fault"
local Session = require "marea.session"

local accumulation = {}

--- How far loss and gradient may lie from those of one batch, relative to the largest value of each
--- parameter's gradient.
accumulation.gates = { f32 = 1e-4, f64 = 1e-10 }

-- One rank's sequences of a window, in order.
local function ids_of(microbatches)
  local ids = {}
  for _, list in ipairs(microbatches) do table.move(list, 1, #list, #ids + 1, ids) end
  return ids
end

local function cut(ids, size)
  local microbatches = {}
  for first = 1, #ids, size do
    microbatches[#microbatches + 1] =
      table.move(ids, first, math.min(first + size - 1, #ids), 1, {})
  end
  return microbatches
end

-- The same window for all ranks, in microbatches of `size` sequences.
local function recut(window, size)
  local planned = {}
  for rank, microbatches in ipairs(window) do planned[rank] = cut(ids_of(microbatches), size) end
  return { planned }
end

--- Sizes of microbatches that divide what every rank reads in a window, the largest first.
---@param window integer[][][] one step of a plan
---@return integer[] sizes
function accumulation.sizes(window)
  local most = 0
  for _, microbatches in ipairs(window) do most = math.max(most, #ids_of(microbatches)) end
  local sizes = {}
  for size = most, 1, -1 do
    local fits = true
    for _, microbatches in ipairs(window) do
      fits = fits and #ids_of(microbatches) % size == 0
    end
    if fits then sizes[#sizes + 1] = size end
  end
  if #sizes == 0 then
    fault.raise_at(2, "", "this window has ranks without sequences: nothing to accumulate")
  end
  return sizes
end

local function reductions(world) return world:ledger().all_reduce.calls end

-- Each rank's longest sequence alone: what one microbatch of one sequence takes at most.
local function longest_alone(corpus, window)
  local planned = {}
  for rank, microbatches in ipairs(window) do
    local longest
    for _, id in ipairs(ids_of(microbatches)) do
      if not longest or corpus:sequence(id).length > corpus:sequence(longest).length then
        longest = id
      end
    end
    planned[rank] = { { longest } }
  end
  return { planned }
end

-- Gradient, loss, peak memory and calls of the one window of a plan.
local function measure(recipe, shared, plan, size)
  local session = Session.open(recipe, { world = shared.world, corpus = shared.corpus,
                                         plan = plan }):build()
  collectgarbage()
  local counted = session:window(1)
  session.statistics = { weighted = 0 }
  local sent, calls = reductions(session.world), core.device().kernel_calls
  local before = core.memory().live
  core.memory_reset_peak()
  session:accumulate(counted)
  local row = {
    microbatches = #counted, size = size, sequences = counted.sequence_count,
    tokens = counted.tokens, peak = core.memory().peak - before,
    kernel_calls = core.device().kernel_calls - calls,
    reductions = reductions(session.world) - sent,
  }
  local loss = core.host.from({ session.statistics.weighted }, "f64", { 1 })
  session.world:all_reduce(loss, session.config.reduction)
  row.loss = loss:get(1)
  return row, session
end

-- The largest difference to the gradient of one batch, relative to the largest value of the
-- parameter it stands in.
local function largest_difference(session, gradient, reference)
  local largest = 0
  for _, range in ipairs(session.model.unit:ranges()) do
    local a = gradient:slice(range.offset + 1, range.count)
    local b = reference:slice(range.offset + 1, range.count)
    local scale = core.compare(b, b:copy():fill_(0), { absolute = 0, relative = 0 }).max_abs
    local off = core.compare(a, b, { absolute = 0, relative = 0 }).max_abs
    if off > 0 then largest = math.max(largest, scale > 0 and off / scale or math.huge) end
  end
  return largest
end

--- Measures every cut of a window, of a bf16 recipe in f32. All planned ranks call it together.
---@param recipe marea.Recipe
---@param step integer
---@param shared table world, corpus, plan
---@return table report {dtype, gate, rows: {microbatches, size, sequences, tokens, loss,
---  gradient_difference, peak, kernel_calls, reductions, good}, alone: the row of each rank's
---  longest sequence by itself, pass}; peak in bytes of this rank, over what was live before
function accumulation.measure(recipe, step, shared)
  local window = shared.plan[step]
  if not window then
    fault.raise_at(2, "", "the plan has %d steps, and update %d was asked for", #shared.plan, step)
  end
  if recipe.config.dtype == "bf16" then recipe = recipe:with { dtype = "f32" } end
  local gate = accumulation.gates[recipe.config.dtype]
  local report = { dtype = recipe.config.dtype, gate = gate, rows = {}, pass = true }
  local reference
  for i, size in ipairs(accumulation.sizes(window)) do
    local row, session = measure(recipe, shared, recut(window, size), size)
    local gradient = session.model:gradients():copy()
    reference = reference or gradient
    row.gradient_difference = largest_difference(session, gradient, reference)
    local off = math.abs(row.loss - (report.rows[1] or row).loss)
    row.good = row.gradient_difference <= gate and off <= gate * math.abs(row.loss)
    report.pass = report.pass and row.good
    report.rows[i] = row
  end
  report.alone = measure(recipe, shared, longest_alone(shared.corpus, window), 1)
  return report
end

return accumulation
