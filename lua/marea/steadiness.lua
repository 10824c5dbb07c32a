-- Steadiness: a loop that is right once must be right again. The same window gives the same bits a
-- second time, the next window gives its own gradient although this one's is still in the buffer,
-- and a position's loss does not depend on what else stands in its microbatch.

local batch_of = require "marea.batch"
local core = require "marea.core"
local reference = require "marea.reference"
local units = require "marea.units"

local steadiness = {}

-- Whether all ranks say so. All ranks call it.
local function all_say(world, mine)
  return world:all_reduce(core.host.from({ mine and 1 or 0 }, "i64", { 1 }), "min"):get(1) == 1
end

-- The gradient of the next window, after this one's, by the loop and by the reference.
local function next_window(run, step, gate)
  local session = run.session
  if not session.plan[step] then return nil end
  local counted, window = pcall(session.window, session, step)
  if not counted then return nil end -- refused by all ranks alike
  session:accumulate(window)
  if session.rank > 0 then return nil end
  local expected = reference.gradient(session, run.model, step).gradient
  local found = core.compare(session.model:gradients(), expected, gate)
  return { step = step, failing = found.failing, max_abs = found.max_abs }
end

-- Losses of a batch at its supervised positions, sequence by sequence.
local function position_losses(session, model, made)
  local losses = session.recipe.loss(model, made)
  if not session.named_terms then losses = { [session.terms[1].name] = losses } end
  local values = {}
  for _, term in ipairs(session.terms) do
    if units.per_position(term) then values[#values + 1] = losses[term.name]:values() end
  end
  local by_sequence = {}
  for s, rows in ipairs(made.supervised) do
    by_sequence[s] = {}
    for _, list in ipairs(values) do
      for _, row in ipairs(rows) do table.insert(by_sequence[s], list[row]) end
    end
  end
  return by_sequence
end

local function differ(a, b)
  for i, value in ipairs(a) do
    if math.abs(value - b[i]) > 1e-12 + 1e-9 * math.abs(b[i]) then return true end
  end
  return false
end

--- Whether a position has another loss when its sequence stands in a microbatch of its own. Then
--- recipe.loss normalises by the microbatch, which belongs to the objective.
---@param session marea.Session in f64
---@param model marea.Module
---@param windows marea.Window[] of all ranks
---@return integer? sequence id of the first that has; nil when none has
function steadiness.depends_on_microbatch(session, model, windows)
  local _ <close> = core.no_grad()
  for _, window in ipairs(windows) do
    for _, made in ipairs(window) do
      local together = #made.sequences > 1 and position_losses(session, model, made) or {}
      for s, losses in ipairs(together) do
        local sequence = made.sequences[s]
        local alone = batch_of.build(session.corpus, { sequence }, {
          layout = session.config.layout, seed = made.seed, update = made.update })
        if differ(position_losses(session, model, alone)[1], losses) then return sequence.id end
      end
    end
  end
end

--- Runs the loop again. All ranks of the session's world call it together.
---@param run table {session, model, actual, again} of parity in f64; again() gives the gradient of
---  the same window once more
---@param given table {step, window}
---@param gate {absolute: number, relative: number}
---@return table found {repeats: the same bits a second time; next: {step, failing, max_abs} of the
---  next window, on rank 0; depends_on_microbatch: id of a sequence, on rank 0; good}
function steadiness.of(run, given, gate)
  local session = run.session
  local same = run.again():hash() == run.actual:hash()
  local found = { repeats = all_say(session.world, same) }
  found.next = next_window(run, given.step + 1, gate)
  if session.rank == 0 then
    found.depends_on_microbatch =
      steadiness.depends_on_microbatch(session, run.model, run.reference.windows)
  end
  found.good = found.repeats and not (found.next and found.next.failing > 0) and
    not found.depends_on_microbatch
  return found
end

return steadiness
