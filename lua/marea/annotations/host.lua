---@meta _

-- The makers of tensors once more, for tensors of the CPU whatever device is in use: for counts and
-- texts that ranks exchange, and for corpora.

---@class marea.core.host
local host = {}

--- A tensor of zeros on the CPU.
--- Errors, code 1: as core.zeros.
---@param shape integer[]
---@param dtype? marea.dtype "f32" unless given
---@return marea.tensor tensor
function host.zeros(shape, dtype) end

--- A tensor of ones on the CPU. Errors as zeros.
---@param shape integer[]
---@param dtype? marea.dtype "f32" unless given
---@return marea.tensor tensor
function host.ones(shape, dtype) end

--- A tensor on the CPU whose elements are all one value.
--- Errors, code 1: as core.full.
---@param shape integer[]
---@param value number
---@param dtype? marea.dtype "f32" unless given
---@return marea.tensor tensor
function host.full(shape, value, dtype) end

--- A tensor of given values on the CPU, in row-major order.
--- Errors, code 1: as core.from.
---@param values marea.nested
---@param dtype? marea.dtype "f32" unless given
---@param shape? integer[] the nesting of the values unless given
---@return marea.tensor tensor
function host.from(values, dtype, shape) end
