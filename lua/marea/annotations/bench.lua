---@meta _

-- What `marea bench` measures with.

---@class marea.core
local core = {}

--- The matrix products behind a loss, read off its graph, which stays as it is. They run on memory
--- of their own through the kernels, tiles and threads of training. May be a <close> variable.
---@class marea.products: userdata
local products = {}

--- Works all of them out once: three for a linear map, six for each head of each sequence of
--- attention, over all pairs of rows.
---@return number seconds
function products:run() end

---@class marea.product_operations
---@field single number multiplications and additions of products that are cut into tiles
---@field batched number of those that run beside each other, attention's

--- Multiplications and additions of one run.
---@return marea.product_operations operations
function products:operations() end

---@class marea.product_shape
---@field count integer products of this shape, one after the other
---@field batched boolean
---@field m integer rows of the result
---@field n integer its columns
---@field k integer what is summed over

--- The products in the order in which they run.
---@return marea.product_shape[] shapes
function products:shapes() end

--- The products of the forward and the backward of everything that a loss depends on.
--- Errors, code 1: a loss that depends on no parameter.
---@param loss marea.tensor
---@return marea.products products
function core.products(loss) end

--- Begins to measure the time of each operation, from nothing; false ends it.
---@param wanted boolean
function core.profile(wanted) end

---@class marea.profiled
---@field name string of the operation
---@field calls integer forwards
---@field forward number seconds, with making the result
---@field backward number seconds, with making gradients

--- What was measured since core.profile(true); nothing where it is off.
---@return marea.profiled[] rows
function core.profiled() end

--- Binds each thread of the kernels to a core of its own, for as long as this process lives. It
--- does nothing where OMP_PROC_BIND is set, with one thread, or on cores that others share.
---@return boolean bound
function core.bind_threads() end

--- Spins on all threads of the kernels: how much of the time others took.
---@param seconds number at most 60
---@return number share from 0 to 1, the mean over threads
function core.spin(seconds) end

--- Sleeps: what waits without taking a core from those that are measured.
---@param seconds number at most 60
function core.nap(seconds) end

--- MPI's own blocking sum over the ranks, in place, for measuring; nothing is compared or counted.
--- Errors, code 1: a tensor that is not f32.
---@param group marea.group
---@param tensor marea.tensor f32
function core.plain_all_reduce(group, tensor) end
