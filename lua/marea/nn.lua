-- Neural networks: modules, and losses per position.

local basic = require "marea.nn.basic"
local Module = require "marea.nn.module"

local nn = {
  class = Module.class,
  Linear = basic.Linear,
  Embedding = basic.Embedding,
  LayerNorm = basic.LayerNorm,
  RMSNorm = basic.RMSNorm,
  Dropout = basic.Dropout,
  Transformer = require "marea.nn.transformer",
}

--- Cross-entropy of each position, unweighted; 0 where the target is -100.
---@param logits userdata [rows, classes]
---@param targets userdata i32 [rows]
---@return userdata losses [rows]
function nn.cross_entropy(logits, targets) return logits:cross_entropy(targets) end

--- Squared error of each element, unweighted.
---@param a userdata
---@param b userdata the shape of a
---@return userdata errors the shape of a
function nn.squared_error(a, b) return a:squared_error(b) end

return nn
