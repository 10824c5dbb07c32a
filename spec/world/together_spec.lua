local fault = require "marea.fault"
local together = require "marea.together"
local world = require("marea.world").get()

describe("what rank 0 does for all", function()
  it("is done once, and its text is known to every rank", function()
    local calls = 0
    for _, text in ipairs { "tide", "", ("x\n\u{e9}\0"):rep(500) } do
      local result = together.on_root(world, function()
        calls = calls + 1
        return text
      end)
      assert.equal(text, result)
    end
    assert.equal(world:rank() == 0 and 3 or 0, calls)
    assert.is_nil(together.on_root(world, function() end))
  end)

  it("fails on every rank with the same message and code", function()
    local ok, raised = pcall(together.on_root, world, function()
      error(fault.new(4, "the folder is in use"), 0)
    end)
    assert.is_false(ok)
    assert.same({ "the folder is in use", 4 }, { fault.of(raised) })
    assert.equal(world:rank() > 0, raised.peer == true)
    ok, raised = pcall(together.on_root, world, function() error("low tide", 0) end)
    assert.is_false(ok)
    local message, code = fault.of(raised)
    assert.truthy(message:find("low tide$"), message)
    assert.equal(1, code)
  end)
end)

describe("what must be the same on all ranks", function()
  local function hash_of(digit) return (digit):rep(64) end

  it("passes when it is", function()
    assert.has_no.errors(function() together.same(world, "the plan", hash_of "a") end)
  end)

  it("is refused on all ranks, code 6, when one differs", function()
    if world:size() == 1 then return end
    local last = world:rank() == world:size() - 1
    local ok, raised = pcall(together.same, world, "the plan", hash_of(last and "b" or "a"))
    local message, code = fault.of(raised)
    assert.is_false(ok)
    assert.equal(6, code)
    assert.equal(("the plan is not the same on all ranks: hash aaaaaaaaaaaa on rank 0, " ..
                  "bbbbbbbbbbbb on rank %d; it must not depend on the order of pairs or on time")
                 :format(world:size() - 1), message)
  end)
end)
