-- Tensors on a device: where they lie, what of them the host knows, and what waits for the device.

local core = require "marea.core"
local marea = require "marea"
local recipe = require "marea.recipe"
local Session = require "marea.session"

local tensor = marea.tensor
local name = core.device().name

local function waits() return core.device().waits end

describe("a tensor", function()
  it("lies on the device in use, or on the CPU where the host asked for it", function()
    assert.equal(name, tensor.zeros({ 2 }):device())
    assert.equal("cpu", core.host.zeros({ 2 }):device())
    assert.equal("tensor<f32,[2]," .. name .. ">", tostring(tensor.zeros { 2 }))
  end)

  it("is copied from one device to another", function()
    for _, dtype in ipairs { "f32", "f64", "i32", "i64" } do
      local here = tensor.zeros({ 3 }, dtype):copy_(core.host.from({ 1, -2, 3 }, dtype))
      assert.same({ 1, -2, 3 }, here:values())
      assert.same({ 1, -2, 3 }, core.host.zeros({ 3 }, dtype):copy_(here):values())
    end
  end)

  it("takes part in operations on its own device only", function()
    if name == "cpu" then return end
    local here, host = tensor.ones { 2 }, core.host.ones { 2 }
    assert.error_matches(function() here:add(host) end,
                         "add: b lies on cpu, the arguments before it on " .. name)
    assert.same({ 2, 2 }, host:add(host):values())
  end)
end)

describe("integers that the host wrote", function()
  it("are read and checked without waiting for the device", function()
    local w, before = tensor.ones { 4, 2 }, waits()
    local ids = tensor.from({ 3, 0, 1 }, "i32")
    w:embedding(ids)
    assert.same({ 3, 0, 1 }, ids:values())
    ids:set_(2, 2)
    assert.equal(2, ids:get(2))
    assert.same({ 3, 2, 1 }, ids:detach():values())
    assert.same({ 3, 2, 1 }, ids:to("i64"):values())
    assert.same({ 3, 2, 1 }, ids:copy():values())
    assert.equal(before, waits())
  end)

  it("are what the kernels get", function()
    local w = tensor.from { { 1 }, { 2 }, { 3 } }
    local ids = tensor.from({ 2, 2, 2 }, "i32")
    ids:set_(1, 0)
    ids:detach():set_(2, 1)
    assert.same({ 1, 2, 3 }, w:embedding(ids):values())
    assert.error_matches(function() w:embedding(ids:set_(3, 3)) end,
                         "ids%[3%] is 3, outside 0 to 2")
  end)

  it("are read anew once a kernel wrote them", function()
    local found = tensor.from({ { 1, 5, 2 }, { 9, 0, 1 } }):argmax()
    assert.same({ 1, 0 }, found:values())
    local ids = tensor.from({ 0, 0 }, "i32"):copy_(found)
    assert.same({ 1, 0 }, ids:values())
    assert.same({ 20, 10 }, tensor.from({ { 10 }, { 20 } }):embedding(ids):values())
  end)
end)

describe("a window", function()
  local config = { "ranks=1", "accumulation=2", "batch_size_per_rank=2" }

  local function session_of(path)
    return Session.open(recipe.require(path, config, 1)):build()
  end

  it("is accumulated without waiting for the device", function()
    local session = session_of "recipes/minimum.lua"
    for step = 1, 2 do
      local before = waits()
      session.statistics = {}
      session:accumulate(session:window(step))
      assert.equal(before, waits())
      assert.is_true(session.statistics.loss_sum > 0)
    end
  end)

  it("waits where its loss is read", function()
    local before = waits()
    assert.equal(3, tensor.ones({ 3 }):total())
    assert.equal(name == "cpu" and 0 or 1, waits() - before)
  end)
end)

describe("memory", function()
  it("of the device is counted, and used again, zeroed where that was asked for", function()
    collectgarbage()
    local before = core.memory().live
    local function grown()
      local kept = tensor.full({ 1000 }, 7)
      return core.memory().live - before, kept:count()
    end
    assert.is_true(grown() >= 4000)
    collectgarbage()
    assert.equal(before, core.memory().live)
    assert.equal(0, tensor.zeros({ 1000 }):total())
  end)
end)
