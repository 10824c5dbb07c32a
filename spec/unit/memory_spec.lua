-- The memory that tensors and graphs hold: given back, bounded, and never leaked when there is
-- none left.

local core = require "marea.core"
local fault = require "marea.fault"

local function live()
  collectgarbage()
  collectgarbage()
  return core.memory().live
end

local CHAIN, COLUMNS = 8, 32768
local CHAIN_BYTES = CHAIN * COLUMNS * 8

local function chain(x)
  local y = x
  for _ = 1, CHAIN do y = y:relu() end
  return y:sum()
end

-- The binding runs the collector by itself when live memory has grown by 64 MiB since it was
-- lowest: let it be lowest now.
local function settle()
  live()
  core.zeros { 1 }
end

-- Growth of the peak over 20 runs of `body` after the first one, with the collector stopped.
local function growth(body)
  settle()
  local canary = setmetatable({ {} }, { __mode = "v" })
  collectgarbage "stop"
  body()
  core.memory_reset_peak()
  body()
  local first = core.memory().peak
  for _ = 1, 20 do body() end
  local grown = core.memory().peak - first
  local collected = canary[1] == nil
  collectgarbage "restart"
  assert(not collected, "the collector ran")
  collectgarbage()
  return grown
end

describe("the peak of memory", function()
  local x = core.ones({ COLUMNS }, "f64"):requires_gradient_()

  it("does not grow with repetition although the collector never runs", function()
    local grown = growth(function() chain(x):backward() end)
    assert(grown < CHAIN_BYTES / 8, ("it grew by %d bytes"):format(grown))
  end)

  it("does grow when graphs are not consumed, so the collector was stopped", function()
    local grown = growth(function() chain(x) end)
    assert(grown > 10 * CHAIN_BYTES, ("it grew by %d bytes"):format(grown))
  end)

  it("does not grow with the number of microbatches of a window", function()
    local function window(microbatches)
      core.memory_reset_peak()
      local before = core.memory().live
      for _ = 1, microbatches do chain(x):backward() end
      return core.memory().peak - before
    end
    window(1)
    local one, many = window(1), window(16)
    assert(many < one + CHAIN_BYTES / 8, ("%d bytes for one, %d for 16"):format(one, many))
  end)

  it("of a GPT's update grows by the ids of further microbatches and by nothing else", function()
    local recipe = require("marea.recipe").require("recipes/gpt.lua", {}, 1)
    local world = require("marea.world").get()
    local session = require("marea.training").session(recipe, world)
    local size = #session.plan[1][1][1]
    local function update(microbatches)
      local lists = {}
      for m = 1, microbatches do
        lists[m] = {}
        for i = 1, size do lists[m][i] = session.corpus:rows("train")[(m - 1) * size + i].id end
      end
      session.plan = { { lists } }
      local trainer = require("marea.trainer").new(session)
      settle()
      core.memory_reset_peak()
      local before = core.memory().live
      assert.equal(microbatches * size, trainer:advance().sequences)
      return core.memory().peak - before
    end
    update(1)
    local one, many = update(1), update(8)
    local positions = 7 * size * session.corpus:rows("train")[1].length
    assert(many - one <= 32 * positions, ("%d bytes for one, %d for 8"):format(one, many))
    assert(one > 10 * 32 * positions)
  end)
end)

describe("tensors that nobody holds", function()
  local MIB = 1 << 20

  -- Growth of the peak while 500 MiB of tensors are made and dropped beside `held`.
  local function garbage(held)
    for _ = 1, 125 do core.zeros { MIB } end -- until a collection frees much
    settle()
    core.memory_reset_peak()
    local before = core.memory().live
    for _ = 1, 125 do core.zeros { MIB } end
    assert(held:count() > 0)
    return core.memory().peak - before
  end

  it("are collected although Lua sees but a few bytes of them", function()
    local grown = garbage(core.zeros { 1 })
    assert(grown < 72 * MIB, ("the peak grew by %d bytes"):format(grown))
  end)

  it("are collected beside much that is held", function()
    local held = core.zeros { 50 * MIB }
    collectgarbage()
    -- by half of what is live, which other specs of this process may add to
    local limit = live() // 2 + 12 * MIB
    local grown = garbage(held)
    assert(grown < limit, ("the peak grew by %d bytes, beyond %d"):format(grown, limit))
  end)
end)

describe("a loop whose memory comes and goes", function()
  it("pays for hardly any collection", function()
    local MIB, collections = 1 << 20, 0
    local function count()
      setmetatable({}, { __gc = function()
        collections = collections + 1
        count()
      end })
    end
    local x = core.ones({ MIB }):requires_gradient_()
    settle()
    count()
    collectgarbage "stop"
    for _ = 1, 20 do
      local y = x
      for _ = 1, 22 do y = y:scale(1) end -- 88 MiB
      y:sum():backward()
    end
    collectgarbage "restart"
    assert(collections <= 2, collections)
  end)
end)

describe("small tensors", function()
  it("that nobody holds are collected as what Lua allocates itself is", function()
    local x = core.ones({ 4, 4 }):requires_gradient_()
    settle()
    core.memory_reset_peak()
    local before, heap = core.memory().live, collectgarbage "count" * 1024
    for _ = 1, 200000 do x:scale(0.5) end
    local grown = core.memory().peak - before
    -- A cycle ends once what Lua was told of, an eighth, has doubled its heap, of which other specs
    -- of this process hold much.
    local limit = math.max(16 << 20, 10 * heap)
    assert(grown < limit, ("the peak grew by %d bytes, beyond %d"):format(grown, limit))
  end)

  it("are left alone while the collector is stopped", function()
    local x = core.ones({ 4, 4 }):requires_gradient_()
    settle()
    local canary = setmetatable({ {} }, { __mode = "v" })
    collectgarbage "stop"
    for _ = 1, 20000 do x:scale(0.5) end
    local running, collected = collectgarbage "isrunning", canary[1] == nil
    collectgarbage "restart"
    assert.is_false(running)
    assert.is_false(collected)
  end)

  for _, count in ipairs { 0, 1, 5, 32, 33, 64, 65, 1000 } do
    it(("of %d elements leave their memory to views, and all of it at the end"):format(count),
       function()
      local before = live()
      local tensor = core.full({ count }, 3, "f64")
      local view = tensor:detach()
      assert.equal(8 * count, count == 0 and 0 or #view:values() * 8)
      tensor = nil -- luacheck: ignore
      collectgarbage()
      local others = {}
      for i = 1, 100 do others[i] = core.full({ count }, 4, "f64") end
      for _, value in ipairs(view:values()) do assert.equal(3, value) end
      assert.is_true(live() >= before + 101 * 8 * count)
      assert.equal(100, #others)
      view, others = nil, nil -- luacheck: ignore
      assert.equal(before, live())
    end)
  end

  it("end with a backward, although a handle is left", function()
    local x = core.ones({ 2 }):requires_gradient_()
    local middle = x:scale(3)
    middle:scale(2):sum():backward()
    assert.same({ 6, 6 }, x:gradient():values())
    local good, raised = pcall(middle.values, middle)
    assert.is_false(good)
    assert(fault.of(raised):find("backward has consumed", 1, true))
  end)
end)

describe("a chain of 300,000 operations", function()
  local LENGTH = 300000 -- with one frame each, more than a stack of 8 MiB holds

  local function long(x)
    local y = x
    for _ = 1, LENGTH do y = y:scale(1) end
    return y
  end

  it("is dropped without using the stack", function()
    local x = core.ones({ 1 }):requires_gradient_()
    local before = live()
    local last = long(x)
    assert(live() > before + LENGTH * 100, "the graph is gone before it was dropped")
    assert.equal(1, last:item())
    last = nil -- luacheck: ignore
    assert.equal(before, live())
  end)

  it("is gone back over", function()
    local x = core.ones({ 1 }, "f64"):requires_gradient_()
    long(x):sum():backward()
    assert.equal(1, x:gradient():item())
  end)
end)

-- A small model through most kinds of operations.
local function train_once()
  local function real(shape, stream)
    return core.normal(shape, { seed = 20, stream = stream, dtype = "f64" }):requires_gradient_()
  end
  local ids = core.from({ 0, 2, 1, 2 }, "i32")
  local w, qkv, out = real({ 3, 6 }, 1), real({ 18, 6 }, 2), real({ 3, 6 }, 3)
  local gain = core.ones({ 6 }, "f64"):requires_gradient_()
  local x = w:embedding(ids):layer_norm(gain, nil)
  x = x:add(x:linear(qkv):self_attention { heads = 2, lengths = core.from({ 3, 1 }, "i64") })
  x = x:dropout { probability = 0.25, seed = 1, layer = 1, update = 1,
                  ids = core.from({ 1, 1, 1, 2 }, "i64"), positions = ids }
  x = x:slice(1, 2):concatenate({ x:slice(3, 2) }):rms_norm(gain):gelu()
  local losses = x:linear(out):cross_entropy(ids)
  local loss = losses:weighted_sum(core.ones({ 4 }, "f64"))
  loss:backward()
  return table.concat({ loss:hash(), w:gradient():hash(), qkv:gradient():hash(),
                        out:gradient():hash(), gain:gradient():hash() }, " ")
end

describe("no memory", function()
  it("at any request of a forward and backward is a status, and nothing leaks", function()
    local expected = train_once()
    local before, requests = live(), core.memory().requests
    train_once()
    requests = core.memory().requests - requests
    assert(requests > 50, "the run makes no requests to speak of")
    for n = 1, requests do
      core.memory_fail_at(n)
      local ok, raised = pcall(train_once)
      core.memory_fail_at(0)
      assert(not ok, ("request %d of %d did not fail"):format(n, requests))
      local message, code = fault.of(raised)
      assert(message:find("no memory", 1, true), ("request %d: %s"):format(n, message))
      assert.equal(1, code)
      assert(live() == before, ("request %d leaks %d bytes"):format(n, live() - before))
    end
    assert.equal(expected, train_once())
  end)

  it("for a tensor too large to count is a status", function()
    for _, shape in ipairs { { 1 << 62, 2 }, { 1 << 61 }, { 1 << 50 } } do
      local ok, raised = pcall(core.zeros, shape)
      assert.is_false(ok)
      assert.equal(1, select(2, fault.of(raised)))
    end
  end)
end)
