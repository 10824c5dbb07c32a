---@meta _

-- Groups of ranks, and the handles of operations under way. Ranks count from 0.

---@alias marea.reduction "sum"|"mean"|"max"|"min"

---@class marea.core
local core = {}

--- The group of all ranks of this run, a single one outside mpirun. The first call opens it.
--- Errors: code 4 where MPI cannot start.
---@return marea.group world
function core.world() end

--- Ends the world: code 0 waits until all ranks close it, another one tells the others that this
--- rank stops, and why. Nothing can be sent afterwards.
---@param code integer 0 to 7
---@param message? string why this rank stops
---@return integer code that the process is to end with: that of the rank that stopped first
---@return boolean alike whether all ranks end with the same code and message
---@return string? problem why the world could not be closed in good order
function core.end_world(code, message) end

--- Ranks that work together. Every operation on a group is compared with what the other ranks
--- called at the same place before any data is read. Each form that ends in _async returns at once;
--- until its handle is done, its tensor must not be read or changed.
---
--- Errors of every operation: code 1 for arguments that cannot be, code 6 on all ranks where they
--- called different things, naming each other's lines, or where a rank is lost or has stopped.
---@class marea.group: userdata
local group = {}

--- This process's rank in the group.
---@return integer rank from 0
function group:rank() end

--- Number of ranks in the group.
---@return integer size
function group:size() end

--- This process's rank among the group's ranks on this host.
---@return integer rank from 0
function group:local_rank() end

--- Number of the group's ranks on this host.
---@return integer size
function group:local_size() end

--- The name that messages use.
---@return string name "the world", or "group 1 of the world" after its color
function group:name() end

--- How calls are compared before data is read.
---@return "one process"|"shared"|"control" board
function group:board() end

--- Lets this group, the world, and every group split from it later move data between the ranks'
--- GPUs by NCCL; all ranks call it, each computing on a GPU of its own. The environment:
--- MAREA_NCCL=off, auto (with several ranks; so too when it is not set) or always;
--- MAREA_NCCL_SECONDS, 600 unless set, is the time after which an operation that has not ended
--- fails on this rank.
--- Errors: code 4 where NCCL cannot connect the ranks, code 6 where one is lost meanwhile.
---@return string? name "NCCL 2.28.9"; nil where data go by way of the host
---@return string? missing what is missing for it; "" for nothing: one rank, or MAREA_NCCL=off
function group:use_nccl() end

--- What moves data on the device in use between the ranks without the host.
---@return string? name "NCCL 2.28.9"; nil where data go by way of the host, or lie there
function group:carrier() end

---@class marea.ledger_entry
---@field calls integer
---@field bytes integer that this rank handed in

--- What this rank did in the group so far.
---@return table<string, marea.ledger_entry> ledger by kind, such as "all_reduce"
function group:ledger() end

--- How long this process has waited for other ranks so far, in all groups.
---@return number seconds
function group:waited() end

--- How long this process has summed gradients in shared windows so far, in all groups.
---@return number seconds
---@return number waiting seconds of them that waited() holds too
function group:summed() end

--- The ranks that give the same color, as a group of their own, ordered by key, then by rank. All
--- ranks of this group call it.
---@param color integer at least 0, or -1 to join none
---@param key? integer 0 unless given
---@return marea.group? part nil for color -1
function group:split(color, key) end

--- Moves operations under way on, without waiting.
function group:progress() end

--- Reduces a tensor element by element over all ranks, in place; all end with the same bits. A NaN
--- on any rank makes max and min NaN.
--- Errors, code 1: a mean of i32 or i64.
---@param tensor marea.tensor same dtype and number of elements on all ranks
---@param reduction marea.reduction
---@return marea.tensor tensor
function group:all_reduce(tensor, reduction) end

--- all_reduce without waiting.
---@param tensor marea.tensor
---@param reduction marea.reduction
---@return marea.handle handle
function group:all_reduce_async(tensor, reduction) end

--- Replaces the elements on all ranks by those of one, in place.
---@param tensor marea.tensor same dtype and number of elements on all ranks
---@param root integer the rank whose elements they become
---@return marea.tensor tensor
function group:broadcast(tensor, root) end

--- broadcast without waiting.
---@param tensor marea.tensor
---@param root integer
---@return marea.handle handle
function group:broadcast_async(tensor, root) end

--- The tensors of all ranks, one after the other along the first axis.
---@param tensor marea.tensor [rows, ...], the same shape on all ranks; a scalar counts as [1]
---@return marea.tensor all [size * rows, ...], in rank order
function group:all_gather(tensor) end

--- all_gather without waiting.
---@param tensor marea.tensor
---@return marea.handle handle
function group:all_gather_async(tensor) end

--- Reduces over all ranks, and gives each rank its own block of rows of the result.
--- Errors, code 1: rows that are no multiple of size; a mean of i32 or i64.
---@param tensor marea.tensor [size * rows, ...], the same shape on all ranks; stays as it is
---@param reduction marea.reduction
---@return marea.tensor block [rows, ...]
function group:reduce_scatter(tensor, reduction) end

--- reduce_scatter without waiting.
---@param tensor marea.tensor
---@param reduction marea.reduction
---@return marea.handle handle
function group:reduce_scatter_async(tensor, reduction) end

--- Sends block r of the rows to rank r, and gives what the ranks sent here, in rank order.
--- Errors, code 1: rows that are no multiple of size.
---@param tensor marea.tensor [size * rows, ...], the same shape on all ranks; stays as it is
---@return marea.tensor received [size * rows, ...]
function group:all_to_all(tensor) end

--- all_to_all without waiting.
---@param tensor marea.tensor
---@return marea.handle handle
function group:all_to_all_async(tensor) end

--- Sends a tensor to one rank. Returns once that rank receives: the n-th send to a rank meets its
--- n-th receive from this one, with the same dtype, number of elements and tag.
---@param tensor marea.tensor
---@param rank integer the receiver; may be this one, where send_async is used
---@param tag? integer at least 0; 0 unless given
---@return marea.tensor tensor
function group:send(tensor, rank, tag) end

--- send without waiting.
---@param tensor marea.tensor
---@param rank integer
---@param tag? integer
---@return marea.handle handle
function group:send_async(tensor, rank, tag) end

--- Replaces the elements of a tensor by those that one rank sends.
---@param tensor marea.tensor
---@param rank integer the sender
---@param tag? integer at least 0; 0 unless given
---@return marea.tensor tensor
function group:receive(tensor, rank, tag) end

--- receive without waiting.
---@param tensor marea.tensor
---@param rank integer
---@param tag? integer
---@return marea.handle handle
function group:receive_async(tensor, rank, tag) end

--- Returns once every rank of the group has called it.
function group:barrier() end

--- barrier without waiting.
---@return marea.handle handle
function group:barrier_async() end

--- An operation under way. It goes on while other work is done, as in backward. One that is closed
--- or collected before its end is waited for, and its failure is lost.
---@class marea.handle: userdata
local handle = {}

--- Waits for the end of the operation; may be called again. Errors: those of the operation.
---@return marea.tensor? result what the form without _async returns
function handle:wait() end

--- Whether the operation has ended, well or not.
---@return boolean done
function handle:done() end
