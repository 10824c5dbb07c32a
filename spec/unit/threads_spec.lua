-- The number of threads changes no bit: every operation, on shapes large enough to be shared out.

local core = require "marea.core"

local function i32(values) return core.from(values, "i32") end
local function i64(values) return core.from(values, "i64") end

local function counted(n, f)
  local values = {}
  for i = 1, n do values[i] = f(i) end
  return values
end

local ids = i32(counted(700, function(i) return i * 37 % 50 end))
local packed = { heads = 4, lengths = i64 { 300, 1, 130, 0, 169, 100 } }
local drop = { probability = 0.1, seed = 1, layer = 1, update = 1,
               ids = i64(counted(700, function(i) return i end)),
               positions = i32(counted(700, function(i) return i % 90 end)) }

-- {leaves, run}, as in spec/support/operation_cases.lua.
local M = { 700, 132 }
local large = {
  add = { { a = M, b = { 132 } }, function(t) return t.a:add(t.b) end },
  add_layer_norm = { { a = M, b = M, w = { 132 } },
                     function(t)
                       local norm, sum = t.a:add_layer_norm(t.b, t.w)
                       return norm:multiply(sum)
                     end },
  argmax = { { x = M }, function(t) return t.x:argmax() end },
  attention = { { q = M, k = M, v = M }, function(t) return t.q:attention(t.k, t.v, packed) end },
  concatenate = { { x = M, others1 = M }, function(t) return t.x:concatenate { t.others1 } end },
  cross_entropy = { { x = M }, function(t) return t.x:cross_entropy(ids) end },
  dropout = { { x = M }, function(t) return t.x:dropout(drop) end },
  embedding = { { w = { 50, 132 } }, function(t) return t.w:embedding(ids) end },
  gelu = { { x = M }, function(t) return t.x:gelu() end },
  layer_norm = { { x = M, w = { 132 }, b = { 132 } },
                 function(t) return t.x:layer_norm(t.w, t.b) end },
  linear = { { x = M, w = { 201, 132 }, b = { 201 } },
             function(t) return t.x:linear(t.w, t.b) end },
  linear_gelu_linear = { { x = M, up = { 201, 132 }, up_b = { 201 }, down = { 132, 201 } },
                         function(t) return t.x:linear_gelu_linear(t.up, t.up_b, t.down) end },
  matmul = { { a = M, b = { 132, 201 } }, function(t) return t.a:matmul(t.b) end },
  multiply = { { a = M, b = { 132 } }, function(t) return t.a:multiply(t.b) end },
  relu = { { x = M }, function(t) return t.x:relu() end },
  reshape = { { x = M }, function(t) return t.x:reshape { 132, 700 } end },
  rms_norm = { { x = M, w = { 132 } }, function(t) return t.x:rms_norm(t.w) end },
  scale = { { x = M }, function(t) return t.x:scale(0.3) end },
  self_attention = { { x = { 700, 3 * 132 } }, function(t) return t.x:self_attention(packed) end },
  silu = { { x = M }, function(t) return t.x:silu() end },
  slice = { { x = M }, function(t) return t.x:slice(3, 600) end },
  softmax = { { x = M }, function(t) return t.x:softmax() end },
  squared_error = { { a = M, b = M }, function(t) return t.a:squared_error(t.b) end },
  sum = { { x = M }, function(t) return t.x:sum() end },
  weighted_sum = { { x = M, weights = M }, function(t) return t.x:weighted_sum(t.weights) end },
}

-- Hashes of output and gradients on that many threads.
local function fingerprint(record, threads, dtype)
  local shapes, run = table.unpack(large[record.name])
  local leaves, names, hashes = {}, {}, {}
  core.set_threads(threads)
  for name in pairs(shapes) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    leaves[name] = core.normal(shapes[name], { seed = 20, stream = i, dtype = dtype })
      :requires_gradient_(name ~= "weights")
  end
  local output = run(leaves)
  hashes[1] = output:hash()
  if not record.differentiable then return hashes end
  output:weighted_sum(core.normal(output:shape(), { seed = 21, dtype = dtype })):backward()
  for _, name in ipairs(names) do
    local gradient = leaves[name]:gradient()
    hashes[#hashes + 1] = gradient and gradient:hash()
  end
  return hashes
end

describe("on 1, 2, 3 and 5 threads", function()
  local before = core.device().threads
  after_each(function() core.set_threads(before) end)

  for _, record in ipairs(core.operations) do
    for _, dtype in ipairs { "f32", "f64" } do
      it(record.name .. " gives the same bits in " .. dtype, function()
        assert(large[record.name], record.name .. " has no large case")
        local expected = fingerprint(record, 1, dtype)
        for _, threads in ipairs { 2, 3, 5 } do
          assert.same(expected, fingerprint(record, threads, dtype))
        end
      end)
    end
  end

  it("random fills and totals give the same bits", function()
    local function draws(threads)
      core.set_threads(threads)
      local normal = core.normal({ 100001 }, { seed = 20 })
      return { normal:hash(), core.uniform({ 100001 }, { seed = 20 }):hash(), normal:total() }
    end
    local expected = draws(1)
    for _, threads in ipairs { 2, 3, 5 } do assert.same(expected, draws(threads)) end
  end)

  it("other values give other hashes", function()
    local x = core.normal({ 700, 132 }, { seed = 20 })
    local hash = x:hash()
    x:set_(50000, x:get(50000) + 1e-3)
    assert.not_equal(hash, x:hash())
  end)
end)
