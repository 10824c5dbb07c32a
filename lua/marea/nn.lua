-- Neural networks: modules, and losses per position.

local fault = require "marea.fault"
local basic = require "marea.nn.basic"
local kind = require "marea.kind"
local Module = require "marea.nn.module"

---@class marea.parts.nn
local nn = {
  class = Module.class,
  Linear = basic.Linear,
  Embedding = basic.Embedding,
  LayerNorm = basic.LayerNorm,
  RMSNorm = basic.RMSNorm,
  Dropout = basic.Dropout,
  Transformer = require "marea.nn.transformer",
}

local function check_tensor(value, what, name)
  if kind.is_tensor(value) then return end
  fault.raise(1, "%s: %s must be a tensor, got %s", what, name, kind.of(value))
end

--- Cross-entropy of each position, unweighted; 0 where the target is -100.
--- Errors: code 1 for shapes that do not fit, code 2 for targets outside the classes.
---@param logits marea.tensor [rows, classes]
---@param targets marea.tensor i32 [rows], from 0
---@return marea.tensor losses [rows]
function nn.cross_entropy(logits, targets)
  check_tensor(logits, "nn.cross_entropy", "logits")
  check_tensor(targets, "nn.cross_entropy", "targets")
  return logits:cross_entropy(targets)
end

--- Squared error of each element, unweighted. Errors, code 1: unequal shapes.
---@param a marea.tensor
---@param b marea.tensor the shape of a
---@return marea.tensor errors the shape of a
function nn.squared_error(a, b)
  check_tensor(a, "nn.squared_error", "a")
  check_tensor(b, "nn.squared_error", "b")
  return a:squared_error(b)
end

return nn
