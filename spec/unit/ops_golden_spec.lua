-- Every operation that golden/operations.safetensors holds, forward and gradients, in both dtypes.

local core = require "marea.core"
local numeric = dofile "spec/support/numeric.lua"

local golden = core.safetensors.open("spec/golden/operations.safetensors")

-- |a - b| <= bound * (|b| + max |b|), for the output and every gradient. In f64 the largest found
-- was 6e-15. In f32 the largest is given as `found`, over the kernels of three instruction sets;
-- the bound is a few times that. A rounding of one operation is 6e-8.
local F64 = 1e-12
local operations = {
  linear = { f32 = 4e-7, found = 8e-8, run = function(t) return t.x:linear(t.w, t.b) end },
  layer_norm = { f32 = 2e-7, found = 7e-8, run = function(t) return t.x:layer_norm(t.w, t.b) end },
  rms_norm = { f32 = 4e-7, found = 9e-8, run = function(t) return t.x:rms_norm(t.w) end },
  gelu = { f32 = 2e-6, found = 4e-7, run = function(t) return t.x:gelu() end },
  relu = { f32 = 0, found = 0, run = function(t) return t.x:relu() end },
  silu = { f32 = 1e-6, found = 2e-7, run = function(t) return t.x:silu() end },
  softmax = { f32 = 3e-6, found = 1e-6, run = function(t) return t.x:softmax() end },
  cross_entropy_sum = { f32 = 1e-6, found = 3e-7, run = function(t)
    return t.x:cross_entropy(t.targets):sum()
  end },
  cross_entropy_weighted_sum = { f32 = 1e-6, found = 1e-7, run = function(t)
    return t.x:cross_entropy(t.targets):weighted_sum(t.weights)
  end },
  matmul = { f32 = 2e-7, found = 5e-8, run = function(t) return t.a:matmul(t.b) end },
  squared_error_sum = { f32 = 2e-7, found = 3e-8, run = function(t)
    return t.x:squared_error(t.y):sum()
  end },
  embedding = { f32 = 1e-7, found = 2e-8, run = function(t) return t.w:embedding(t.ids) end },
  causal_attention_packed = { f32 = 3e-6, found = 5e-7, run = function(t)
    return t.q:attention(t.k, t.v, { heads = 3, lengths = t.lengths:to("i64") })
  end },
  full_attention_packed = { f32 = 3e-6, found = 7e-7, run = function(t)
    return t.q:attention(t.k, t.v, { heads = 3, lengths = t.lengths:to("i64"), causal = false })
  end },
}

local names = {}
for name in pairs(operations) do names[#names + 1] = name end
table.sort(names)

-- The inputs of an operation in one dtype; those that have a gradient require one.
local function inputs_of(name, dtype)
  local inputs, graded, known = {}, {}, {}
  for _, key in ipairs(golden:names()) do known[key] = true end
  for key in pairs(known) do
    local input = key:match("^" .. name .. "%.in%.(%w+)$")
    if input then
      local tensor = golden:tensor(key)
      if tensor:dtype() == "f32" then tensor = tensor:to(dtype) end
      if known[name .. ".grad." .. input] then
        tensor:requires_gradient_()
        graded[#graded + 1] = input
      end
      inputs[input] = tensor
    end
  end
  table.sort(graded)
  return inputs, graded
end

local function expected_of(key) return golden:tensor(key):values() end

-- Calls compare(expected, found, what) for the output and for each gradient.
local function compare_all(name, dtype, compare)
  local inputs, graded = inputs_of(name, dtype)
  local output = operations[name].run(inputs):keep()
  local upstream = golden:tensor(name .. ".upstream"):to(dtype)
  output:weighted_sum(upstream:reshape(output:shape())):backward()
  compare(expected_of(name .. ".out"), output:values(), name .. ".out " .. dtype)
  for _, input in ipairs(graded) do
    local key = name .. ".grad." .. input
    compare(expected_of(key), numeric.gradient(inputs[input]), key .. " " .. dtype)
  end
  return #graded
end

describe("golden/operations.safetensors", function()
  it("holds no operation that is not compared here", function()
    for _, key in ipairs(golden:names()) do
      assert(operations[key:match("^([%w_]+)%.")], key .. " is not compared")
    end
  end)

  for _, name in ipairs(names) do
    local operation = operations[name]
    it(name .. " agrees in f64", function()
      assert(compare_all(name, "f64", function(expected, found, what)
        numeric.assert_close(expected, found, F64, what)
      end) > 0)
    end)

    it(name .. " agrees in f32", function()
      compare_all(name, "f32", function(expected, found, what)
        numeric.assert_close(expected, found, operation.f32, what)
      end)
      assert(operation.f32 <= 10 * operation.found, "the bound has lost touch with what was found")
    end)
  end

  it("would tell an epsilon of 1e-5 from one of 1e-6", function()
    local inputs = inputs_of("layer_norm", "f64")
    local found = inputs.x:layer_norm(inputs.w, inputs.b, { epsilon = 1e-6 }):values()
    assert.has_error(function()
      numeric.assert_close(expected_of("layer_norm.out"), found, F64, "layer_norm.out")
    end)
  end)
end)
