-- A Transformer over packed sequences: embedding and learned positions, layers of attention and
-- MLP with norms before or after, and a head of its own or tied to the embedding.

local basic = require "marea.nn.basic"
local fault = require "marea.fault"
local kind = require "marea.kind"
local Module = require "marea.nn.module"
local options_of = require "marea.options"

local extent = basic.extent

-- One fused projection to queries, keys and values (in this order, heads contiguous inside each),
-- attention within each sequence, and a projection back.
local Attention = Module.class("nn.Attention")

--- Declares both projections.
---@param o marea.TransformerOptions width, heads, causal, bias
function Attention:init(o)
  self.heads, self.causal = o.heads, o.causal
  self:child("qkv", basic.Linear { input = o.width, output = 3 * o.width, bias = o.bias })
  self:child("out", basic.Linear { input = o.width, output = o.width, bias = o.bias })
end

--- Mixes the rows of each sequence.
---@param x marea.tensor [rows, width]
---@param batch marea.Batch lengths and starts
---@return marea.tensor mixed [rows, width]
function Attention:forward(x, batch)
  local mixed = self.qkv(x):self_attention {
    heads = self.heads, causal = self.causal, lengths = batch.lengths, starts = batch.starts }
  return self.out(mixed)
end

local Mlp = Module.class("nn.Mlp")

--- Declares both projections.
---@param o marea.TransformerOptions width, hidden, activation, bias
function Mlp:init(o)
  self.activation = o.activation
  self:child("up", basic.Linear { input = o.width, output = o.hidden, bias = o.bias })
  self:child("down", basic.Linear { input = o.hidden, output = o.width, bias = o.bias })
end

--- Two projections with the activation between them.
---@param x marea.tensor [rows, width]
---@return marea.tensor result [rows, width]
function Mlp:forward(x)
  if self.activation == "gelu" then
    local up, down = self.up, self.down
    return x:linear_gelu_linear(up.weight, up.bias, down.weight, down.bias)
  end
  local up = self.up(x)
  return self.down(up[self.activation](up))
end

local function new_norm(o)
  if o.norm_kind == "rms" then return basic.RMSNorm { width = o.width } end
  return basic.LayerNorm { width = o.width }
end

-- norm = "post": x = norm1(x + attention(x)), x = norm2(x + mlp(x));
-- norm = "pre": x = x + attention(norm1(x)), x = x + mlp(norm2(x)).
local Layer = Module.class("nn.Layer")

--- Declares attention, MLP, their norms and dropouts.
---@param o marea.TransformerOptions
function Layer:init(o)
  self.post = o.norm == "post"
  self:child("attention", Attention(o))
  self:child("norm1", new_norm(o))
  self:child("mlp", Mlp(o))
  self:child("norm2", new_norm(o))
  self:child("dropout1", basic.Dropout { probability = o.dropout })
  self:child("dropout2", basic.Dropout { probability = o.dropout })
end

--- One layer.
---@param x marea.tensor [rows, width]
---@param batch marea.Batch
---@return marea.tensor result [rows, width]
function Layer:forward(x, batch)
  if self.post then
    x = self.norm1:of_sum(x, self.dropout1(self.attention(x, batch), batch))
    return (self.norm2:of_sum(x, self.dropout2(self.mlp(x), batch)))
  end
  local mixed = self.dropout1(self.attention(self.norm1(x), batch), batch)
  local norm, sum = self.norm2:of_sum(x, mixed)
  return sum:add(self.dropout2(self.mlp(norm), batch))
end

local Layers = Module.class("nn.Layers")

local names = { "vocabulary", "classes", "context", "width", "hidden", "heads", "layers", "norm",
                "norm_kind", "activation", "causal", "dropout", "tied", "bias" }
local choices = {
  norm = { "post", "pre" }, norm_kind = { "layer", "rms" }, activation = { "relu", "gelu", "silu" },
}

local function check_choice(o, key)
  for _, choice in ipairs(choices[key]) do
    if o[key] == choice then return end
  end
  fault.raise(2, "nn.Transformer: %s must be one of %s, got %s", key,
              table.concat(choices[key], ", "), tostring(o[key]))
end

local function checked(given)
  local o = {}
  for key, value in pairs(options_of.check(given, "nn.Transformer", names)) do o[key] = value end
  for _, key in ipairs { "vocabulary", "context", "width", "heads", "layers" } do
    o[key] = extent(o, key, "nn.Transformer")
  end
  o.classes = o.classes or o.vocabulary
  o.hidden = extent({ hidden = o.hidden or 4 * o.width }, "hidden", "nn.Transformer")
  o.norm, o.norm_kind = o.norm or "pre", o.norm_kind or "layer"
  o.activation, o.dropout = o.activation or "gelu", o.dropout or 0
  if o.causal == nil then o.causal = true end
  for key in pairs(choices) do check_choice(o, key) end
  if o.width % o.heads ~= 0 then
    fault.raise(2, "nn.Transformer: width %d is no multiple of %d heads", o.width, o.heads)
  end
  if o.tied and o.classes ~= o.vocabulary then
    fault.raise(2, "nn.Transformer: a tied head predicts the vocabulary of %d, not %d classes",
                o.vocabulary, o.classes)
  end
  return o
end

---@class marea.TransformerOptions
---@field vocabulary integer
---@field classes? integer (default: the vocabulary)
---@field context integer longest sequence
---@field width integer
---@field hidden? integer width of the MLP (default: 4 times the width)
---@field heads integer divides the width
---@field layers integer
---@field norm? "pre"|"post" (default "pre")
---@field norm_kind? "layer"|"rms" (default "layer")
---@field activation? "gelu"|"relu"|"silu" (default "gelu")
---@field causal? boolean a position sees itself and earlier ones only (default true)
---@field dropout? number at least 0, below 1 (default 0)
---@field tied? boolean the head is the embedding (default false)
---@field bias? boolean of projections (default true)

--- Logits [rows, classes] for a batch of packed (or padded) sequences.
---@class marea.Transformer: marea.Module
---@overload fun(options: marea.TransformerOptions): marea.Transformer
---@overload fun(batch: marea.Batch): marea.tensor
local Transformer = Module.class("nn.Transformer")

--- Weights and embeddings from N(0, 0.02), biases from 0, norms from 1.
--- Errors, code 2: unknown options, extents below 1, a width that is no multiple of heads, a tied
--- head with other classes than the vocabulary.
---@param given marea.TransformerOptions
function Transformer:init(given)
  local o = checked(given)
  self.options = o
  self:child("embedding", basic.Embedding { rows = o.vocabulary, width = o.width })
  self:child("position", basic.Embedding { rows = o.context, width = o.width })
  self:child("dropout", basic.Dropout { probability = o.dropout })
  self:child("layers", Layers())
  for i = 1, o.layers do self.layers:child(tostring(i - 1), Layer(o)) end
  if o.norm == "pre" then self:child("norm", new_norm(o)) end
  if not o.tied then
    self:child("head", basic.Linear { input = o.width, output = o.classes, bias = o.bias })
  end
end

-- A position beyond the context has no row in the table of positions.
local function check_lengths(batch, context)
  if type(batch) ~= "table" then
    fault.raise(2, "nn.Transformer expects a batch, got %s", kind.of(batch))
  end
  for _, sequence in ipairs(batch.sequences or {}) do
    if sequence.length > context then
      fault.raise(2, "nn.Transformer: sequence %s has %d inputs, which is longer than the " ..
                  "context of %d", tostring(sequence.id), sequence.length, context)
    end
  end
end

--- Logits of a batch.
--- Errors, code 2: no batch; ids outside the vocabulary; a sequence longer than the context.
---@param batch marea.Batch
---@return marea.tensor logits [rows, classes]
function Transformer:forward(batch)
  check_lengths(batch, self.options.context)
  local x = self.embedding(batch.ids):add(self.position(batch.positions))
  x = self.dropout(x, batch)
  for _, child in ipairs(self.layers.children) do x = child.module(x, batch) end
  if self.norm then x = self.norm(x) end
  if self.head then return self.head(x) end
  return x:linear(self.embedding.weight)
end

return Transformer
