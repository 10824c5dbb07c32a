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
--- Errors: code 1 for shapes that do not fit, code 2 for targets outside the classes.
---@param logits marea.tensor [rows, classes]
---@param targets marea.tensor i32 [rows], from 0
---@return marea.tensor losses [rows]
function nn.cross_entropy(logits, targets) return logits:cross_entropy(targets) end

--- Squared error of each element, unweighted. Errors, code 1: unequal shapes.
---@param a marea.tensor
---@param b marea.tensor the shape of a
---@return marea.tensor errors the shape of a
function nn.squared_error(a, b) return a:squared_error(b) end

return nn
