-- Anchors: whose line is blamed.

local anchor = require "marea.anchor"
local fault = require "marea.fault"

-- Stands in for the library: no file defines it, so no line of it can be blamed.
local refuse = assert(load([[local fault = ...
  return function(...) fault.raise(2, "no: %s", table.concat({ ... }, " ")) end]], "=x"))(fault)

local function raised_by(called, ...)
  local good, raised = pcall(called, ...)
  assert.is_false(good)
  return (fault.of(raised))
end

describe("a callback with a tail call", function()
  local text = "local refuse = ...\n\nreturn function(...)\n  return refuse(...) end"
  local callback = assert(load(text, "@recipes/x.lua"))(refuse)

  it("is blamed on the line where it begins", function()
    assert.equal("recipes/x.lua:3: no: a b", raised_by(anchor.callback(callback), "a", "b"))
  end)

  it("gives back its results, nils included", function()
    local many = assert(load("return nil, 2, nil", "@recipes/x.lua"))
    assert.equal(3, select("#", anchor.callback(many)()))
  end)

  it("stays as it is where no file defines it", function()
    local unnamed = assert(load("return 1", "=(text)"))
    assert.equal(unnamed, anchor.callback(unnamed))
    assert.is_nil(anchor.callback(nil))
  end)
end)

describe("what the library does for a place", function()
  it("is blamed on it", function()
    local from = anchor.place("recipes/x.lua:70")
    assert.equal("recipes/x.lua:70: no: a", raised_by(from, refuse, "a"))
    assert.equal("a:b.lua:7: no: c", raised_by(anchor.bound("a:b.lua:7", refuse), "c"))
  end)

  it("is blamed on the caller where the place has no line", function()
    local message = raised_by(anchor.place(""), refuse, "a")
    assert.truthy(message:find("anchor_spec%.lua:%d+: no: a$"), message)
  end)
end)
