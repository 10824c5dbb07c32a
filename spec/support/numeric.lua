-- Numbers in specs: comparisons with a stated bound, gradients by hand, messages of failures.

local core = require "marea.core"
local fault = require "marea.fault"

local numeric = {}

--- Largest absolute value of a list; 0 of an empty one.
function numeric.largest(values)
  local largest = 0
  for _, value in ipairs(values) do largest = math.max(largest, math.abs(value)) end
  return largest
end

--- Asserts |a - b| <= bound * (|b| + max |b|) for each pair; names the worst. NaN never passes.
---@param expected number[] b
---@param found number[] a
---@param bound number
---@param what string
function numeric.assert_close(expected, found, bound, what)
  assert(#expected == #found, ("%s: %d values, expected %d"):format(what, #found, #expected))
  local scale, worst, at = numeric.largest(expected), 0, nil
  for i, b in ipairs(expected) do
    local excess = math.abs(found[i] - b) / (bound * (math.abs(b) + scale))
    if found[i] == b then excess = 0 end
    if excess ~= excess or excess > worst then worst, at = excess, i end
    if excess ~= excess then break end
  end
  if worst <= 1 then return end
  error(("%s: value %d is %.17g, expected %.17g (%.3g times the bound of %g)"):format(
    what, at, found[at], expected[at], worst, bound), 2)
end

--- Largest |a - b| / (|b| + max |b|) of two lists, to state bounds by.
function numeric.distance(expected, found)
  local scale, worst = numeric.largest(expected), 0
  for i, b in ipairs(expected) do
    local distance = found[i] == b and 0 or math.abs(found[i] - b) / (math.abs(b) + scale)
    worst = math.max(worst, distance)
  end
  return worst
end

--- Asserts that two tensors have the same dtype, shape and bits.
function numeric.assert_same_bits(expected, found, what)
  assert(expected:hash() == found:hash(), ("%s: other bits"):format(what))
end

--- The values of a tensor's gradient; zeros when there is none.
function numeric.gradient(tensor)
  local gradient = tensor:gradient()
  return (gradient or core.zeros(tensor:shape(), tensor:dtype())):values()
end

--- Runs `body` without recording.
function numeric.unrecorded(body)
  local _ <close> = core.no_grad()
  return body()
end

--- Central differences of fourth order of the number body() for every element of `tensor`, which
--- is changed and restored in place.
---@param tensor any an f64 tensor
---@param step number
---@param body fun(): number
---@param stride? integer only elements 1, 1 + stride, ... are changed; 1 unless given
---@return table<integer, number> by element
function numeric.differences(tensor, step, body, stride)
  local result, values = {}, tensor:values()
  for i = 1, #values, stride or 1 do
    local value = values[i]
    local function at(x)
      tensor:set_(i, x)
      return body()
    end
    local near = at(value + step) - at(value - step)
    local far = at(value + 2 * step) - at(value - 2 * step)
    tensor:set_(i, value)
    result[i] = (8 * near - far) / (12 * step)
  end
  return result
end

--- Message and code of the fault that body raises, without the line in front. Fails when body
--- raises none.
---@param body fun(...)
---@param ... any
---@return string message
---@return integer code
function numeric.refusal(body, ...)
  local ok, raised = pcall(body, ...)
  assert(not ok, "expected a refusal")
  assert(fault.is(raised), "expected a fault, got: " .. tostring(raised))
  local message, code = fault.of(raised)
  return (message:gsub("^[^:]*:%d+: ", "", 1)), code
end

--- The same, without code, for a fault that must begin with a line of the file that body stands in.
---@param body fun()
---@return string message
function numeric.blamed(body)
  local ok, raised = pcall(body)
  assert(not ok, "expected a refusal")
  local message = fault.of(raised)
  local file = debug.getinfo(body, "S").source:match("([^/]*)$"):gsub("%p", "%%%0")
  local text = message:match("^[^:]*" .. file .. ":%d+: (.*)$")
  assert(text, "no line of the spec in front: " .. message)
  return text
end

return numeric
