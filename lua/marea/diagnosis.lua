-- Diagnosis of a gradient that is not the declared one: is it the declared one times a factor that
-- has a name, or the gradient of another objective?

local controls = require "marea.controls"
local core = require "marea.core"
local objective = require "marea.objective"
local reference = require "marea.reference"

local diagnosis = {}

-- Factors that have a name: {value, name} each.
local function candidates(session, step)
  local world, list, seen = session.world:size(), {}, {}
  local function add(value, name, meaning)
    list[#list + 1] = { value = 1 / value, name = ("1/%s (%s)"):format(name, meaning) }
    list[#list + 1] = { value = value, name = ("%s (%s)"):format(name, meaning) }
  end
  if world > 1 then add(world, "W", "W = " .. world) end
  for _, microbatches in ipairs(session.plan[step]) do
    local k = #microbatches
    if k > 1 and not seen[k] then add(k, "accumulation", k .. " microbatches") end
    seen[k] = true
  end
  return list
end

--- Names of a factor between a gradient and the right one, of W and the numbers of microbatches.
---@param ratio number
---@param session marea.Session
---@param step integer
---@param tolerance? number relative, 1e-9 unless given
---@return string? names "1/W (W = 2) or 1/accumulation (2 microbatches)"
function diagnosis.name_of_factor(ratio, session, step, tolerance)
  local names = {}
  for _, candidate in ipairs(candidates(session, step)) do
    if math.abs(ratio - candidate.value) <= (tolerance or 1e-9) * candidate.value then
      names[#names + 1] = candidate.name
    end
  end
  return names[1] and table.concat(names, " or ")
end

-- The one factor between two gradients; nil when there is none.
local function ratio_of(a, b, gate)
  local found = core.compare(a, b, gate)
  if found.failing == 0 then return 1 end
  local ratio = found.dot_bb > 0 and found.dot_ab / found.dot_bb or 0
  if ratio == 0 or ratio ~= ratio then return nil end
  return core.compare(a, b:copy():scale_(ratio), gate).failing == 0 and ratio or nil
end

local function find_factor(run, step, gate)
  local ratio = ratio_of(run.actual, run.reference.gradient, gate)
  return ratio and { value = ratio, name = diagnosis.name_of_factor(ratio, run.session, step) }
end

-- The gradient that another unit declares for the same window.
local function under(run, unit, given)
  local session = run.session
  local terms = session.terms
  session.terms = controls.replaced_terms(terms, unit)
  local good, result = pcall(reference.gradient, session, run.model, given.step, given.window)
  session.terms = terms
  return good and result.gradient or nil
end

local function find_objective(run, given, gate)
  for _, name in ipairs { "global_token", "mean_of_means", "per_sequence" } do
    local gradient = under(run, objective.named[name], given)
    local ratio = gradient and ratio_of(run.actual, gradient, gate)
    if ratio then
      return { objective = name, factor = ratio,
               name = diagnosis.name_of_factor(ratio, run.session, given.step) }
    end
  end
end

--- What a failing gradient is instead.
---@param run table {session, model, actual, reference} of parity, in f64, on rank 0
---@param given table {step, window}
---@param gate {absolute: number, relative: number} of parity in f64
---@return {factor?: table, equals?: table} found factor: {value, name} between it and the declared
---  gradient; equals: {objective, factor, name} of another objective
function diagnosis.of(run, given, gate)
  local factor = find_factor(run, given.step, gate)
  if factor then return { factor = factor } end
  return { equals = find_objective(run, given, gate) }
end

return diagnosis
