-- Groups and what they promise: the same bits everywhere and every time, splits, the ledger.

local core = require "marea.core"

local world = core.world()
local rank, size = world:rank(), world:size()

-- The first 60 bits of a tensor's hash, as a number that travels.
local function fingerprint(t) return tonumber(t:hash():sub(1, 15), 16) end

local function all_equal(group, number)
  for _, other in ipairs(group:all_gather(core.from({ number }, "i64")):values()) do
    if other ~= number then return false end
  end
  return true
end

describe("a sum of floats", function()
  it("has the same bits on every rank and in 50 repeats, early or late ranks", function()
    for _, count in ipairs { 1, 3, 17, 1000, 20000, 282628 } do
      local first
      for round = 1, 50 do
        local t = core.normal({ count }, { seed = 7, stream = rank })
        if count < 20000 and round % size == rank then core.normal({ 5000 }, { seed = 1 }) end
        local bits = fingerprint(world:all_reduce(t, "sum"))
        first = first or bits
        assert.are.equal(first, bits)
        if count >= 20000 and round == 10 then break end
      end
      assert.is_true(all_equal(world, first))
    end
  end)

  it("has the same bits whether it is waited for or overtaken by later ones", function()
    local counts, blocking, handles = { 40000, 12, 7000 }, {}, {}
    local function input(i) return core.normal({ counts[i] }, { seed = i, stream = rank }) end
    for i in ipairs(counts) do blocking[i] = fingerprint(world:all_reduce(input(i), "mean")) end
    for i in ipairs(counts) do handles[i] = world:all_reduce_async(input(i), "mean") end
    for i = #counts, 1, -1 do
      assert.are.equal(blocking[i], fingerprint(handles[i]:wait()))
    end
  end)
end)

describe("a split", function()
  it("makes groups of the same colour, ordered by key", function()
    local group = world:split(rank % 2, -rank)
    local members = 0
    for r = 0, size - 1 do members = members + (r % 2 == rank % 2 and 1 or 0) end
    assert.are.equal(members, group:size())
    assert.are.equal(members - 1 - rank // 2, group:rank())
    assert.are.equal(("group %d of the world"):format(rank % 2), group:name())
    local expected = 0
    for r = 0, size - 1 do expected = expected + (r % 2 == rank % 2 and r or 0) end
    assert.are.equal(expected, group:all_reduce(core.full({}, rank, "i64"), "sum"):item())
    assert.are.equal(size, world:all_reduce(core.ones {}, "sum"):item())
  end)

  it("gives nothing for colour -1, and groups of groups", function()
    local first = world:split(rank == 0 and -1 or 5)
    if rank == 0 then
      assert.is_nil(first)
    else
      local second = first:split(first:rank() == 0 and 0 or 1)
      assert.are.equal(first:rank() == 0 and 1 or size - 2, second:size())
      assert.are.equal(second:size(), second:all_reduce(core.ones {}, "sum"):item())
    end
  end)

  it("keeps operations of different groups apart, in whatever order ranks wait", function()
    local group = world:split(0)
    local a = group:all_reduce_async(core.full({ 10 }, rank, "i64"), "sum")
    local b = world:all_reduce_async(core.full({ 20 }, 1, "i64"), "sum")
    local handles = rank % 2 == 0 and { a, b } or { b, a }
    for _, handle in ipairs(handles) do handle:wait() end
    assert.are.equal(size * (size - 1) // 2, a:wait():get(10))
    assert.are.equal(size, b:wait():get(20))
  end)

  it("refuses a colour below -1", function()
    local ok, raised = pcall(world.split, world, -2)
    assert.is_false(ok)
    assert.matches("a colour of -2 is below -1", tostring(raised), 1, true)
  end)
end)

describe("the ledger", function()
  it("counts calls and payload bytes of each kind, each group for itself", function()
    local group = world:split(0)
    group:all_reduce(core.zeros({ 10 }, "f32"), "sum")
    group:all_reduce_async(core.zeros({ 3 }, "f64"), "mean"):wait()
    group:broadcast(core.zeros({ 5 }, "i64"), 0)
    group:all_gather(core.zeros({ 4 }, "i32"))
    group:reduce_scatter(core.zeros({ size * 2 }, "f32"), "sum")
    group:all_to_all(core.zeros({ size }, "f64"))
    group:barrier()
    group:barrier()
    local sent = group:send_async(core.zeros({ 6 }, "f32"), (rank + 1) % size)
    group:receive(core.zeros({ 6 }, "f32"), (rank - 1) % size)
    sent:wait()
    assert.are.same({
      all_reduce = { calls = 2, bytes = 64 },
      broadcast = { calls = 1, bytes = 40 },
      all_gather = { calls = 1, bytes = 16 },
      reduce_scatter = { calls = 1, bytes = 8 * size },
      all_to_all = { calls = 1, bytes = 8 * size },
      send = { calls = 1, bytes = 24 },
      receive = { calls = 1, bytes = 24 },
      barrier = { calls = 2, bytes = 0 },
      split = { calls = 0, bytes = 0 },
      window = { calls = 0, bytes = 0 },
      close = { calls = 0, bytes = 0 },
    }, group:ledger())
  end)

  it("does not count what was refused", function()
    local before = world:ledger().all_reduce
    pcall(world.all_reduce, world, core.zeros({ 2 }, "i32"), "mean")
    assert.are.same(before, world:ledger().all_reduce)
  end)
end)

describe("memory", function()
  it("is given back by operations, handles and groups", function()
    local function use()
      local group = world:split(rank % 2)
      group:all_reduce(core.ones { 100 }, "sum")
      world:all_gather_async(core.ones { 10 }):wait()
      local sent = world:send_async(core.ones { 5 }, (rank + 1) % size)
      world:receive(core.zeros { 5 }, (rank - 1) % size)
      sent:wait()
      pcall(world.all_reduce, world, core.zeros { 1 + rank }, "sum")
    end
    local function live()
      collectgarbage()
      collectgarbage()
      return core.memory().live
    end
    use()
    local before = live()
    for _ = 1, 5 do use() end
    -- communicators stay until the world closes; a group has two, below 128 bytes together
    assert.is_true(live() - before <= 5 * 128, ("%d bytes more"):format(live() - before))
  end)
end)
