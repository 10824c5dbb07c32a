-- What bench measures with: products that are read off a graph, times of operations, statistics.

local core = require "marea.core"
local fault = require "marea.fault"
local profile = require "marea.bench.profile"
local recipe_of = require "marea.recipe"
local statistics = require "marea.bench.statistics"
local trainer_of = require "marea.trainer"
local training = require "marea.training"
local world_of = require "marea.world"

local function random(shape, stream)
  return core.normal(shape, { seed = 5, stream = stream }):requires_gradient_(true)
end

describe("the products of a loss", function()
  it("are three for a linear map, of known shapes", function()
    local x, w = random({ 6, 4 }, 1), random({ 5, 4 }, 2)
    local products <close> = core.products(x:linear(w):sum())
    local found = {}
    for i, s in ipairs(products:shapes()) do found[i] = { s.count, s.batched, s.m, s.n, s.k } end
    assert.same({ { 1, false, 6, 5, 4 }, { 1, false, 6, 4, 5 }, { 1, false, 5, 4, 6 } }, found)
    assert.same({ single = 3 * 2 * 6 * 5 * 4, batched = 0 }, products:operations())
    assert.is_true(products:run() >= 0)
  end)

  it("leave out the gradient of what needs none", function()
    local x = core.ones { 6, 4 }
    local products <close> = core.products(x:linear(random({ 5, 4 }, 2)):sum())
    assert.equal(2, #products:shapes())
  end)

  it("are six for each head and sequence of attention", function()
    local rows = random({ 7, 12 }, 3)
    local lengths = core.from({ 3, 4 }, "i64", { 2 })
    local loss = rows:self_attention { heads = 2, lengths = lengths }:sum()
    local products <close> = core.products(loss)
    assert.same({ single = 0, batched = 12 * 2 * 2 * (3 * 3 + 4 * 4) }, products:operations())
    assert.is_true(products:run() >= 0)
  end)

  it("are those of the benchmark's smallest GPT", function()
    local recipe = recipe_of.require("recipes/gpt.lua", { "size=S" }, 1)
    local session = training.session(recipe, world_of.get())
    local window = session:window(1)
    local loss = session.driver:loss(window[1], window:weights(window[1]))
    local products <close> = core.products(loss)
    local linear = 6 * 1024 * (2 * 12 * 64 * 64 + 64 * 64)
    assert.same({ single = linear, batched = 2 * 12 * 8 * 4 * 128 * 128 * 16 },
                products:operations())
    window:release()
  end)

  it("leave the graph as it was", function()
    local x, w = random({ 6, 4 }, 1), random({ 5, 4 }, 2)
    local loss = x:linear(w):sum()
    local products <close> = core.products(loss)
    products:run()
    loss:backward()
    assert.same({ 5, 4 }, w:gradient():shape())
  end)

  it("are refused of a loss without a graph", function()
    local good, raised = pcall(core.products, core.ones {})
    assert.is_false(good)
    assert.is_truthy(fault.of(raised):find("depends on no parameter", 1, true))
  end)
end)

describe("the profile", function()
  it("counts calls of each operation while it is on, and none while it is off", function()
    local x = random({ 6, 4 }, 1)
    core.profile(true)
    x:gelu():gelu():sum():backward()
    local rows = {}
    for _, row in ipairs(core.profiled()) do rows[row.name] = row end
    core.profile(false)
    assert.equal(2, rows.gelu.calls)
    assert.equal(1, rows.sum.calls)
    assert.is_true(rows.gelu.forward > 0 and rows.gelu.backward > 0)
    assert.same({}, core.profiled())
  end)

  it("adds up to the whole", function()
    local recipe = recipe_of.require("spec/recipes/tiny.lua", { "ranks=1" }, 1)
    local trainer = trainer_of.new(training.session(recipe, world_of.get()))
    local found = profile.measure(trainer, function() trainer:advance() end, 3)
    local sum, forward = 0, 0
    for name, ms in pairs(found.parts) do
      assert.is_true(ms >= 0, name)
      sum = sum + ms
    end
    for _, row in ipairs(found.operations) do forward = forward + row.forward end
    assert.is_true(math.abs(sum - found.total) < 1e-6 * found.total)
    assert.is_true(math.abs(forward - found.parts.forward) < 1e-6 * found.total)
    assert.is_true(found.parts.optimizer > 0 and found.parts.window > 0)
    assert.is_nil(rawget(trainer, "gradient_norm"))
  end)
end)

describe("statistics", function()
  it("are medians and quartiles", function()
    assert.same({ median = 3, low = 2, high = 4, count = 5 }, statistics.spread { 5, 1, 4, 2, 3 })
    assert.equal(2.5, statistics.median { 1, 2, 3, 4 })
  end)

  it("take ratios within a turn", function()
    assert.equal(2, statistics.ratio({ 2, 20, 200 }, { 1, 10, 100 }).median)
  end)
end)

describe("a spinning thread", function()
  it("loses some share of its time", function()
    local share = core.spin(0.002)
    assert.is_true(share >= 0 and share <= 1)
  end)
end)
