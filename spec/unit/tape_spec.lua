-- What backward consumes, keeps and refuses; how much memory a graph holds, and for how long.

local core = require "marea.core"
local numeric = dofile "spec/support/numeric.lua"

local function leaf(values, dtype) return core.from(values, dtype or "f64"):requires_gradient_() end

local function live()
  collectgarbage()
  collectgarbage()
  return core.memory().live
end

local CONSUMED = "was an intermediate result that backward has consumed; call keep() on it " ..
  "before the backward to read it afterwards"

describe("backward", function()
  it("consumes intermediates, whoever still holds them", function()
    local x = leaf { 1, 2 }
    local y = x:scale(2)
    local loss = y:sum()
    loss:backward()
    for _, read in ipairs { "values", "item", "copy", "hash", "total", "sum", "detach" } do
      local message = numeric.refusal(function() y[read](y) end)
      assert.equal((read == "sum" and "x " or "this tensor ") .. CONSUMED, message)
    end
    assert.equal("tensor<f64,[2],ended>", tostring(y))
    assert.same({ 2 }, y:shape())
  end)

  it("keeps the root's value and the leaves", function()
    local x = leaf { 1, 2 }
    local loss = x:multiply(x):sum()
    loss:backward()
    assert.equal(5, loss:item())
    assert.same({ 1, 2 }, x:values())
    assert.same({ 2, 4 }, numeric.gradient(x))
  end)

  it("keeps value and gradient of what keep() was called on", function()
    local x = leaf { 1, 2 }
    local y = x:scale(3):keep()
    y:multiply(y):sum():backward()
    assert.same({ 3, 6 }, y:values())
    assert.same({ 6, 12 }, numeric.gradient(y))
    assert.same({ 18, 36 }, numeric.gradient(x))
  end)

  it("keeps a view's memory when the view is kept and its base is not", function()
    local x = leaf { 1, 2, 3, 4 }
    local y = x:scale(2)
    local view = y:slice(2, 2):keep()
    view:sum():backward()
    assert.same({ 4, 6 }, view:values())
    assert.same({ 0, 2, 2, 0 }, numeric.gradient(x))
  end)

  it("runs once for a graph, and leaves gradients as they are when refused", function()
    local x = leaf { 1, 2 }
    local loss = x:multiply(x):sum()
    loss:backward()
    assert.equal("backward: the graph of this result was consumed by an earlier backward",
                 (numeric.refusal(function() loss:backward() end)))
    assert.same({ 2, 4 }, numeric.gradient(x))
  end)

  it("is refused for a second result over a consumed part", function()
    local x = leaf { 1, 2 }
    local shared = x:multiply(x)
    local one, other = shared:sum(), shared:sum()
    one:backward()
    assert.equal("x " .. CONSUMED, (numeric.refusal(function() other:backward() end)))
    assert.same({ 2, 4 }, numeric.gradient(x))
  end)

  it("takes two results over one part when they are added first", function()
    local x = leaf { 1, 2 }
    local shared = x:multiply(x)
    shared:sum():add(shared:scale(2):sum()):backward()
    assert.same({ 6, 12 }, numeric.gradient(x))
  end)

  it("is refused after a change in place of what a forward read", function()
    local x, w = leaf { 1, 2 }, leaf { 3, 4 }
    local loss = x:multiply(w):sum()
    w:fill_(5)
    assert.equal("backward: b of multiply was changed in place after the forward that used it",
                 (numeric.refusal(function() loss:backward() end)))
    assert.is_nil(x:gradient())
  end)

  it("is refused after a change in place of what a forward made", function()
    local x = leaf { 1, 2 }
    local y = x:reshape({ 1, 2 }):softmax()
    local loss = y:weighted_sum(core.from({ 1, 3 }, "f64", { 1, 2 }))
    y:scale_(2)
    local message = numeric.refusal(function() loss:backward() end)
    assert.equal("backward: x of weighted_sum was changed in place after the forward that used it",
                 message)
    local other = x:sum()
    other:scale_(0.5)
    assert.equal("backward: the result of sum was changed in place after the forward that made it",
                 (numeric.refusal(function() other:backward() end)))
    assert.is_nil(x:gradient())
  end)

  it("allows parameters to change once it is done", function()
    local x = leaf { 1, 2 }
    for _ = 1, 3 do
      x:multiply(x):sum():backward()
      x:add_scaled_(-0.5, x:gradient())
      x:gradient():fill_(0)
    end
    assert.same({ 0, 0 }, x:values())
  end)

  it("starts from one number that depends on a leaf", function()
    local x = leaf { 1, 2 }
    assert.equal("backward starts from one real number, got f64 [2]",
                 (numeric.refusal(function() x:scale(2):backward() end)))
    assert.equal("backward: this result depends on no parameter that requires a gradient",
                 (numeric.refusal(function() core.ones({ 2 }):sum():backward() end)))
  end)

  it("gives nothing to leaves that do not ask, nor past detach()", function()
    local x, y, z = leaf { 1, 2 }, core.from({ 3, 4 }, "f64"), leaf { 5, 6 }
    x:multiply(y):add(z:scale(2):detach()):sum():backward()
    assert.same({ 3, 4 }, numeric.gradient(x))
    assert.is_nil(y:gradient())
    assert.is_nil(z:gradient())
  end)

  it("does not need the handles of intermediates", function()
    local x = leaf { 1, 2 }
    local loss = x:scale(2):scale(3):multiply(x):sum()
    collectgarbage()
    collectgarbage()
    loss:backward()
    assert.same({ 12, 24 }, numeric.gradient(x))
  end)
end)

describe("no_grad", function()
  it("records nothing inside, nested or left by an error", function()
    local x = leaf { 1, 2 }
    pcall(function()
      local _ <close> = core.no_grad()
      do
        local _ <close> = core.no_grad()
        assert.is_false(x:scale(2):requires_gradient())
      end
      assert.is_false(x:scale(2):requires_gradient())
      error("leave")
    end)
    local y = x:scale(2)
    assert.is_true(y:requires_gradient())
    y:sum():backward()
    assert.same({ 2, 2 }, numeric.gradient(x))
  end)

  it("holds no inputs", function()
    local before = live()
    local last
    do
      local _ <close> = core.no_grad()
      local x = core.ones({ 1024 }, "f64"):requires_gradient_()
      last = x:scale(2)
    end
    local held = live() - before
    assert(held < 2 * 8 * 1024, ("%d bytes are held"):format(held))
    assert.equal(2048, last:total())
  end)
end)
