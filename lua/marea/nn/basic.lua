-- Modules of one operation: linear, embedding, norms, dropout.

local fault = require "marea.fault"
local kind = require "marea.kind"
local Module = require "marea.nn.module"
local options_of = require "marea.options"

local basic = {}

--- Refuses, with code 2, an option that is no integer of at least 1.
---@param options table
---@param key string
---@param what string name of the module, for the message
---@return integer extent
local function extent(options, key, what)
  local value = math.tointeger(options[key])
  if not value or value < 1 then
    fault.raise(2, "%s: %s must be an integer of at least 1, got %s", what, key,
                kind.shown(options[key]))
  end
  return value
end
basic.extent = extent

---@class marea.LinearOptions
---@field input integer
---@field output integer
---@field bias? boolean (default true)
---@field std? number standard deviation of the weight (default 0.02)

--- x w^T + b over the last axis. Weight [out, in] from N(0, std), bias [out] from 0.
---@class marea.Linear: marea.Module
---@field weight marea.tensor [output, input]
---@field bias? marea.tensor [output]
---@overload fun(options: marea.LinearOptions): marea.Linear
---@overload fun(x: marea.tensor): marea.tensor
local Linear = Module.class("nn.Linear")
basic.Linear = Linear

--- Declares the weight and, unless bias is false, the bias.
---@param options marea.LinearOptions
function Linear:init(options)
  options_of.check(options, "nn.Linear", { "input", "output", "bias", "std" })
  local input = extent(options, "input", "nn.Linear")
  local output = extent(options, "output", "nn.Linear")
  self:parameter("weight", { output, input }, { std = options.std or 0.02 })
  if options.bias ~= false then self:parameter("bias", { output }, { decay = false }) end
end

--- x w^T + b.
---@param x marea.tensor [..., input]
---@return marea.tensor result [..., output]
function Linear:forward(x) return x:linear(self.weight, self.bias) end

---@class marea.EmbeddingOptions
---@field rows integer
---@field width integer
---@field std? number standard deviation of the weight (default 0.02)

--- A row of the weight [rows, width] for each id.
---@class marea.Embedding: marea.Module
---@field weight marea.tensor [rows, width]
---@overload fun(options: marea.EmbeddingOptions): marea.Embedding
---@overload fun(ids: marea.tensor): marea.tensor
local Embedding = Module.class("nn.Embedding")
basic.Embedding = Embedding

--- Declares the weight [rows, width] from N(0, std).
---@param options marea.EmbeddingOptions
function Embedding:init(options)
  options_of.check(options, "nn.Embedding", { "rows", "width", "std" })
  local rows = extent(options, "rows", "nn.Embedding")
  local width = extent(options, "width", "nn.Embedding")
  self:parameter("weight", { rows, width }, { std = options.std or 0.02 })
end

--- The rows of the weight.
---@param ids marea.tensor i32 [n], from 0 to rows - 1
---@return marea.tensor rows [n, width]
function Embedding:forward(ids) return self.weight:embedding(ids) end

---@class marea.LayerNormOptions
---@field width integer
---@field epsilon? number (default 1e-5)
---@field bias? boolean (default true)

--- Layer norm over the last axis; weight from 1, bias from 0; no weight decay.
---@class marea.LayerNorm: marea.Module
---@field weight marea.tensor [width]
---@field bias? marea.tensor [width]
---@overload fun(options: marea.LayerNormOptions): marea.LayerNorm
---@overload fun(x: marea.tensor): marea.tensor
local LayerNorm = Module.class("nn.LayerNorm")
basic.LayerNorm = LayerNorm

--- Declares the weight and, unless bias is false, the bias.
---@param options marea.LayerNormOptions
function LayerNorm:init(options)
  options_of.check(options, "nn.LayerNorm", { "width", "epsilon", "bias" })
  local width = extent(options, "width", "nn.LayerNorm")
  self.epsilon = options.epsilon or 1e-5
  self:parameter("weight", { width }, { value = 1, decay = false })
  if options.bias ~= false then self:parameter("bias", { width }, { decay = false }) end
end

--- Each row less its mean, over its standard deviation, times the weight plus the bias.
---@param x marea.tensor [..., width]
---@return marea.tensor result the shape of x
function LayerNorm:forward(x)
  return x:layer_norm(self.weight, self.bias, { epsilon = self.epsilon })
end

--- The norm of a sum, and the sum, in one pass: of a residual.
---@param x marea.tensor [..., width]
---@param y marea.tensor the shape of x
---@return marea.tensor norm the shape of x
---@return marea.tensor sum x + y
function LayerNorm:of_sum(x, y)
  return x:add_layer_norm(y, self.weight, self.bias, { epsilon = self.epsilon })
end

---@class marea.RMSNormOptions
---@field width integer
---@field epsilon? number (default 1e-5)

--- RMS norm over the last axis; weight from 1; no weight decay.
---@class marea.RMSNorm: marea.Module
---@field weight marea.tensor [width]
---@overload fun(options: marea.RMSNormOptions): marea.RMSNorm
---@overload fun(x: marea.tensor): marea.tensor
local RMSNorm = Module.class("nn.RMSNorm")
basic.RMSNorm = RMSNorm

--- Declares the weight.
---@param options marea.RMSNormOptions
function RMSNorm:init(options)
  options_of.check(options, "nn.RMSNorm", { "width", "epsilon" })
  self.epsilon = options.epsilon or 1e-5
  self:parameter("weight", { extent(options, "width", "nn.RMSNorm") }, { value = 1, decay = false })
end

--- Each row over its root mean square, times the weight.
---@param x marea.tensor [..., width]
---@return marea.tensor result the shape of x
function RMSNorm:forward(x) return x:rms_norm(self.weight, { epsilon = self.epsilon }) end

--- The norm of a sum, and the sum: of a residual.
---@param x marea.tensor [..., width]
---@param y marea.tensor the shape of x
---@return marea.tensor norm the shape of x
---@return marea.tensor sum x + y
function RMSNorm:of_sum(x, y)
  local sum = x:add(y)
  return self(sum), sum
end

--- Dropout while training: draws at (seed, layer, update, sequence id, position, channel), so the
--- mask depends on no rank, split, layout or recomputation. Outside training it changes nothing.
---@class marea.Dropout: marea.Module
---@overload fun(options: {probability: number}): marea.Dropout
---@overload fun(x: marea.tensor, batch: marea.Batch): marea.tensor
local Dropout = Module.class("nn.Dropout")
basic.Dropout = Dropout

--- Has no parameters. Errors, code 2: a probability below 0, or of 1 and more.
---@param options {probability: number}
function Dropout:init(options)
  options_of.check(options, "nn.Dropout", { "probability" })
  self.probability = options.probability or 0
  if type(self.probability) ~= "number" or self.probability < 0 or self.probability >= 1 then
    fault.raise(2, "nn.Dropout: probability must be a number of at least 0 and below 1, got %s",
                tostring(self.probability))
  end
end

--- Sets elements to 0 while the batch is trained on; else it returns x itself.
---@param x marea.tensor [rows, channels]
---@param batch marea.Batch what the rows are
---@return marea.tensor result the shape of x
function Dropout:forward(x, batch)
  if self.probability == 0 or not batch.update then return x end
  return x:dropout { probability = self.probability, seed = batch.seed, layer = self.layer,
                     update = batch.update, ids = batch.sequence_ids, positions = batch.positions }
end

return basic
