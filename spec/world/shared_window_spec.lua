-- Gradients in memory that the ranks of a host share: sums in rank order to the bit, wherever they
-- are cut, beside MPI's; and what becomes of every view of the gradients.

local core = require "marea.core"

local world = core.world()
local rank, size = world:rank(), world:size()
local count = 100003

local function unit_of(elements, dtype)
  return core.unit({ { name = "first", shape = { 5 } }, { name = "all", shape = { elements } } },
                   dtype)
end

-- Draws of all sizes, so that another order of the sum shows.
local function fill(tensor, seed, r)
  local draws = core.normal({ tensor:count() }, {
    std = 10.0 ^ (3 * (r % 3)), seed = seed, stream = r, dtype = tensor:dtype() })
  return tensor:copy_(draws:scale_(1 / 3))
end

-- What rank 0's value, then 1's, ... gives, by additions of single tensors.
local function expected(like, seed, reduction)
  local total = fill(core.zeros({ like:count() }, like:dtype()), seed, 0)
  for r = 1, size - 1 do
    total = total:add(fill(core.zeros({ like:count() }, like:dtype()), seed, r))
  end
  return reduction == "mean" and total:scale(1 / size) or total
end

describe("shared gradients", function()
  it("lie in a shared window of the ranks of a host", function()
    local way, why = unit_of(64, "f32"):share_gradients(world)
    assert.equal(size > 1 and "shared window" or "one process", way)
    assert.equal("", why)
  end)

  it("are summed in rank order, to the bit, wherever they are cut", function()
    for _, dtype in ipairs { "f32", "f64" } do
      local unit = unit_of(count, dtype)
      unit:share_gradients(world)
      for _, reduction in ipairs { "sum", "mean" } do
        for seed, cut in ipairs { { 1, 1 }, { 33, 15 }, { 33, 16 }, { 33, 17 }, { 40, 5000 },
                                  { 34, count - 2 }, { 1, 0 }, { 1, count + 32 } } do
          local part = unit:gradients():slice(cut[1], cut[2])
          world:all_reduce(fill(part, seed, rank), reduction)
          assert.equal(expected(part, seed, reduction):hash(), part:hash(),
                       ("%s %s at %d x %d"):format(dtype, reduction, cut[1], cut[2]))
        end
      end
    end
  end)

  it("have the bits of MPI's sum on two ranks", function()
    for _, dtype in ipairs { "f32", "f64" } do
      local unit = unit_of(count, dtype)
      unit:share_gradients(world)
      for _, reduction in ipairs { "sum", "mean", "max", "min" } do
        local inside = fill(unit:gradients(), 9, rank)
        local outside = fill(core.zeros({ inside:count() }, dtype), 9, rank)
        world:all_reduce(inside, reduction)
        world:all_reduce(outside, reduction)
        local gate = { absolute = 1, relative = 1e-5 }
        assert.equal(0, core.compare(inside, outside, gate).failing)
        if size <= 2 then assert.equal(outside:hash(), inside:hash(), reduction) end
      end
    end
  end)

  it("may be under way in several windows at once, beside other operations", function()
    local handles, units = {}, {}
    for i = 1, 3 do
      units[i] = unit_of(1000 * i, "f64")
      units[i]:share_gradients(world)
      fill(units[i]:gradients(), i, rank)
    end
    local other = core.full({ 10 }, rank + 1, "f64")
    for i = 1, 3 do
      handles[i] = world:all_reduce_async(units[i]:gradients(), "sum")
      if i == 2 then handles[4] = world:all_reduce_async(other, "sum") end
    end
    for i = 4, 1, -1 do handles[i]:wait() end
    for i = 1, 3 do
      assert.equal(expected(units[i]:gradients(), i, "sum"):hash(), units[i]:gradients():hash())
    end
    assert.equal(size * (size + 1) / 2, other:values()[10])
  end)

  it("are reduced by MPI where the ranks hand in memory of different places", function()
    local unit = unit_of(640, "f64")
    unit:share_gradients(world)
    local elsewhere = core.zeros({ 320 }, "f64")
    local tensors = { rank == 0 and elsewhere or unit:gradients():slice(1, 320),
                      unit:gradients():slice(1 + 32 * (rank % 2), 320) }
    for _, tensor in ipairs(tensors) do
      tensor:fill_(rank + 1)
      world:all_reduce(tensor, "sum")
      assert.equal(320 * size * (size + 1) / 2, tensor:total())
    end
  end)

  it("are followed by every tensor over them, before, during and after", function()
    local unit = unit_of(64, "f32")
    local flat, own = unit:gradients(), unit:parameter("all"):gradient()
    flat:fill_(7)
    local way = unit:share_gradients(world)
    assert.equal(7 * 96, unit:gradients():total())
    own:fill_(rank + 1)
    assert.equal(7 * 32 + 64 * (rank + 1), flat:total())
    world:all_reduce(flat, "mean")
    assert.equal(64 * (size + 1) / 2, own:total())
    local before = world:ledger()
    assert.equal(way, unit:share_gradients(world))
    assert.same(before, world:ledger()) -- they lie where they are to lie
    assert.equal(64 * (size + 1) / 2, own:total())
    unit = nil -- luacheck: ignore
    collectgarbage()
    world:barrier()
    own:fill_(2)
    assert.equal(128, own:total())
    assert.equal(7 * 32 + 128, flat:total())
  end)

  it("count as memory, once, and go with their last tensor", function()
    collectgarbage()
    local before = core.memory().live
    local bytes = 4 * 1000000
    do
      local unit = core.unit({ { name = "all", shape = { bytes / 4 } } }, "f32")
      local alone = core.memory().live - before
      unit:share_gradients(world)
      assert.is_true(core.memory().live - before - alone < 10000)
      assert.is_true(core.memory().live - before >= 2 * bytes)
    end
    collectgarbage()
    collectgarbage()
    assert.is_true(core.memory().live - before < 10000)
  end)

  it("are not shared with ranks that hold others", function()
    if size == 1 then return pending "one rank has no others" end
    local half = world:split(rank % 2)
    local way = unit_of(64, "f32"):share_gradients(half)
    assert.equal(half:size() > 1 and "shared window" or "one process", way)
  end)
end)
