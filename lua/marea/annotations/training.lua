---@meta _

-- Flat units of parameters, reducers of their gradients, optimizers.

---@class marea.core
local core = {}

---@class marea.parameter
---@field name string
---@field shape integer[]
---@field decay? boolean whether weight decay applies (default true)

--- The parameters of a model, zero at first, in one flat buffer in the order given.
--- Errors, code 1: a name given twice, a dtype that is not real, no memory.
---@param parameters marea.parameter[]
---@param dtype? marea.dtype "f32" unless given
---@return marea.unit unit
function core.unit(parameters, dtype) end

--- Parameters in one flat buffer, and their gradients in another of the same layout. Between
--- parameters lie gaps of zeros, so that each begins at a multiple of 32 elements.
---
--- Parameters of bf16 are a copy, rounded to nearest even, of a master in f32, in which their
--- gradients and an optimizer's state are too. For other dtypes the master is the parameters.
---@class marea.unit: userdata
local unit = {}

--- A parameter: a leaf over its range of the buffer. Changing it changes the unit; for bf16 change
--- the master, which the next step or refresh copies.
--- Errors, code 1: an unknown name.
---@param name string
---@return marea.tensor parameter
function unit:parameter(name) end

--- The names of all parameters, in order.
---@return string[] names
function unit:names() end

---@class marea.range
---@field name string
---@field offset integer first element in the flat buffers, from 0
---@field count integer number of elements
---@field shape integer[]
---@field decay boolean

--- Where each parameter lies, in order.
---@return marea.range[] ranges
function unit:ranges() end

--- Number of parameters as elements, without the gaps.
---@return integer count
function unit:parameters() end

--- A number that grows with every change of the parameters in place.
---@return integer version
function unit:version() end

--- All parameters; shares memory.
---@return marea.tensor values [elements with gaps]
function unit:values() end

--- What an optimizer moves; shares memory. After changing it, refresh().
---@return marea.tensor master [elements with gaps]
function unit:master() end

--- Makes parameters of bf16 the rounded copy of their master, where that has changed.
function unit:refresh() end

--- All gradients; shares memory.
---@return marea.tensor gradients [elements with gaps]
function unit:gradients() end

--- Moves the gradients into memory that the ranks of a host share, where there is any: an
--- all_reduce of them, or of a part of them, is then summed in place, each rank its share, in rank
--- order. Every tensor over them follows. All ranks of the group call it.
--- Errors, code 6: units of different sizes.
---@param group marea.group
---@return string way "one process", "shared window", "shared windows, MPI between hosts", "NCCL" or
---  "MPI"
---@return string why what was in the way of a shared window; "" for nothing
function unit:share_gradients(group) end

--- Sets all gradients to zero.
function unit:zero_grad() end

--- The 2-norm of all gradients, summed in double precision and a fixed order.
---@return number norm
function unit:norm() end

--- Scales all gradients by min(1, maximum / (norm + 1e-6)); a norm that is not finite scales
--- nothing.
---@param maximum number above 0
---@return number norm before
function unit:clip(maximum) end

--- What clipping would scale gradients of this norm by: min(1, maximum / (norm + 1e-6)); 1 for a
--- norm that is not finite.
---@param maximum number above 0
---@param norm number
---@return number factor
function unit:clip_factor(maximum, norm) end

---@class marea.reducer_options
---@field reduction? "mean"|"sum" over the ranks (default "mean")
---@field bucket_bytes? integer a bucket is closed once it has as many (default 1048576)
---@field overlap? boolean send while backward goes on; the bits are the same (default true)

--- Follows the parameters of a unit from now on, and guards its steps; all ranks of the group make
--- theirs together.
--- Errors, code 1: a unit that a reducer follows already, options that cannot be.
---@param unit marea.unit
---@param group marea.group
---@param options? marea.reducer_options
---@return marea.reducer reducer
function core.reducer(unit, group, options) end

--- Reduces the gradients of a unit over the ranks of a group, bucket by bucket, once per window,
--- while backward goes on. Which elements share a bucket follows from the list of parameters alone.
---@class marea.reducer: userdata
local reducer = {}

--- The same loss, tied to the reducer: its backward takes part in the reduction on every rank, even
--- one whose loss depends on no parameter.
--- Errors, code 1: another dtype than the unit's.
---@param loss marea.tensor
---@return marea.tensor loss
function reducer:attach(loss) end

--- A scope in which backward adds to this rank's gradients and nothing is sent. Forward and
--- backward belong into the same scope. Scopes nest.
---@return marea.no_sync scope
function reducer:no_sync() end

--- Ends when it is closed or collected.
---@class marea.no_sync: userdata

--- Sets all gradients to zero; a new reduction may follow.
function reducer:zero_grad() end

--- Opens a window. Until it is closed an optimizer refuses to step.
--- Errors, code 1: a window that is open already.
---@param microbatches integer how many backwards there will be
function reducer:begin_window(microbatches) end

--- Closes the window.
--- Errors, code 1: gradients that were never reduced, another number of backwards than announced.
function reducer:end_window() end

---@class marea.bucket
---@field first integer first element of the flat gradients, from 0
---@field past integer element behind the last

--- The buckets in the order in which they are sent: from the last parameter to the first.
---@return marea.bucket[] buckets
function reducer:buckets() end

--- Stops following the unit. A <close> variable and the collector call it too.
function reducer:close() end

---@class marea.sgd_options
---@field momentum? number (default 0)
---@field nesterov? boolean Nesterov's form; needs a momentum above 0 (default false)
---@field decay? number added to the gradient, times the parameter (default 0)
---@field decay_all? boolean parameters marked as not decaying too (default false)

--- Stochastic gradient descent over a unit, which it keeps alive.
--- Errors, code 1: a setting out of range.
---@param unit marea.unit
---@param options? marea.sgd_options
---@return marea.optimizer optimizer
function core.sgd(unit, options) end

---@class marea.adamw_options
---@field beta1? number (default 0.9)
---@field beta2? number (default 0.999)
---@field epsilon? number (default 1e-8)
---@field decay? number decoupled weight decay (default 0.01)
---@field decay_all? boolean parameters marked as not decaying too (default false)

--- Adam with decoupled weight decay and bias correction over a unit, which it keeps alive.
--- Errors, code 1: a setting out of range.
---@param unit marea.unit
---@param options? marea.adamw_options
---@return marea.optimizer optimizer
function core.adamw(unit, options) end

--- Steps over the flat buffers of a unit.
---@class marea.optimizer: userdata
local optimizer = {}

--- Changes the parameters by one step; the gradients stay as they are.
--- Errors, code 1: lr or factor negative or not finite; where a reducer follows the unit, gradients
--- that are not reduced, and a window that is open.
---@param lr number
---@param factor? number of the gradients in this step (default 1)
function optimizer:step(lr, factor) end

--- Number of steps taken.
---@return integer steps
function optimizer:steps() end

--- Sets the number of steps taken, after the state was restored.
---@param steps integer at least 0
function optimizer:restore(steps) end

--- State in the layout of the unit, by name; shares memory. SGD has "velocity" where its momentum
--- is above 0, AdamW has "m" and "v".
---@return table<string, marea.tensor> state
function optimizer:state() end
