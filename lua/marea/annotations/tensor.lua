---@meta _

-- Tensors: making, reading, changing, gradients. Their operations are in operations.lua.

---@alias marea.dtype "f32"|"f64"|"bf16"|"i32"|"i64"

--- Nested lists of numbers, all of one depth.
---@alias marea.nested number[]|marea.nested[]

---@class marea.core
local core = {}

--- A tensor of zeros.
--- Errors, code 1: a negative extent, more than 6 axes, no memory.
---@param shape integer[] extents; {} makes a scalar
---@param dtype? marea.dtype "f32" unless given
---@return marea.tensor tensor
function core.zeros(shape, dtype) end

--- A tensor of ones. Errors as zeros.
---@param shape integer[]
---@param dtype? marea.dtype "f32" unless given
---@return marea.tensor tensor
function core.ones(shape, dtype) end

--- A tensor whose elements are all one value.
--- Errors, code 1: as zeros; a value that the dtype does not hold.
---@param shape integer[]
---@param value number
---@param dtype? marea.dtype "f32" unless given
---@return marea.tensor tensor
function core.full(shape, value, dtype) end

--- A tensor of given values, in row-major order.
--- Errors, code 1: rows of unequal length, values that the dtype does not hold, a shape with
--- another number of elements.
---@param values marea.nested
---@param dtype? marea.dtype "f32" unless given
---@param shape? integer[] the nesting of the values unless given
---@return marea.tensor tensor
function core.from(values, dtype, shape) end

--- A scope in which operations are not recorded: `local _ <close> = core.no_grad()`. Scopes nest.
---@return marea.no_grad scope
function core.no_grad() end

--- Ends when it is closed or collected.
---@class marea.no_grad: userdata

--- A contiguous, row-major array of numbers on the device. Its memory goes when nothing refers to
--- it any more; views (detach, reshape, slice, a unit's parameters) share that of their base.
---
--- An operation checks its arguments first and raises with code 1: a dtype that is not real or
--- not that of the arguments before it, a shape that does not fit, a value that backward consumed.
--- Ids outside their range raise with code 2.
--- Where an argument requires a gradient the operation is recorded, and so does its result.
---
--- Of bf16, operations compute and sum in f32, and results that stand for many values are f32:
--- losses, sums, and gradients of leaves.
---@class marea.tensor: userdata
local tensor = {}

--- The extents of all axes; {} for a scalar.
---@return integer[] shape a new table
function tensor:shape() end

--- The device that it lies on: "cpu", "cuda:0".
---@return string name
function tensor:device() end

--- The dtype of all elements.
---@return marea.dtype dtype
function tensor:dtype() end

--- Number of elements.
---@return integer count
function tensor:count() end

--- The only element, as a float (f32, f64, bf16) or an integer (i32, i64).
--- Errors, code 1: more or fewer elements than one.
---@return number value
function tensor:item() end

--- All elements in row-major order: floats, or integers for i32 and i64.
---@return number[] values a new table
function tensor:values() end

--- One element.
--- Errors, code 1: a position outside 1 to count().
---@param position integer in row-major order, from 1
---@return number value
function tensor:get(position) end

--- Changes one element.
--- Errors, code 1: a position outside 1 to count(), a value that the dtype does not hold.
---@param position integer in row-major order, from 1
---@param value number
---@return marea.tensor self
function tensor:set_(position, value) end

--- The sum of all elements in double precision and a fixed order; f32 and f64 only.
---@return number total
function tensor:total() end

--- The total as an f64 scalar on the same device. Nothing waits for it before its item() is read.
---@return marea.tensor total
function tensor:deferred_total() end

--- sha-256 over dtype, shape and the bytes of the elements.
---@return string hash 64 hexadecimal digits
function tensor:hash() end

--- Whether two tensors are the same elements in memory, such as a tensor and its detach().
---@param other marea.tensor
---@return boolean same
function tensor:is_same(other) end

--- A copy with elements of its own in another dtype. Not recorded.
--- Errors, code 1: from f32, f64 or bf16 to i32 or i64.
---@param dtype marea.dtype
---@return marea.tensor copy
function tensor:to(dtype) end

--- A copy with elements of its own. Not recorded.
---@return marea.tensor copy
function tensor:copy() end

--- The same elements, without what they were computed from; shares memory.
---@return marea.tensor view
function tensor:detach() end

--- Sets all elements to one value.
---@param value number
---@return marea.tensor self
function tensor:fill_(value) end

--- Sets all elements to those of another tensor of the same dtype and number of elements.
--- Errors, code 1: another dtype or number of elements.
---@param source marea.tensor
---@return marea.tensor self
function tensor:copy_(source) end

--- Adds alpha times another tensor of the same dtype and number of elements. Not recorded.
--- Errors, code 1: another dtype or number of elements.
---@param alpha number
---@param other marea.tensor
---@return marea.tensor self
function tensor:add_scaled_(alpha, other) end

--- Multiplies all elements by a number. Not recorded.
---@param alpha number
---@return marea.tensor self
function tensor:scale_(alpha) end

--- Whether backward brings a gradient: a leaf that asks for one, or the result of a recorded
--- operation.
---@return boolean requires
function tensor:requires_gradient() end

--- Asks for a gradient, or no longer.
--- Errors, code 1: the result of an operation, which is no leaf; i32 and i64.
---@param wanted? boolean true unless given
---@return marea.tensor self
function tensor:requires_gradient_(wanted) end

--- The gradient that backwards added up; nil before the first. Changing it changes the gradient.
---@return marea.tensor? gradient the shape and dtype of the tensor; shares memory
function tensor:gradient() end

--- Lets the value of a result outlive the backward that consumes it.
---@return marea.tensor self
function tensor:keep() end

--- Adds the derivative of this value to the gradient of every leaf that requires one. The recorded
--- operations are consumed: their results end, but for this one and those that were kept.
--- Errors, code 1: more elements than one, no leaf that requires a gradient, a second backward, an
--- input that was changed in place since; what a reducer refuses.
function tensor:backward() end
