-- Forms say where a value is not what it should be.

local form = require "marea.form"

local tide = form.record {
  moon = form.text, cost = form.optional(form.number), ranks = form.at_least(1),
  lists = form.list(form.list(form.integer)), names = form.map(form.scalar),
}

local function good()
  return { moon = "full", ranks = 2, lists = { { 1, 2 }, {} }, names = { a = 1, b = true },
           more = {} }
end

describe("a form", function()
  it("lets through what has it, with more beside", function()
    assert.is_nil(form.problem(good(), tide))
    local value = good()
    value.cost = 1.5
    assert.is_nil(form.problem(value, tide))
  end)

  it("names the place, what was expected and what was found", function()
    local cases = {
      { function(v) v.moon = nil end, "moon: expected a string, got nothing" },
      { function(v) v.moon = 1 end, "moon: expected a string, got an integer" },
      { function(v) v.cost = "1" end, "cost: expected a number, got a string" },
      { function(v) v.ranks = 0 end, "ranks: expected an integer of at least 1, got an integer" },
      { function(v) v.ranks = 2.5 end, "ranks: expected an integer of at least 1, got a number" },
      { function(v) v.lists = { { 1, "2" } } end,
        "lists[1][2]: expected an integer, got a string" },
      { function(v) v.lists = { 1 } end, "lists[1]: expected a list, got an integer" },
      { function(v) v.lists = { [2] = {} } end, "lists: expected a list without holes" },
      { function(v) v.lists = { a = {} } end, "lists: expected a list, got a list or object" },
      { function(v) v.names.a = {} end,
        "names.a: expected a string, number or boolean, got a list or object" },
      { function(v) v.names = { 1 } end, "names: expected an object, got a list or object" },
      { function(v) v.names = false end, "names: expected an object, got a boolean" },
    }
    for _, case in ipairs(cases) do
      local value = good()
      case[1](value)
      assert.equal(case[2], form.problem(value, tide))
    end
    assert.equal("the whole: expected an object, got nothing", form.problem(nil, tide))
    assert.equal("the whole: expected an object, got a boolean", form.problem(true, tide))
  end)
end)
