-- Extents of 0 for every operation, and gradients that add up over uses.

local core = require "marea.core"
local cases = dofile "spec/support/operation_cases.lua"
local numeric = dofile "spec/support/numeric.lua"

local function i64(values) return core.from(values, "i64") end

local function is_empty(case)
  for _, shape in pairs(case.leaves) do
    for _, extent in ipairs(shape) do
      if extent == 0 then return true end
    end
  end
  return case.text:find("^no ") ~= nil
end

local function assert_finite(tensor, what)
  for i, value in ipairs(tensor:values()) do
    assert(value == value and math.abs(value) < math.huge,
           ("%s: value %d is %g"):format(what, i, value))
  end
end

local function run_empty(record, case, dtype)
  local leaves = cases.leaves(case, dtype)
  local output = case.run(leaves)
  assert_finite(output, record.name .. " of " .. case.text)
  if not record.differentiable then return end
  output:sum():backward()
  for name, leaf in pairs(leaves) do
    local gradient = leaf:gradient()
    assert(gradient, ("%s of %s: no gradient for %s"):format(record.name, case.text, name))
    assert.same(leaf:shape(), gradient:shape())
    assert_finite(gradient, ("%s of %s: gradient of %s"):format(record.name, case.text, name))
  end
end

describe("extents of 0", function()
  for _, record in ipairs(core.operations) do
    it("pass through " .. record.name .. " forward and backward", function()
      local tried = 0
      for _, case in ipairs(cases.of[record.name] or {}) do
        if is_empty(case) then
          run_empty(record, case, "f32")
          run_empty(record, case, "f64")
          tried = tried + 1
        end
      end
      assert(tried > 0, record.name .. " has no case with an extent of 0")
    end)
  end

  it("leave the gradient of a weight at 0", function()
    local w, b = core.ones({ 3, 4 }):requires_gradient_(), core.ones({ 3 }):requires_gradient_()
    core.zeros({ 0, 4 }):linear(w, b):sum():backward()
    assert.equal(0, w:gradient():total())
    assert.equal(0, b:gradient():total())
    assert.same({ 3, 4 }, w:gradient():shape())
  end)

  it("sum to 0", function()
    assert.equal(0, core.zeros({ 0 }):sum():item())
    assert.equal(0, core.zeros({ 3, 0 }):weighted_sum(core.zeros { 3, 0 }):item())
  end)
end)

describe("gradients add up", function()
  for _, dtype in ipairs { "f32", "f64" } do
    local function leaf(values, shape)
      return core.from(values, dtype, shape):requires_gradient_()
    end

    it("over two uses in one graph, " .. dtype, function()
      local x = leaf { 1, 2, 3 }
      x:scale(2):add(x:scale(5)):sum():backward()
      assert.same({ 7, 7, 7 }, numeric.gradient(x))
    end)

    it("over two backwards, " .. dtype, function()
      local x = leaf { 1, 2, 3 }
      x:scale(2):sum():backward()
      x:multiply(x):sum():backward()
      assert.same({ 4, 6, 8 }, numeric.gradient(x))
    end)

    it("over an intermediate that is used twice, " .. dtype, function()
      local x = leaf { 1, 2, 3 }
      local y = x:scale(3)
      y:multiply(y):sum():backward()
      assert.same({ 18, 36, 54 }, numeric.gradient(x))
    end)

    it("over one tensor in several places of a call, " .. dtype, function()
      local values = {}
      for i = 1, 67 do values[i] = i / 8 end
      local x = leaf(values)
      x:add(x):sum():backward()
      x:multiply(x):sum():backward()
      x:squared_error(x):sum():backward()
      local expected = {}
      for i, value in ipairs(values) do expected[i] = 2 + 2 * value end
      assert.same(expected, numeric.gradient(x))
    end)

    it("over one tensor as queries, keys and values, " .. dtype, function()
      local options = { heads = 2, lengths = i64 { 4, 7 } }
      local values = core.normal({ 11, 6 }, { seed = 4, dtype = dtype }):values()
      local upstream = core.normal({ 11, 6 }, { seed = 5, dtype = dtype })
      local x, q, k, v = leaf(values, { 11, 6 }), leaf(values, { 11, 6 }), leaf(values, { 11, 6 }),
        leaf(values, { 11, 6 })
      x:attention(x, x, options):weighted_sum(upstream):backward()
      q:attention(k, v, options):weighted_sum(upstream):backward()
      local expected = {}
      local of_k, of_v = numeric.gradient(k), numeric.gradient(v)
      for i, value in ipairs(numeric.gradient(q)) do expected[i] = value + of_k[i] + of_v[i] end
      local bound = dtype == "f32" and 1e-6 or 1e-15
      numeric.assert_close(expected, numeric.gradient(x), bound, "gradient")
    end)

    it("over one tensor as weight and bias of a norm, " .. dtype, function()
      local x = core.normal({ 5, 9 }, { seed = 6, dtype = dtype })
      local both, w, b = leaf(core.ones({ 9 }):values()), leaf(core.ones({ 9 }):values()),
        leaf(core.ones({ 9 }):values())
      x:layer_norm(both, both):sum():backward()
      x:layer_norm(w, b):sum():backward()
      local expected, of_b = {}, numeric.gradient(b)
      for i, value in ipairs(numeric.gradient(w)) do expected[i] = value + of_b[i] end
      numeric.assert_close(expected, numeric.gradient(both), 1e-6, "gradient")
    end)

    it("over a part that is concatenated twice, " .. dtype, function()
      local x = leaf { 1, 2 }
      x:concatenate({ x, x }):weighted_sum(core.from({ 1, 2, 4, 8, 16, 32 }, dtype)):backward()
      assert.same({ 21, 42 }, numeric.gradient(x))
    end)
  end
end)
