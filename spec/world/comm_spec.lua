-- Every operation of a group against values computed by hand, in every dtype, on counts of 0 and
-- on counts that fill no vector and no message.

local core = require "marea.core"
local numeric = dofile "spec/support/numeric.lua"

local world = core.world()
local rank, size = world:rank(), world:size()
local dtypes = { "f32", "f64", "i32", "i64" }
local counts = { 0, 1, 7, 100003 }

-- Small whole numbers, exact in every dtype as are their sums.
local function value(r, i) return (i * 7 + r * 13) % 101 - 50 end

-- What rank r holds; lists are kept, since they are long and each dtype asks again.
local lists = {}
local function list(r, count, first)
  local key = ("%d %d %d"):format(r, count, first or 0)
  if not lists[key] then
    lists[key] = {}
    for i = 1, count do lists[key][i] = value(r, (first or 0) + i) end
  end
  return lists[key]
end

local function tensor(r, count, dtype) return core.from(list(r, count), dtype, { count }) end

local function sum(a, b) return a + b end

-- Element by element over ranks 0 to size - 1.
local function reduce(count, first, combine)
  local values = {}
  for i = 1, count do
    local total = value(0, first + i)
    for r = 1, size - 1 do total = combine(total, value(r, first + i)) end
    values[i] = total
  end
  return values
end

-- Asserts without busted's deep comparison, which is slow on long lists.
local function assert_values(expected, found, what)
  assert(#expected == #found, ("%s: %d values, expected %d"):format(what, #found, #expected))
  for i, b in ipairs(expected) do
    if found[i] ~= b then
      error(("%s: value %d is %s, expected %s"):format(what, i, found[i], b), 2)
    end
  end
end

local function each(body)
  for _, dtype in ipairs(dtypes) do
    for _, count in ipairs(counts) do body(dtype, count, ("%s x %d"):format(dtype, count)) end
  end
end

describe("a group", function()
  it("sums, finds the greatest and the least, in place", function()
    for _, row in ipairs { { "sum", sum }, { "max", math.max }, { "min", math.min } } do
      local name, combine = table.unpack(row)
      for _, count in ipairs(counts) do
        local expected = reduce(count, 0, combine)
        for _, dtype in ipairs(dtypes) do
          local t = tensor(rank, count, dtype)
          assert.are.equal(t, world:all_reduce(t, name))
          assert_values(expected, t:values(), ("%s %s x %d"):format(name, dtype, count))
        end
      end
    end
  end)

  it("takes means of reals: the sum times 1/size", function()
    for _, dtype in ipairs { "f32", "f64" } do
      for _, count in ipairs(counts) do
        local t, by_hand = tensor(rank, count, dtype), reduce(count, 0, sum)
        world:all_reduce(t, "mean")
        local factor = core.full({}, 1 / size, dtype):item()
        for i, total in ipairs(by_hand) do by_hand[i] = total * factor end
        assert_values(core.from(by_hand, dtype, { count }):values(), t:values(), dtype)
      end
    end
  end)

  it("refuses a mean of integers by name, on every rank, and goes on", function()
    for _, dtype in ipairs { "i32", "i64" } do
      for _, name in ipairs { "all_reduce", "reduce_scatter", "all_reduce_async" } do
        local message, code = numeric.refusal(function()
          world[name](world, core.zeros({ size }, dtype), "mean")
        end)
        assert.matches("a mean of " .. dtype .. " has no exact value: sum it, then divide", message,
                       1, true)
        assert.are.equal(1, code)
      end
    end
    assert.are.equal(size, world:all_reduce(core.ones({}, "i64"), "sum"):item())
  end)

  it("broadcasts from every root", function()
    each(function(dtype, count, what)
      for root = 0, size - 1 do
        local t = tensor(rank, count, dtype)
        assert.are.equal(t, world:broadcast(t, root))
        assert_values(list(root, count), t:values(), what)
      end
    end)
  end)

  it("gathers in rank order", function()
    each(function(dtype, count, what)
      local all, expected = world:all_gather(tensor(rank, count, dtype)), {}
      for r = 0, size - 1 do table.move(list(r, count), 1, count, #expected + 1, expected) end
      assert.are.same({ size * count }, all:shape())
      assert.are.equal(dtype, all:dtype())
      assert_values(expected, all:values(), what)
    end)
    assert.are.same({ size, 3 }, world:all_gather(core.zeros { 1, 3 }):shape())
    assert.are.same({ size }, world:all_gather(core.zeros {}):shape())
  end)

  it("reduces and scatters", function()
    each(function(dtype, count, what)
      local t = tensor(rank, size * count, dtype)
      local mine = world:reduce_scatter(t, "sum")
      assert_values(reduce(count, rank * count, sum), mine:values(), what)
      assert_values(list(rank, size * count), t:values(), what .. ", the input")
    end)
    local greatest = world:reduce_scatter(core.full({ size, 2 }, rank, "f64"), "max")
    assert.are.same({ 1, 2 }, greatest:shape())
    assert.are.same({ size - 1, size - 1 }, greatest:values())
  end)

  it("exchanges blocks", function()
    each(function(dtype, count, what)
      local found, expected = world:all_to_all(tensor(rank, size * count, dtype)), {}
      for r = 0, size - 1 do
        table.move(list(r, count, rank * count), 1, count, #expected + 1, expected)
      end
      assert_values(expected, found:values(), what)
    end)
  end)

  it("sends messages in a ring, which is to itself on one rank", function()
    each(function(dtype, count, what)
      local from = (rank - 1) % size
      local sent = world:send_async(tensor(rank, count, dtype), (rank + 1) % size, 3)
      local t = core.zeros({ count }, dtype)
      assert.are.equal(t, world:receive(t, from, 3))
      assert_values(list(from, count), t:values(), what)
      sent:wait()
    end)
  end)

  it("keeps the order of messages between two ranks, independently of collectives", function()
    local sent, received = {}, {}
    for i = 1, 40 do
      sent[i] = world:send_async(core.full({}, i, "i32"), (rank + 1) % size, i)
    end
    assert.are.equal(size, world:all_reduce(core.ones {}, "sum"):item())
    for i = 1, 40 do
      received[i] = world:receive_async(core.zeros({}, "i32"), (rank - 1) % size, i)
    end
    for i = 40, 1, -1 do assert.are.equal(i, received[i]:wait():item()) end
    for i = 1, 40 do sent[i]:wait() end
  end)

  it("lets a NaN of any rank win maximum and minimum", function()
    for _, dtype in ipairs { "f32", "f64" } do
      for _, name in ipairs { "max", "min" } do
        for owner = 0, size - 1 do
          local t = core.full({ 3 }, rank, dtype)
          if rank == owner then t:set_(2, 0 / 0) end
          local values = world:all_reduce(t, name):values()
          assert.is_true(values[2] ~= values[2])
          assert.are.equal(name == "max" and size - 1 or 0, values[3])
        end
      end
    end
  end)

  it("refuses what no rank can do", function()
    local t = core.zeros { 3 }
    local function says(text, body)
      assert.matches(text, (numeric.refusal(body)), 1, true)
    end
    says("no reduction 'avg'; there are sum, mean, max and min",
         function() world:all_reduce(t, "avg") end)
    says(("broadcast: no rank %d among the %d of the world"):format(size, size),
         function() world:broadcast(t, size) end)
    says("the rank must be 0", function() world:send(t, -1) end)
    says("expected a tensor as argument 2, got nil", function() world:all_gather(nil) end)
    if size > 1 then
      says(("reduce_scatter: a first axis of %d cannot be cut into %d equal blocks"):format(
             size + 1, size), function() world:reduce_scatter(core.zeros { size + 1 }, "sum") end)
    end
  end)
end)

describe("a handle", function()
  it("gives what the blocking form gives", function()
    local a = world:all_reduce_async(tensor(rank, 1000, "f32"), "sum")
    local b = world:all_gather_async(tensor(rank, 5, "i32"))
    local c = world:reduce_scatter_async(tensor(rank, 3 * size, "f64"), "sum")
    local d = world:broadcast_async(tensor(rank, 4, "i64"), size - 1)
    local e = world:all_to_all_async(tensor(rank, size, "f32"))
    local f = world:barrier_async()
    f:wait()
    assert_values(list(size - 1, 4), d:wait():values(), "broadcast")
    assert_values(reduce(3, rank * 3, sum), c:wait():values(), "reduce_scatter")
    assert.are.equal(5 * size, b:wait():count())
    assert_values(reduce(1000, 0, sum), a:wait():values(), "all_reduce")
    assert.are.equal(value(0, rank + 1), e:wait():get(1))
    assert.are.equal(a:wait(), a:wait())
  end)

  it("gets done by progress alone, 200 of them in post order", function()
    local handles = {}
    for i = 1, 200 do handles[i] = world:all_reduce_async(core.full({ 9 }, i + rank), "sum") end
    local last = handles[200]
    while not last:done() do world:progress() end
    for i = 1, 200 do
      assert.are.equal(size * i + size * (size - 1) // 2, handles[i]:wait():get(9))
    end
  end)

  it("holds its tensor, and completes when nobody waits for it", function()
    local function post() world:all_reduce_async(tensor(rank, 50000, "f64"), "sum") end
    for _ = 1, 8 do post() end
    collectgarbage()
    collectgarbage()
    assert.are.equal(size, world:all_reduce(core.ones {}, "sum"):item())
  end)
end)
