-- parity's errors by parameter: how near each came to the gate in both dtypes.

local core = require "marea.core"

local parity_table = {}

local function cut(flat, range) return flat:slice(range.offset + 1, range.count) end

local function cut_excuse(excuse, range)
  if not excuse then return nil end
  local copy = {}
  for key, value in pairs(excuse) do copy[key] = value end
  for _, key in ipairs { "scale", "a", "b" } do copy[key] = cut(excuse[key], range) end
  return copy
end

---@class marea.ParityPair
---@field a marea.tensor flat gradient of a model
---@field b marea.tensor the reference
---@field gate {absolute: number, relative: number}
---@field excuse? marea.excuse

---@class marea.ParameterErrors
---@field max_abs number
---@field failing integer
---@field rounding integer
---@field worst? {index: integer, error: number, gate: number} the component that uses the largest
---  share of its gate, from 1; none where the parameter has no elements

local function errors_of(pair, range)
  local found = core.compare(cut(pair.a, range), cut(pair.b, range), {
    absolute = pair.gate.absolute, relative = pair.gate.relative,
    excuse = cut_excuse(pair.excuse, range) })
  local errors = { max_abs = found.max_abs, failing = found.failing, rounding = found.rounding }
  if found.worst > 0 then
    errors.worst = {
      index = found.worst, error = math.abs(found.worst_a - found.worst_b),
      gate = pair.gate.absolute + pair.gate.relative * math.abs(found.worst_b) }
  end
  return errors, found
end

---@class marea.ParameterParity
---@field name string
---@field shape integer[]
---@field count integer elements
---@field max_gradient number largest |gradient| of the f64 reference
---@field f32 marea.ParameterErrors
---@field f64 marea.ParameterErrors

--- Compares the gradients of each parameter by itself.
---@param model marea.Module whose layout the gradients have
---@param f32 marea.ParityPair
---@param f64 marea.ParityPair
---@return marea.ParameterParity[] parameters in the model's order
function parity_table.of(model, f32, f64)
  local parameters = {}
  for i, range in ipairs(model.unit:ranges()) do
    local wide, found = errors_of(f64, range)
    parameters[i] = { name = range.name, shape = range.shape, count = range.count,
                      max_gradient = found.max_b, f32 = errors_of(f32, range), f64 = wide }
  end
  return parameters
end

return parity_table
