-- Making tensors; operations are methods of them.

local core = require "marea.core"

---@class marea.parts.tensor
local tensor = {
  zeros = core.zeros, ones = core.ones, full = core.full, from = core.from,
  normal = core.normal, uniform = core.uniform,
}

return tensor
