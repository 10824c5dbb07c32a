-- The first gradient of an intermediate result is written or passed on; later ones are added.
-- Either way it is what adding to zeros gives, whichever of several uses comes first.

local core = require "marea.core"
local numeric = dofile "spec/support/numeric.lua"

local function random(shape, stream)
  return core.normal(shape, { seed = 7, stream = stream, dtype = "f64" })
end

local weight, bias, scale = random({ 3, 4 }, 2), random({ 4 }, 3), random({ 4 }, 4)
local targets = core.from({ 1, -100, 3 }, "i32", { 3 })

-- Each takes x [3, 4] and gives a tensor.
local uses = {
  linear = function(x) return x:linear(weight) end,
  gelu = function(x) return x:gelu() end,
  layer_norm = function(x) return x:layer_norm(scale, bias) end,
  cross_entropy = function(x) return x:cross_entropy(targets) end,
  add = function(x) return x:add(x:scale(2)) end,
  add_twice = function(x) return x:add(x) end,
  repeated = function(x) return x:add(bias) end,
  reshape = function(x) return x:reshape { 12 }:multiply(x:reshape { 12 }) end,
  plain = function(x) return x:scale(3) end,
}

local function squares(y) return y:multiply(y):sum() end

-- The gradient of a leaf, by itself or through an intermediate that equals it.
local function gradient_of(first, second, through)
  local leaf = random({ 3, 4 }, 1):requires_gradient_(true)
  local x = through and leaf:scale(1) or leaf
  squares(uses[first](x)):add(squares(uses[second](x))):backward()
  return numeric.gradient(leaf)
end

describe("the first gradient of an intermediate", function()
  for first in pairs(uses) do
    for second in pairs(uses) do
      it(("is right used by %s and then %s"):format(first, second), function()
        local direct, through = gradient_of(first, second), gradient_of(first, second, true)
        for i, value in ipairs(direct) do
          assert.is_true(math.abs(value - through[i]) <= 1e-12 * (1 + math.abs(value)),
                         ("%d: %g and %g"):format(i, value, through[i]))
        end
      end)
    end
  end

  it("is kept apart from what was kept", function()
    local leaf = random({ 3, 4 }, 1):requires_gradient_(true)
    local x = leaf:scale(1)
    local y = x:add(bias):keep()
    squares(y):add(squares(x)):backward()
    local kept = y:gradient():values()
    for i, value in ipairs(y:values()) do assert.is_true(math.abs(2 * value - kept[i]) < 1e-12) end
  end)
end)
