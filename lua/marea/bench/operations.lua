-- Small recorded operations, called from Lua, in turns with PyTorch's from Python: what a call
-- costs beside its arithmetic. Each result is dropped at once; the collector's work is in the time.

local core = require "marea.core"
local statistics = require "marea.bench.statistics"

local operations = {}

local side = 4
local calls, turns = 20000, 7

-- By name; each does n of its operation on x and y, which require gradients.
local loops = {
  scale = function(n, x) for _ = 1, n do local _ = x:scale(0.5) end end,
  add = function(n, x, y) for _ = 1, n do local _ = x:add(y) end end,
  multiply = function(n, x, y) for _ = 1, n do local _ = x:multiply(y) end end,
  relu = function(n, x) for _ = 1, n do local _ = x:relu() end end,
  linear = function(n, x, y) for _ = 1, n do local _ = x:linear(y) end end,
  sum_backward = function(n, x, y) for _ = 1, n do x:add(y):sum():backward() end end,
}

--- Their names, in the order of the table. The last is three calls: add, sum and backward.
operations.names = { "scale", "add", "multiply", "relu", "linear", "sum_backward" }

--- Extent of the square tensors.
operations.side = side

---@class marea.OperationRow
---@field name string
---@field ns marea.Spread nanoseconds a call
---@field torch_ns? marea.Spread of PyTorch
---@field ratio? marea.Spread PyTorch's over ours, of turns

---@class marea.Operations
---@field side integer
---@field rows marea.OperationRow[]
---@field torch? string version
---@field ratio? number the median of the rows' ratios

--- Measures on this rank alone.
---@param peer? marea.Torch as torch.operations gives it
---@return marea.Operations
function operations.measure(peer)
  local x = core.host.ones({ side, side }):requires_gradient_(true)
  local y = core.host.ones({ side, side }):requires_gradient_(true)
  local ours, theirs = {}, {}
  for _, name in ipairs(operations.names) do
    ours[name], theirs[name] = {}, {}
    loops[name](calls, x, y)
  end
  if peer then peer:nanoseconds(calls) end
  for turn = 1, turns do
    for _, name in ipairs(operations.names) do
      local began = core.seconds()
      loops[name](calls, x, y)
      ours[name][turn] = (core.seconds() - began) / calls * 1e9
    end
    for name, ns in pairs(peer and peer:nanoseconds(calls) or {}) do theirs[name][turn] = ns end
  end
  local rows, ratios = {}, {}
  for i, name in ipairs(operations.names) do
    rows[i] = { name = name, ns = statistics.spread(ours[name]) }
    if peer then
      rows[i].torch_ns = statistics.spread(theirs[name])
      rows[i].ratio = statistics.ratio(theirs[name], ours[name])
      ratios[i] = rows[i].ratio.median
    end
  end
  return { side = side, rows = rows, torch = peer and peer.version,
           ratio = peer and statistics.median(ratios) }
end

return operations
