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

describe("a nap", function()
  it("lasts as long as it was asked to", function()
    local began = core.seconds()
    core.nap(0.01)
    assert.is_true(core.seconds() - began >= 0.01)
    assert.has_error(function() core.nap(-1) end)
  end)
end)

describe("what callgrind wrote", function()
  local instructions = require "marea.bench.instructions"

  it("is summed by who executed it, calls left to what was called", function()
    local text = [[
version: 1
positions: line
events: Ir

ob=(1) /usr/bin/marea
fl=(1) /src/engine/grad/tape.c
fn=(1) apply
10 5
+2 7
cob=(2) /usr/lib/libopenblas.so.0
cfi=(2) ???
cfn=(2) sgemm
calls=3 0
12 1000
fi=(3) /usr/include/inlined.h
4 1

fl=(4) /src/kernels/cpu/add.c
fn=(3) add
1 20
* 30

ob=(2)
fl=(2)
fn=(2)
0 1000

ob=(3) /usr/lib/liblua5.4.so.0.0.0
fl=(2)
0 50

ob=(1)
fl=(5) /src/engine/lua/ops.c
7 8

ob=(4) /usr/lib/x86_64-linux-gnu/libc.so.6
fl=(6) ./malloc/malloc.c
-1 9

ob=(5) /usr/lib/libmpi.so.40
fl=(2)
0 11

totals: 1141
]]
    local counts = instructions.read(text:gmatch "[^\n]+")
    assert.same({ OpenBLAS = 1000, kernels = 50, engine = 13, Lua = 58, ["C library"] = 9,
                  others = 11 }, counts)
  end)
end)

describe("small operations", function()
  it("have a positive time each", function()
    local operations = require "marea.bench.operations"
    local found = operations.measure()
    assert.equal(#operations.names, #found.rows)
    for i, row in ipairs(found.rows) do
      assert.equal(operations.names[i], row.name)
      assert.is_true(row.ns.low > 0 and row.ratio == nil)
    end
    assert.is_nil(found.ratio)
  end)
end)

describe("growth", function()
  local growth = require "marea.bench.growth"

  local function sum(list)
    local total = 0
    for _, value in ipairs(list) do total = total + value end
    return total
  end

  local function measure(path, families)
    local recipe = recipe_of.require(path, {}, 1)
    return growth.measure(training.session(recipe, world_of.get()), 1e-3, families)
  end

  it("has uneven lengths from 16 to 128 whose total is that of equal ones", function()
    assert.same({ 72 }, growth.uneven(1))
    for _, count in ipairs { 2, 4, 8, 16, 32, 64 } do
      local lengths = growth.uneven(count)
      assert.equal(72 * count, sum(lengths))
      assert.equal(16, math.min(table.unpack(lengths)))
      assert.equal(128, math.max(table.unpack(lengths)))
    end
    assert.same({ 16, 53, 91, 128 }, (function(list) table.sort(list) return list end)
                (growth.uneven(4)))
  end)

  it("goes over lengths to 2048, widths to 1024 and 1 to 64 sequences, in pairs", function()
    local by_length, by_width, by_sequences = table.unpack(growth.families())
    for _, point in ipairs(by_length) do assert.equal(2048, sum(point.lengths)) end
    for _, point in ipairs(by_width) do assert.equal(512, sum(point.lengths)) end
    for i = 1, #by_sequences, 2 do
      local uneven, equal = by_sequences[i], by_sequences[i + 1]
      assert.same({ #uneven.lengths > 1, false }, { uneven.uneven, equal.uneven })
      assert.equal(sum(uneven.lengths), sum(equal.lengths))
      assert.equal(1 << (i - 1) // 2, #uneven.lengths)
    end
    assert.same({ 64, 2048 }, { by_length[1].value, by_length[#by_length].value })
    assert.same({ 64, 1024 }, { by_width[1].value, by_width[#by_width].value })
    assert.equal(64, by_sequences[#by_sequences].value)
  end)

  it("counts tokens and operations of what varies", function()
    local found = measure("recipes/gpt.lua", {
      { { family = "length", value = 32, width = 64, lengths = { 32, 32 } } },
      { { family = "sequences", value = 2, width = 128, lengths = { 16, 48 }, uneven = true },
        { family = "sequences", value = 2, width = 128, lengths = { 32, 32 } } } })
    assert.same({ 2, 16, 3 }, { found.layers, found.head_size, #found.rows })
    -- a layer has 12 width^2 weights, the tied head 64 width; 6 operations for each, and 12 for
    -- each channel of each pair of rows
    local function gflop(width, pairs)
      return (6 * 64 * (2 * 12 * width ^ 2 + 64 * width) + 2 * 12 * width * pairs) / 1e9
    end
    local expected = { gflop(64, 2 * 32 ^ 2), gflop(128, 16 ^ 2 + 48 ^ 2), gflop(128, 2 * 32 ^ 2) }
    for i, row in ipairs(found.rows) do
      assert.equal(64, row.tokens)
      assert.is_true(math.abs(row.gflop_per_token * 64 - expected[i]) < 1e-12, i)
      assert.is_true(row.ms_per_token.low > 0 and row.step_to_floor.median > 0)
      assert.is_true(math.abs(row.gflops * row.ms_per_token.median / row.gflop_per_token - 1e3)
                     < 1e-6)
    end
    assert.same({ 16, 48, 2, 128 }, { found.rows[2].shortest, found.rows[2].longest,
                                     found.rows[2].sequences, found.rows[2].width })
    assert.is_true(found.rows[2].uneven_to_equal.count >= 3)
    assert.is_nil(found.rows[3].uneven_to_equal)
    local shown = require("marea.bench.text").growth(found)
    for _, words in ipairs { "length 32 ", "sequences 2 of 16 to 48 ", "sequences 2 of 32 " } do
      assert.is_truthy(shown:find("\n" .. words, 1, true), words)
    end
  end)

  it("refuses models that have nothing to vary", function()
    local line = require("marea.nn").Linear { input = 3, output = 1 }
    local good, raised = pcall(growth.measure, { model = line }, 1)
    assert.is_false(good)
    assert.is_truthy(fault.of(raised):find("varies models of nn.Transformer", 1, true))
  end)
end)
