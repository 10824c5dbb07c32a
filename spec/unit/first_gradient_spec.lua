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
  relu = function(x) return x:relu() end,
  silu = function(x) return x:silu() end,
  rms_norm = function(x) return x:rms_norm(scale) end,
  dropout = function(x)
    return x:dropout { probability = 0.5, seed = 1, layer = 2, update = 3,
                       ids = core.from({ 7, 7, 8 }, "i64", { 3 }),
                       positions = core.from({ 0, 1, 0 }, "i32", { 3 }) }
  end,
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

  -- Cross-entropy may leave its gradient where the logits were: never where someone still reads.
  it("does not overwrite a value that is kept, read by another or by its own backward", function()
    local function of(made)
      local leaf = random({ 3, 4 }, 1):requires_gradient_(true)
      made(leaf):backward()
      return numeric.gradient(leaf)
    end
    local function loss(x) return x:cross_entropy(targets):sum() end
    local readers = {
      its_own = { function(x) return loss(x:softmax()) end,
                  function(x) return loss(x:softmax():keep()) end },
      another = { function(x) local y = x:scale(2) return squares(y:gelu()):add(loss(y)) end,
                  function(x)
                    local y = x:scale(2):keep()
                    return squares(y:gelu()):add(loss(y))
                  end },
      a_view = { function(x) local y = x:scale(2) return squares(y:reshape { 12 }):add(loss(y)) end,
                 function(x)
                   local y = x:scale(2):keep()
                   return squares(y:reshape { 12 }):add(loss(y))
                 end },
    }
    for name, pair in pairs(readers) do assert.are.same(of(pair[2]), of(pair[1]), name) end
  end)

  it("leaves kept logits as they were", function()
    local leaf = random({ 3, 4 }, 1):requires_gradient_(true)
    local logits = leaf:scale(2):keep()
    local before = logits:values()
    logits:cross_entropy(targets):sum():backward()
    assert.are.same(before, logits:values())
  end)

  it("takes no memory for gradients that lie where a value ended", function()
    local leaf = random({ 64, 1024 }, 1):requires_gradient_(true)
    local many = core.full({ 64 }, 1, "i32")
    leaf:scale(1):gelu():cross_entropy(many):sum():backward() -- makes the leaf's own gradient
    collectgarbage()
    local root = leaf:scale(1):gelu():cross_entropy(many):sum()
    core.memory_reset_peak()
    local live = core.memory().live
    root:backward()
    assert.is_true(core.memory().peak - live < 64 * 1024 * 8 / 4,
                   ("%d bytes"):format(core.memory().peak - live))
  end)
end)
