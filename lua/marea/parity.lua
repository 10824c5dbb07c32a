-- Parity: the recipe's own accumulate on all ranks against the reference by one process, component
-- by component, in f32 and f64, with controls that must be seen.

local controls = require "marea.controls"
local core = require "marea.core"
local diagnosis = require "marea.diagnosis"
local evaluate = require "marea.evaluate"
local fault = require "marea.fault"
local parity_table = require "marea.parity_table"
local reference = require "marea.reference"
local Session = require "marea.session"
local steadiness = require "marea.steadiness"
local sabotage = require "marea.sabotage"

local parity = {}

--- The gates: |a - b| <= absolute + relative |b|. f32's is the published one; f64's still sees one
--- token miscounted in ten million. A component that holds in f64 and misses in f32 by no more than
--- `rounding` times the sum of |gradient| over microbatches and ranks is counted as rounding.
parity.gates = {
  f32 = { absolute = 1e-6, relative = 1e-4 },
  f64 = { absolute = 1e-12, relative = 1e-9 },
  rounding = 2.0 ^ -22,
}

-- --- one dtype --------------------------------------------------------------------------------

-- Every rank draws its parameters from a seed of its own: only a broadcast makes them equal.
local function open_session(recipe, dtype, shared)
  local session = Session.open(recipe:with { dtype = dtype }, shared)
  return session:build { seed = session.config.seed + session.rank }
end

-- The model of the reference: the parameters of the run, followed by nothing.
local function reference_model(session)
  local model = Session.new_model(session.recipe)
  model:values():copy_(session.model:values())
  return model
end

-- The gradient that the recipe computes on this window; all ranks together. The buffer holds
-- something before, as it does after an update: a loop has to clear it.
local function actual_gradient(session, step, options)
  local flat = session.model:gradients()
  for _, range in ipairs(session.model.unit:ranges()) do
    flat:slice(range.offset + 1, range.count):fill_(1)
  end
  local window = session:window(step, options)
  session:accumulate(window)
  return flat:copy(), window
end

-- A gradient that is not finite proves nothing; all ranks refuse it alike.
local function require_finite(session, gradient, step)
  local total = gradient:total()
  local finite = core.host.from({ total - total == 0 and 1 or 0 }, "i64", { 1 })
  if session.world:all_reduce(finite, "min"):get(1) == 1 then return end
  fault.raise_at(5, session.recipe.path or "", "window %d: the gradient is not finite, so there " ..
                 "is nothing to prove; does recipe.loss divide by zero?", step)
end

-- Parameters after a broadcast and gradients after a reduction are the same bits on all ranks.
local function equal_on_all_ranks(session, flat)
  local print = math.tointeger(tonumber(flat:hash():sub(1, 12), 16))
  local prints = session.world:all_gather(core.host.from({ print }, "i64")):values()
  for _, other in ipairs(prints) do
    if other ~= print then return false end
  end
  return true
end

-- What the reference needs is taken before the loop runs, which could change it.
local function run_dtype(recipe, dtype, given)
  local session = open_session(recipe, dtype, given.shared)
  local terms, named_terms = session.terms, session.named_terms
  local run = { session = session }
  run.begun_equal = equal_on_all_ranks(session, session.model:values())
  if given.checkpoint then evaluate.load(session, given.checkpoint) end
  if session.rank == 0 then run.model = reference_model(session) end
  function run.again() return actual_gradient(session, given.step, given.window) end
  session.statistics = {}
  run.actual, run.window = run.again()
  session.terms, session.named_terms = terms, named_terms
  require_finite(session, run.actual, given.step)
  run.equal = equal_on_all_ranks(session, run.actual)
  if session.rank == 0 then
    run.reference = reference.gradient(session, run.model, given.step, given.window)
  end
  return run
end

-- --- comparison -------------------------------------------------------------------------------

-- Name and position (1-based) of a flat component. Behind a parameter's last element is the gap
-- before the next one, which holds zeros.
local function locate(model, flat_index)
  local found
  for _, range in ipairs(model.unit:ranges()) do
    if flat_index > range.offset and range.count > 0 then found = range end
  end
  if found then return found.name, flat_index - found.offset end
end

--- Compares two flat gradients of a model under a gate.
---@param model marea.Module whose layout the gradients have
---@param a marea.tensor flat
---@param b marea.tensor flat, the reference
---@param gate {absolute: number, relative: number}
---@param excuse? marea.excuse
---@return marea.Gated result
function parity.compare(model, a, b, gate, excuse)
  local found = core.compare(a, b, { absolute = gate.absolute, relative = gate.relative,
                                     excuse = excuse })
  local name, index = locate(model, found.worst)
  return {
    failing = found.failing, rounding = found.rounding,
    max_abs = found.max_abs, max_rel = found.max_rel,
    atol = gate.absolute, rtol = gate.relative,
    worst = name and { parameter = name, index = index,
                       values = { found.worst_a, found.worst_b } } or nil,
    ratio = found.dot_bb > 0 and found.dot_ab / found.dot_bb or nil,
    shares = found.shares,
  }
end

local function compare_runs(f32, f64, given)
  local gates = parity.gates
  local wide = { a = f64.actual, b = f64.reference.gradient, gate = gates.f64 }
  local narrow = { a = f32.actual, b = f32.reference.gradient, gate = gates.f32, excuse = {
    factor = gates.rounding, scale = f32.reference.absolute, a = wide.a, b = wide.b,
    absolute = gates.f64.absolute, relative = gates.f64.relative } }
  f64.result = parity.compare(f64.model, wide.a, wide.b, wide.gate)
  f32.result = parity.compare(f32.model, narrow.a, narrow.b, narrow.gate, narrow.excuse)
  f64.parameters = parity_table.of(f64.model, narrow, wide)
  return f64.result.failing > 0 and diagnosis.of(f64, given, gates.f64) or {}
end

-- --- controls ---------------------------------------------------------------------------------

local function run_control(run, control, step, options)
  local session = run.session
  local gradient = sabotage.gradient(session, control, step, options)
  if session.rank > 0 then return nil end
  return parity.compare(run.model, gradient, run.reference.gradient, parity.gates.f64)
end

-- Told apart or not is decided from the windows, so every rank decides alike.
local function windows_of_all(session, step, options)
  local windows = reference.windows(session, step, options)
  for _, window in ipairs(windows) do
    window.factor = session.config.reduction == "mean" and session.world:size() or 1
  end
  return windows
end

local function run_controls(run, step, options, alone)
  local results, session = {}, run.session
  local windows = windows_of_all(session, step, options)
  for i, control in ipairs(controls.of(session.recipe)) do
    local apart, reason = control.apart(windows, session.world:size())
    if control.weighting and not run.window.weighed then
      apart, reason = false, "the loop does not take its weights from window:weights"
    end
    local entry = { name = control.name, told_apart = apart, detected = false, reason = reason,
                    meaning = controls.meaning[control.name] or "weighted by the recipe's unit",
                    weighting = control.weighting }
    if apart then
      local found = run_control(run, control, step, { window = options, alone = alone })
      if found then
        entry.detected = found.failing > 0
        entry.max_abs, entry.failing = found.max_abs, found.failing
      end
    end
    results[i] = entry
  end
  return results
end

-- Whether the window can tell a wrong weighting, and with several ranks a missing reduction, apart.
local function window_can_tell(session, step, options)
  local windows, world = windows_of_all(session, step, options), session.world:size()
  local weighting, reduction = false, world == 1
  for _, control in ipairs(controls.list) do
    if control.weighting then weighting = weighting or control.apart(windows, world) end
    if control.name == "no_reduction" then
      reduction = reduction or control.apart(windows, world)
    end
  end
  return weighting and reduction
end

local function choose_window(session, step)
  if window_can_tell(session, step, nil) then return nil end
  for rank = 0, #session.plan[step] - 1 do
    local options = { mask_rank = rank }
    local good, can = pcall(window_can_tell, session, step, options)
    if good and can then return options end
  end
  return nil
end

-- --- verdict ----------------------------------------------------------------------------------

local function all_seen(results, world)
  local weighting, reduction = false, world == 1
  for _, entry in ipairs(results) do
    if entry.told_apart and not entry.detected then return false end
    if entry.detected and entry.weighting then weighting = true end
    if entry.detected and entry.name == "no_reduction" then reduction = true end
  end
  return weighting and reduction
end

local function describe_window(windows, step, options)
  local first = windows[1]
  return { step = step, tokens = first.tokens, rank_tokens = first.rank_tokens,
           sequences = first.sequence_count,
           masked_rank = options and options.mask_rank or nil }
end

local function report(recipe, f32, f64, given, results, found_out)
  local world = f64.session.world:size()
  local alike = f32.equal and f64.equal
  local begun_alike = f32.begun_equal and f64.begun_equal
  local exact = f32.result.failing == 0 and f64.result.failing == 0 and alike and begun_alike
  local seen = all_seen(results, world)
  f32.result.ratio, f64.result.ratio = nil, nil
  return {
    recipe = recipe.name, components = f64.model:count(), world = world,
    objective = recipe.config.objective, reduction = recipe.config.reduction,
    window = describe_window(f64.reference.windows, given.step, given.window),
    loss = f64.reference.loss,
    f32 = f32.result, f64 = f64.result, parameters = f64.parameters,
    equal_on_all_ranks = alike, begun_equal = begun_alike,
    controls = results, controls_pass = seen,
    factor = found_out.factor, equals = found_out.equals, uses_weights = f64.window.weighed,
    pass = exact and seen,
  }
end

--- Proves, or refutes, that the recipe's loop computes the gradient of its declared objective on a
--- window. All ranks of the session's world call it together.
--- Errors: code 2 as Session.open, code 5 for a refused window, code 6 for ranks that disagree;
--- what callbacks raise.
---@param recipe marea.Recipe
---@param options? {step?: integer, shared?: marea.SessionParts, checkpoint?: string} step: which
---  window, 1 unless given; checkpoint: a folder whose parameters the model gets
---@return marea.ParityReport? report on rank 0; nil elsewhere
function parity.run(recipe, options)
  options = options or {}
  local step, shared = options.step or 1, options.shared or {}
  local first = Session.open(recipe, shared)
  shared = { world = first.world, corpus = first.corpus, plan = first.plan }
  local window = choose_window(first, step)
  local alone = require("marea.world").alone()
  local given = { shared = shared, step = step, window = window, checkpoint = options.checkpoint }
  local f32, f64 = run_dtype(recipe, "f32", given), run_dtype(recipe, "f64", given)
  local found_out = first.rank == 0 and compare_runs(f32, f64, given) or nil
  local results = run_controls(f64, step, window, alone)
  local steady = steadiness.of(f64, given, parity.gates.f64)
  if first.rank > 0 then return nil end
  local found = report(recipe, f32, f64, given, results, found_out)
  found.checkpoint, found.steady = options.checkpoint, steady
  found.pass = found.pass and steady.good
  return found
end

return parity
