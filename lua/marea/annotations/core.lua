---@meta marea.core

-- What the C module marea.core exports: here the module itself and what belongs to no subject; the
-- other files of this folder describe tensors, groups, units and the rest. None of them is run: a
-- language server reads them, and spec/unit/annotations_spec.lua compares them with the engine.
--
-- A class is named as its userdata's metatable (marea.tensor); classes of the Lua library begin
-- with a capital (marea.Replica). Whatever fails raises a fault, whose code is the program's exit
-- code: 1 for an argument that cannot be, a disk or memory, unless another is named.

---@class marea.argument
---@field name string
---@field kind "real"|"constant"|"i32"|"i64"|"tensors"|"number"|"integer"|"flag"|"shape"
---@field optional boolean
---@field named boolean given in the table of options that ends the call
---@field fallback number what an absent number, integer or flag stands for
---@field text string shape, unit, meaning

--- The record of an operation (engine/grad/ops).
---@class marea.operation
---@field name string
---@field text string one sentence
---@field result_text string shape, and dtype where it is another than the arguments'
---@field second_text string? what the second result is, of an operation that has two
---@field differentiable boolean
---@field arguments marea.argument[] the first is the tensor itself

--- The engine. Scripts and recipes use it through require "marea".
---@class marea.core
---@field file marea.core.file
---@field host marea.core.host
---@field safetensors marea.core.safetensors
---@field process marea.core.process
---@field operations marea.operation[] every operation, by name
---@field fault_metatable table of error values {message, code}
local core = {}

--- Tells the engine which sources belong to the library: the first line outside them begins a
--- fault's message.
---@param prefix string "@" and the folder, with its last slash
function core.set_library(prefix) end

--- The first line of the stack outside the library.
---@return string line "recipes/minimum.lua:12", or "" where there is none
function core.recipe_line() end

---@class marea.memory_use
---@field live integer bytes
---@field peak integer highest live bytes since the start, or since memory_reset_peak
---@field requests integer allocations so far

--- What the engine holds on the device.
---@return marea.memory_use use
function core.memory() end

--- Makes the peak begin anew at what is live.
function core.memory_reset_peak() end

--- For specs: the n-th allocation from now on fails once; 0 turns this off.
---@param n integer
function core.memory_fail_at(n) end

---@class marea.device
---@field name string "cpu", "cuda:0"
---@field instruction_set string such as "avx2", "sm_90"
---@field kernel_calls integer so far
---@field blas string library and core, as it names itself
---@field model string the GPU's name; "" for the CPU
---@field place string what two GPUs have in common only if they are one; "" for the CPU
---@field threads integer
---@field waits integer how often the host has waited for the device so far

--- What runs the kernels.
---@return marea.device device
function core.device() end

--- Makes a device that on which new tensors lie; those that there are stay where they lie.
--- Errors, code 4: CUDA, its driver or that GPU cannot be had.
---@param name "cpu"|"cuda"
---@param ordinal? integer of the GPU, from 0
function core.use_device(name, ordinal) end

--- How many GPUs the driver shows. Errors, code 4, with what is missing.
---@return integer count
function core.count_cuda() end

--- Returns when the device has done all that was asked of it. Errors: what failed there.
function core.finish() end

--- Sets how many threads kernels use from now on. The bits of results stay the same.
---@param threads integer 1 to 4096
function core.set_threads(threads) end

--- Seconds since some fixed moment, for intervals; never goes back.
---@return number seconds
function core.seconds() end

--- How long backwards have taken so far, without their waits for other ranks.
---@return number seconds
function core.backward_seconds() end

--- Now in UTC.
---@return string time "2025-01-31T12:00:00Z"
function core.utc() end

--- A component that misses the gate by no more than factor * scale is excused as rounding where the
--- pair a, b, computed in a wider dtype, holds under its own gate.
---@class marea.excuse
---@field factor number
---@field scale marea.tensor [elements]
---@field a marea.tensor [elements]
---@field b marea.tensor [elements]
---@field absolute number
---@field relative number

---@class marea.compare_options
---@field absolute? number (default 0)
---@field relative? number (default 0)
---@field excuse? marea.excuse

---@class marea.share
---@field up_to? number share of the gate; absent in the last, which counts what lies beyond
---@field count integer components with more than the share before and at most this one

---@class marea.comparison
---@field count integer components
---@field failing integer components outside the gate, or not finite
---@field rounding integer components that were excused
---@field max_abs number
---@field max_rel number over components where b is not 0
---@field max_b number largest |b| that is finite
---@field worst integer component with the largest error measured by its gate, from 1; 0 for none
---@field worst_a number
---@field worst_b number
---@field dot_ab number sum of a b
---@field dot_bb number sum of b b
---@field shares marea.share[] components by |a - b| / (absolute + relative |b|); the first: equal

--- Compares two tensors component by component: |a - b| <= absolute + relative |b|.
--- Errors, code 1: other numbers of elements, i32 and i64.
---@param a marea.tensor
---@param b marea.tensor the reference; may have the other real dtype
---@param gate? marea.compare_options
---@return marea.comparison found
function core.compare(a, b, gate) end

--- Adds the absolute values of x to a sum, in place.
--- Errors, code 1: another number of elements or dtype.
---@param sum marea.tensor
---@param x marea.tensor
function core.add_absolute(sum, x) end

return core
