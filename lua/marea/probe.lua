-- The probe: weights as the recipe's own loop applies them.
--
-- A parameter with one element for every supervised position of the window, over all ranks, 0 at
-- the start, is added to the losses of the positions. Its gradient passes the loop's zero_grad,
-- no_sync, scaling and reduction like any other, and is the table of weights.

local core = require "marea.core"
local objective = require "marea.objective"
local Session = require "marea.session"
local units = require "marea.units"
local weigh = require "marea.weigh"
local Window = require "marea.window"

local Probe = {}
Probe.__index = Probe

local probe = {}

--- How far measured may lie from declared, relative to it.
probe.tolerance = 1e-5

local parameter = "marea_probe"

-- Numbers the supervised positions of a window from 0, in rank order.
local function number_positions(window)
  local next_position = 0
  for sequence in window:sequences() do
    sequence.first_position = next_position
    next_position = next_position + sequence.tokens
  end
  return next_position
end

-- The element behind the last position takes the rows that have no target; its weight is 0.
local function elements_of_rows(made, count)
  local elements = {}
  for row = 1, made.rows do elements[row] = count end
  for s, rows in ipairs(made.supervised) do
    for j, row in ipairs(rows) do elements[row] = made.sequences[s].first_position + j - 1 end
  end
  return core.from(elements, "i32", { made.rows })
end

--- Adds the probe's elements to the losses of a batch; called by loss.weighted.
---@param value marea.tensor losses [rows]
---@param made marea.Batch
---@param term marea.Term
---@return marea.tensor losses
function Probe:add_to(value, made, term)
  if not units.per_position(term) or self.term and self.term ~= term.name then return value end
  self.term, self.uses = term.name, self.uses + 1
  local column = self.model[parameter]:reshape { self.count + 1, 1 }
  local rows = column:embedding(elements_of_rows(made, self.count))
  return value:add(rows:reshape { made.rows })
end

-- --- measuring --------------------------------------------------------------------------------

local function sequence_entry(declared, values, first)
  local entry = { id = declared.id, rank = declared.rank, microbatch = declared.microbatch,
                  tokens = declared.tokens, weights = {}, share = 0 }
  for j = 1, declared.tokens do
    entry.weights[j] = values[first + j]
    entry.share = entry.share + values[first + j]
  end
  return entry
end

local function as_entries(declared, values)
  local entries, first = {}, 0
  for s, sequence in ipairs(declared.sequences) do
    entries[s] = sequence_entry(sequence, values, first)
    first = first + sequence.tokens
  end
  return entries
end

---@class marea.Measured
---@field declared marea.Weighed
---@field sequences marea.SequenceShare[] with `weights`, as they were found
---@field uses integer batches whose losses passed the probe, on the rank with the fewest
---@field window marea.Window
---@field session marea.Session

--- Runs the recipe's loop on a window with the probe in it. All planned ranks call it together.
--- Errors: as Session.open and Session:window; what the recipe's loop raises.
---@param recipe marea.Recipe
---@param step integer update, from 1
---@param shared marea.SessionParts
---@return marea.Measured measured
function probe.measure(recipe, step, shared)
  local session = Session.open(recipe, shared)
  local window = session:window(step)
  local count = number_positions(window)
  local self = setmetatable({ count = count, uses = 0 }, Probe)
  session:build { extra = { name = parameter, shape = { count + 1 } } }
  self.model, session.probe = session.model, self
  local declared = weigh.window(window) -- before the loop, which could change what is declared
  self.model:gradients():fill_(1) -- what an earlier update would have left
  session:accumulate(window)
  local gradient = self.model[parameter]:gradient()
  local used = core.host.from({ self.uses }, "i64", { 1 })
  session.world:all_reduce(used, "min")
  return { declared = declared, uses = used:get(1), window = window, session = session,
           sequences = as_entries(declared, gradient:values()) }
end

-- --- judging ----------------------------------------------------------------------------------

local function weight_at(sequence, j)
  return sequence.weights and sequence.weights[j] or sequence.weight
end

-- Calls visit(declared weight, measured weight, sequence, j) for every position.
local function each_position(measured, visit)
  for s, sequence in ipairs(measured.declared.sequences) do
    for j = 1, sequence.tokens do
      visit(weight_at(sequence, j), measured.sequences[s].weights[j], sequence, j)
    end
  end
end

local function near(a, b, scale)
  return math.abs(a - b) <= probe.tolerance * math.abs(scale or b)
end

local function worst_position(measured)
  local worst
  each_position(measured, function(declared, found, sequence, j)
    local off = math.abs(found - declared) / math.max(declared, 1e-300)
    if found ~= found then off = math.huge end
    if not worst or off > worst.off then
      worst = { off = off, sequence = sequence.id, rank = sequence.rank, position = j,
                microbatch = sequence.microbatch, declared = declared, measured = found,
                ratio = declared > 0 and found / declared or nil }
    end
  end)
  return worst
end

-- The one ratio of measured to declared, over all positions that `accept` takes; nil when they
-- differ among themselves.
local function common_ratio(measured, accept)
  local ratio, same = nil, true
  each_position(measured, function(declared, found, sequence)
    if declared <= 0 or accept and not accept(sequence) then return end
    ratio = ratio or found / declared
    same = same and near(found / declared, ratio, math.max(math.abs(ratio), probe.tolerance))
  end)
  return same and ratio or nil
end

local function causes_by_ratio(ratio, measured)
  local world, causes, seen = measured.session.world:size(), {}, {}
  local function add(value, text)
    if near(ratio, value) and not seen[text] then causes[#causes + 1] = text end
    seen[text] = true
  end
  for _, microbatches in ipairs(measured.window.by_rank) do
    local k = #microbatches
    if k > 1 then
      add(1 / k, ("the loop divides once more, by its %d microbatches"):format(k))
      add(k, ("the loop multiplies by its %d microbatches"):format(k))
    end
  end
  if world > 1 then
    add(1 / world, "the mean over the ranks is not undone by the factor W, or is taken twice")
    add(world, "the factor W is there without a mean over the ranks")
  end
  add(0, "no gradient arrived")
  return causes[1] and table.concat(causes, ", or ")
end

-- A gradient that was there before shows as the same amount on every position.
local function cause_of_remains(measured)
  local remains, same = nil, true
  each_position(measured, function(declared, found)
    remains = remains or found - declared
    same = same and math.abs(found - declared - remains) <= probe.tolerance
  end)
  if same and remains and math.abs(remains) > probe.tolerance then
    return "gradients are not cleared before the window: call zero_grad first"
  end
end

-- What an objective of the library would weigh the same window with.
local function weighed_as(measured, unit)
  local session = measured.session
  local declared = session:with_terms(function()
    return weigh.window(Window.new(session, measured.window.step, 0):count())
  end, objective.terms(unit))
  return { declared = declared, sequences = measured.sequences }
end

-- A loop whose weights are those of another objective of the library.
local function cause_of_objective(measured)
  for _, name in ipairs { "global_token", "mean_of_means", "per_sequence" } do
    local ratio = common_ratio(weighed_as(measured, objective.named[name]))
    if ratio and ratio > 0 then
      return ("the loop weighs as %s does%s"):format(name,
        near(ratio, 1) and "" or (", times %.6g"):format(ratio))
    end
  end
end

local function cause_of_pattern(measured)
  local world = measured.session.world:size()
  for rank = 0, world - 1 do
    local own = common_ratio(measured, function(s) return s.rank == rank end)
    local others = common_ratio(measured, function(s) return s.rank ~= rank end)
    if world > 1 and own and own > 0 and others == 0 then
      return ("only rank %d's positions count: gradients are not reduced over the ranks")
        :format(rank)
    end
  end
  local early = common_ratio(measured, function(s)
    return s.microbatch < #measured.window.by_rank[s.rank + 1]
  end)
  if early == 0 then return "only the last microbatch counts: gradients are cleared in between" end
end

---@class marea.ProbeVerdict
---@field pass boolean
---@field measurable boolean whether the loop takes its losses from loss(batch, weights)
---@field worst? table the position that is furthest off
---@field ratio? number measured over declared, where it is the same throughout
---@field cause? string where it fails, as far as it can be told

--- Holds measured weights against the declared ones.
---@param measured marea.Measured
---@return marea.ProbeVerdict verdict
function probe.judge(measured)
  if measured.uses == 0 then
    return { pass = false, measurable = false,
             cause = "not measurable: the loop does not take its losses from loss(batch, weights)" }
  end
  local worst = worst_position(measured)
  local verdict = { measurable = true, worst = worst, pass = worst.off <= probe.tolerance }
  if verdict.pass then return verdict end
  verdict.ratio = common_ratio(measured)
  verdict.cause = verdict.ratio and causes_by_ratio(verdict.ratio, measured) or
    cause_of_remains(measured) or cause_of_pattern(measured) or cause_of_objective(measured)
  return verdict
end

return probe
