-- Tables that refuse names which they do not have, and what values are called in messages.

local core = require "marea.core"
local kind = require "marea.kind"
local marea = require "marea"
local numeric = dofile "spec/support/numeric.lua"
local strict = require "marea.strict"

local function refusal(call) return { numeric.refusal(call) } end

describe("a strict table", function()
  it("gives what it has, and refuses the rest with the nearest name or all of them", function()
    local given = strict.names({ low = 1, high = false }, "the tide")
    assert.equal(1, given.low)
    assert.is_false(given.high)
    assert.same({ 'the tide has no "hihg"; did you mean "high"?', 2 },
                refusal(function() return given.hihg end))
    assert.same({ 'the tide has no "moon"; it has high, low', 2 },
                refusal(function() return given.moon end))
  end)

  it("does not list what is long", function()
    local given = {}
    for i = 1, 30 do given["name" .. i] = i end
    strict.names(given, "the tide", { code = 1 })
    assert.same({ 'the tide has no "moon"', 1 }, refusal(function() return given.moon end))
  end)

  it("lets optional names, numbers and Lua's own be absent", function()
    local given = strict.names({}, "the tide", { optional = { "moon" } })
    assert.is_nil(given.moon)
    assert.is_nil(given[1])
    assert.is_nil(given.__len)
    local by_number = strict.names({}, "the tide", { index = "the tide is no list" })
    assert.same({ "the tide is no list", 2 }, refusal(function() return by_number[1] end))
  end)

  it("is each part of marea, and marea itself", function()
    for _, part in ipairs { "nn", "optim", "objective", "sampler", "corpus", "schedule", "random",
                            "tensor" } do
      local found = refusal(function() return marea[part].nothing_like_it end)
      assert.equal(("marea.%s has no"):format(part), found[1]:match("^marea%.%a+ has no"))
      assert.equal(2, found[2])
    end
    assert.same({ 'marea has no "sampler_"; did you mean "sampler"?', 2 },
                refusal(function() return marea.sampler_ end))
  end)

  it("is the methods of objects, which are not walked with pairs", function()
    local Tide = {}
    strict.objects(Tide, { rise = print }, "tide", { code = 1, names = { "level" } })
    local tide = setmetatable({ level = 3 }, Tide)
    assert.equal(print, tide.rise)
    assert.same({ 'a tide has no "levl"; did you mean "level"?', 1 },
                refusal(function() return tide.levl end))
    assert.same({ "a tide is read with ipairs, in its order, not with pairs", 1 },
                refusal(function() return pairs(tide) end))
  end)
end)

describe("values in messages", function()
  it("are called by what they are, never by an address", function()
    local linear = marea.nn.Linear { input = 1, output = 1 }
    for _, case in ipairs {
      { nil, "nothing", "nothing" }, { 3, "a number", "3" }, { "x", "a string", '"x"' },
      { true, "a boolean", "true" }, { {}, "a table", "a table" },
      { print, "a function", "a function" }, { core.ones { 1 }, "a tensor", "a tensor" },
      { marea.nn.Linear, "the class nn.Linear", "the class nn.Linear" },
      { linear, "an nn.Linear", "an nn.Linear" }, { io.stderr, "a FILE*", "a FILE*" },
    } do
      assert.equal(case[2], kind.of(case[1]))
      assert.equal(case[3], kind.shown(case[1]))
    end
  end)
end)
