-- Ranks that disagree: every one of them fails before any data is read, with each other's records
-- and lines, and the world goes on at the next operation.

local core = require "marea.core"
local fault = require "marea.fault"

local world = core.world()
local rank, size = world:rank(), world:size()
local untouched = { 1.5, 2.5, 3.5 }

local function fresh(dtype) return core.from(untouched, dtype or "f32") end

-- One rank, the last, does `other`; the rest do `body`. Returns the message of this rank's fault.
local function disagree(body, other)
  local ok, raised = pcall(rank == size - 1 and other or body)
  assert(not ok, "the ranks disagree and nothing was raised")
  local message, code = fault.of(raised)
  assert.are.equal(6, code)
  assert.are.equal(size, world:all_reduce(core.ones {}, "sum"):item())
  return message
end

local function shows(message, ...)
  for _, text in ipairs { ... } do
    assert.is_truthy(message:find(text, 1, true), ("no %q in: %s"):format(text, message))
  end
end

local function others()
  local names = {}
  for r = 0, size - 2 do names[#names + 1] = r end
  return (size > 2 and "ranks " or "rank ") .. table.concat(names, ", ")
end

local last = ("rank %d"):format(size - 1)

describe("ranks that disagree", function()
  it("do so about operations, not about lines", function()
    local t = core.ones {}
    if rank == 0 then
      world:all_reduce(t, "sum")
    else
      world:all_reduce(t, "sum")
    end
    assert.are.equal(size, t:item())
  end)

  if size == 1 then return end

  it("in the kind of operation all fail with both lines", function()
    local t = fresh()
    local message = disagree(function() world:all_reduce(t, "sum") end,
                             function() world:barrier() end)
    shows(message, "ranks disagree at operation ", " of the world: ",
          others() .. " all_reduce sum f32 x 3 at spec/world/disagreement_spec.lua:",
          last .. " barrier at spec/world/disagreement_spec.lua:")
    assert.are.same(untouched, t:values())
  end)

  it("in the count all fail", function()
    local message = disagree(function() world:all_reduce(fresh(), "sum") end,
                             function() world:all_reduce(core.zeros { 4 }, "sum") end)
    shows(message, others() .. " all_reduce sum f32 x 3 ", last .. " all_reduce sum f32 x 4 ")
  end)

  it("in the dtype all fail", function()
    local message = disagree(function() world:all_gather(fresh()) end,
                             function() world:all_gather(fresh "f64") end)
    shows(message, others() .. " all_gather f32 x 3 ", last .. " all_gather f64 x 3 ")
  end)

  it("in the root all fail", function()
    local t = fresh()
    local message = disagree(function() world:broadcast(t, 0) end,
                             function() world:broadcast(t, 1) end)
    shows(message, others() .. " broadcast f32 x 3 from rank 0 ",
          last .. " broadcast f32 x 3 from rank 1 ")
    assert.are.same(untouched, t:values())
  end)

  it("in the reduction all fail", function()
    local message = disagree(function() world:all_reduce(fresh(), "sum") end,
                             function() world:all_reduce(fresh(), "mean") end)
    shows(message, others() .. " all_reduce sum f32 x 3 ", last .. " all_reduce mean f32 x 3 ")
  end)

  it("in a split all fail", function()
    shows(disagree(function() world:split(0) end, function() world:barrier() end),
          others() .. " split at ", last .. " barrier at ")
  end)

  it("in a group are named by their ranks of the world, and other groups go on", function()
    local group = world:split(rank == 0 and 0 or 1)
    if rank > 0 and size > 2 then
      local ok, raised = pcall(group.all_reduce, group, core.zeros { rank }, "sum")
      assert.is_false(ok)
      shows(tostring(raised), "at operation 1 of group 1 of the world: ",
            "rank 1 all_reduce sum f32 x 1 at ",
            ("rank %d all_reduce sum f32 x %d"):format(size - 1, size - 1))
    else
      assert.are.equal(1, group:all_reduce(core.ones {}, "sum"):item())
    end
    world:barrier()
  end)

  it("learn of it from a handle too, and later operations are right", function()
    local wrong = world:all_reduce_async(core.zeros { rank + 1 }, "sum")
    local right = world:all_reduce_async(core.ones {}, "sum")
    assert.are.equal(size, right:wait():item())
    local ok, raised = pcall(wrong.wait, wrong)
    assert.is_false(ok)
    shows(tostring(raised), "rank 0 all_reduce sum f32 x 1 ",
          ("rank %d all_reduce sum f32 x %d "):format(size - 1, size))
  end)

  it("in a message both fail, and no third one", function()
    local function exchange(send, receive)
      local message
      if rank < 2 then
        local ok, raised = pcall(rank == 0 and send or receive)
        assert.is_false(ok)
        message = tostring(raised)
      end
      world:barrier()
      return message
    end
    local count = exchange(function() world:send(fresh(), 1) end,
                           function() world:receive(core.zeros { 4 }, 0) end)
    local tag = exchange(function() world:send(fresh(), 1, 7) end,
                         function() world:receive(fresh(), 0, 8) end)
    local dtype = exchange(function() world:send(fresh(), 1) end,
                           function() world:receive(fresh "f64", 0) end)
    if rank > 1 then return end
    shows(count, "from rank 0 to rank 1 of the world: rank 0 send f32 x 3 to rank 1 at ",
          "; rank 1 receive f32 x 4 from rank 0 at ")
    shows(tag, "rank 0 send f32 x 3 to rank 1 tag 7 at ",
          "rank 1 receive f32 x 3 from rank 0 tag 8 at ")
    shows(dtype, "rank 0 send f32 x 3 ", "rank 1 receive f64 x 3 ")
  end)
end)
