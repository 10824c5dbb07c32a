-- Values and gradients that can be worked out by hand, in both dtypes.

local core = require "marea.core"
local numeric = dofile "spec/support/numeric.lua"

local function i32(values) return core.from(values, "i32") end
local function i64(values) return core.from(values, "i64") end

local BOUND = { f32 = 1e-6, f64 = 1e-14 }

for _, dtype in ipairs { "f32", "f64" } do
  local function real(values, shape) return core.from(values, dtype, shape) end
  local function leaf(values, shape) return real(values, shape):requires_gradient_() end
  local function close(expected, tensor, what)
    numeric.assert_close(expected, tensor:values(), BOUND[dtype], what or "values")
  end
  local function gradient_close(expected, tensor)
    numeric.assert_close(expected, numeric.gradient(tensor), BOUND[dtype], "gradient")
  end

  describe("in " .. dtype, function()
    it("add repeats b over the leading axes and sums its gradient over them", function()
      local a, b = leaf({ 1, 2, 3, 4, 5, 6 }, { 3, 2 }), leaf { 10, 20 }
      local c = a:add(b):keep()
      c:weighted_sum(real({ 1, 2, 4, 8, 16, 32 }, { 3, 2 })):backward()
      assert.same({ 11, 22, 13, 24, 15, 26 }, c:values())
      assert.same({ 1, 2, 4, 8, 16, 32 }, numeric.gradient(a))
      assert.same({ 21, 42 }, numeric.gradient(b))
    end)

    it("multiply by a scalar tensor gives it the sum of products", function()
      local a, b = leaf({ 1, 2, 3, 4 }, { 2, 2 }), leaf({ 5 }, {})
      a:multiply(b):sum():backward()
      assert.same({ 5, 5, 5, 5 }, numeric.gradient(a))
      assert.same({ 10 }, numeric.gradient(b))
      assert.same({}, b:gradient():shape())
    end)

    it("scale multiplies value and gradient", function()
      local x = leaf { 1, -2, 3 }
      local y = x:scale(-0.5):keep()
      y:sum():backward()
      assert.same({ -0.5, 1, -1.5 }, y:values())
      assert.same({ -0.5, -0.5, -0.5 }, numeric.gradient(x))
    end)

    it("sum and weighted_sum give one number without axes", function()
      local x = leaf { 1, 2, 4 }
      local total = x:sum()
      assert.same({}, total:shape())
      assert.equal(7, total:item())
      local weighted = x:weighted_sum(real { 1, 10, 100 })
      assert.equal(421, weighted:item())
      weighted:backward()
      assert.same({ 1, 10, 100 }, numeric.gradient(x))
    end)

    it("squared_error is neither halved nor summed", function()
      local a, b = leaf { 1, 5 }, leaf { 4, 3 }
      local y = a:squared_error(b):keep()
      y:sum():backward()
      assert.same({ 9, 4 }, y:values())
      assert.same({ -6, 4 }, numeric.gradient(a))
      assert.same({ 6, -4 }, numeric.gradient(b))
    end)

    it("relu has gradient 0 at 0 and below", function()
      local x = leaf { -1, 0, 2 }
      local y = x:relu():keep()
      y:sum():backward()
      assert.same({ 0, 0, 2 }, y:values())
      assert.same({ 0, 0, 1 }, numeric.gradient(x))
    end)

    it("gelu and silu are 0 at 0 with slope one half, and straight far out", function()
      for _, name in ipairs { "gelu", "silu" } do
        local x = leaf { 0, 60, -60, 500, -500 }
        local y = x[name](x):keep()
        y:sum():backward()
        close({ 0, 60, 0, 500, 0 }, y)
        gradient_close({ 0.5, 1, 0, 1, 0 }, x)
      end
    end)

    it("softmax of equal values is even, and large values do not overflow", function()
      close({ 0.25, 0.25, 0.25, 0.25 }, real({ 3, 3, 3, 3 }, { 1, 4 }):softmax())
      close({ 0, 1, 0.5, 0.5 }, real({ 0, 1000, -1000, -1000 }, { 2, 2 }):softmax())
    end)

    it("cross_entropy of equal values is the log of their number", function()
      local x = leaf({ 7, 7, 7, 7, 7, 7, 7, 7 }, { 2, 4 })
      local losses = x:cross_entropy(i32 { 2, -100 }):keep()
      losses:sum():backward()
      close({ math.log(4), 0 }, losses)
      gradient_close({ 0.25, 0.25, -0.75, 0.25, 0, 0, 0, 0 }, x)
    end)

    it("cross_entropy of large values does not overflow", function()
      local x = leaf({ 1000, 0, -1000, 0 }, { 2, 2 })
      local losses = x:cross_entropy(i32 { 1, 1 }):keep()
      losses:sum():backward()
      close({ 1000, 0 }, losses)
      gradient_close({ 1, -1, 0, 0 }, x)
    end)

    it("layer_norm of 1 and 3 is -1 and 1 within epsilon; a constant row gives b", function()
      local x = real({ 1, 3, 5, 5 }, { 2, 2 })
      local w, b = real { 2, 3 }, real { 7, 9 }
      close({ -2 + 7, 3 + 9 }, x:slice(1, 1):layer_norm(w, b, { epsilon = 0 }))
      close({ 7, 9 }, x:slice(2, 1):layer_norm(w, b))
    end)

    it("rms_norm of 3 and 4 divides by the root of 12.5", function()
      local root = math.sqrt(12.5)
      local y = real({ 3, 4 }, { 1, 2 }):rms_norm(real { 1, 2 }, { epsilon = 0 })
      close({ 3 / root, 8 / root }, y)
    end)

    it("linear_gelu_linear is linear, gelu and linear", function()
      local function both(run)
        local t = {}
        local shapes = { x = { 33, 20 }, up = { 50, 20 }, up_b = { 50 }, down = { 7, 50 } }
        for i, name in ipairs { "x", "up", "up_b", "down" } do
          t[name] = core.normal(shapes[name], { seed = 3, stream = i, dtype = "f64" })
          t[name]:requires_gradient_()
        end
        local y = run(t):keep()
        y:multiply(y):sum():backward()
        local lists = { y:values() }
        for _, name in ipairs { "x", "up", "up_b", "down" } do
          lists[#lists + 1] = t[name]:gradient():values()
        end
        return lists
      end
      local one = both(function(t) return t.x:linear_gelu_linear(t.up, t.up_b, t.down) end)
      local three = both(function(t) return t.x:linear(t.up, t.up_b):gelu():linear(t.down) end)
      for i, list in ipairs(three) do
        for j, value in ipairs(list) do
          assert.is_true(math.abs(value - one[i][j]) <= 1e-12 * (1 + math.abs(value)))
        end
      end
    end)

    it("matmul and linear with no inner columns are 0 and the bias", function()
      local function zeros(...) return core.zeros({ ... }, dtype) end
      assert.same({ 0, 0, 0, 0 }, zeros(2, 0):matmul(zeros(0, 2)):values())
      local y = zeros(2, 0):linear(zeros(3, 0), real { 1, 2, 3 })
      assert.same({ 1, 2, 3, 1, 2, 3 }, y:values())
    end)

    it("embedding adds up the gradients of repeated ids", function()
      local w = leaf({ 1, 2, 3, 4, 5, 6 }, { 3, 2 })
      local y = w:embedding(i32 { 2, 0, 2 }):keep()
      y:weighted_sum(real({ 1, 2, 4, 8, 16, 32 }, { 3, 2 })):backward()
      assert.same({ 5, 6, 1, 2, 5, 6 }, y:values())
      assert.same({ 4, 8, 0, 0, 17, 34 }, numeric.gradient(w))
    end)

    it("slice, concatenate and reshape move values and gradients alike", function()
      local x = leaf({ 1, 2, 3, 4, 5, 6 }, { 3, 2 })
      local y = x:slice(2, 2):concatenate { x:slice(1, 1) }:reshape { 6 }:keep()
      y:weighted_sum(real { 1, 2, 4, 8, 16, 32 }):backward()
      assert.same({ 3, 4, 5, 6, 1, 2 }, y:values())
      assert.same({ 16, 32, 1, 2, 4, 8 }, numeric.gradient(x))
    end)

    it("argmax takes the first of equals, from 0, as i32", function()
      local y = real({ 1, 9, 9, 5, 2, 3 }, { 2, 3 }):argmax()
      assert.equal("i32", y:dtype())
      assert.same({ 1, 0 }, y:values())
    end)

    it("attention with queries of 0 averages the values seen so far", function()
      local q, k = core.zeros({ 3, 1 }, dtype), real({ 5, -3, 2 }, { 3, 1 })
      local v = leaf({ 1, 2, 6 }, { 3, 1 })
      local y = q:attention(k, v, { heads = 1, lengths = i64 { 3 } }):keep()
      y:sum():backward()
      close({ 1, 1.5, 3 }, y)
      gradient_close({ 1 + 1 / 2 + 1 / 3, 1 / 2 + 1 / 3, 1 / 3 }, v)
      close({ 3, 3, 3 }, q:attention(k, v, { heads = 1, lengths = i64 { 3 }, causal = false }))
    end)

    it("attention divides scores by the root of a head's columns", function()
      local q = core.ones({ 2, 4 }, dtype)
      local k = real({ 0, 0, 0, 0, 1, 1, 1, 1 }, { 2, 4 })
      local v = real({ 0, 0, 0, 0, 1, 1, 1, 1 }, { 2, 4 })
      local y = q:attention(k, v, { heads = 1, lengths = i64 { 2 }, causal = false })
      local share = math.exp(2) / (1 + math.exp(2))
      close({ share, share, share, share, share, share, share, share }, y)
    end)

    it("attention of large scores does not overflow", function()
      local q = real({ 1000, 1000 }, { 2, 1 })
      local y = q:attention(real({ 1000, -1000 }, { 2, 1 }), real({ 3, 4 }, { 2, 1 }),
                            { heads = 1, lengths = i64 { 2 }, causal = false })
      close({ 3, 3 }, y)
    end)

    it("attention of a padded layout equals the packed one, bit for bit", function()
      local function random(rows, stream)
        return core.normal({ rows, 6 }, { seed = 1, stream = stream, dtype = dtype })
      end
      local q, k, v = random(5, 1), random(5, 2), random(5, 3)
      local packed = q:attention(k, v, { heads = 2, lengths = i64 { 2, 3 } })
      local gap = core.full({ 2, 6 }, 9, dtype)
      local function pad(t) return t:slice(1, 2):concatenate { gap, t:slice(3, 3), gap } end
      local padded = pad(q):attention(pad(k), pad(v), { heads = 2, lengths = i64 { 2, 3 },
                                                        starts = i64 { 0, 4 } })
      local covered = padded:slice(1, 2):concatenate { padded:slice(5, 3) }
      numeric.assert_same_bits(packed, covered, "rows")
      assert.equal(0, padded:slice(3, 2):total())
      assert.equal(0, padded:slice(8, 2):total())
    end)

    it("self_attention is attention of the thirds, bit for bit, with its gradients", function()
      local fused = core.normal({ 7, 18 }, { seed = 2, dtype = dtype }):requires_gradient_()
      local parts = {}
      for part = 1, 3 do
        local values = {}
        for row, all in ipairs({ fused:values() }) do
          assert(row == 1)
          for i, value in ipairs(all) do
            if (i - 1) % 18 // 6 == part - 1 then values[#values + 1] = value end
          end
        end
        parts[part] = leaf(values, { 7, 6 })
      end
      local options = { heads = 3, lengths = i64 { 4, 3 } }
      local upstream = core.normal({ 7, 6 }, { seed = 3, dtype = dtype })
      local one = fused:self_attention(options):keep()
      local other = parts[1]:attention(parts[2], parts[3], options):keep()
      one:weighted_sum(upstream):backward()
      other:weighted_sum(upstream):backward()
      numeric.assert_same_bits(other, one, "output")
      local expected = {}
      for row = 0, 6 do
        for part = 1, 3 do
          local values = numeric.gradient(parts[part])
          for column = 1, 6 do expected[#expected + 1] = values[row * 6 + column] end
        end
      end
      assert.same(expected, numeric.gradient(fused))
    end)

    it("NaN is seen, not swallowed", function()
      local nan = 0 / 0
      local x = real({ 1, nan, 2, 3 }, { 2, 2 })
      local results = { relu = x:relu(), gelu = x:gelu(), silu = x:silu(), softmax = x:softmax(),
                        rms_norm = x:rms_norm(real { 1, 1 }),
                        layer_norm = x:layer_norm(real { 1, 1 }),
                        cross_entropy = x:cross_entropy(i32 { 0, 0 }) }
      for name, y in pairs(results) do
        local values = y:values()
        local seen = values[1] ~= values[1] or values[2] ~= values[2]
        assert(seen, name .. " hides a NaN")
        assert(values[#values] == values[#values], name .. " spreads a NaN to another row")
      end
    end)
  end)
end
