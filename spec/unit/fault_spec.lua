local fault = require "marea.fault"

describe("a fault", function()
  it("carries its message and its exit code", function()
    local ok, raised = pcall(fault.raise, 2, "expected %d, got %s", 3, "four")
    assert.is_false(ok)
    assert.is_true(fault.is(raised))
    local message, code = fault.of(raised)
    assert.equal(2, code)
    assert.truthy(message:find("expected 3, got four", 1, true))
    assert.equal(message, tostring(raised))
  end)

  it("begins with the first line outside the library", function()
    local chunk = assert(load('local fault = ...\n\nlocal _ = 1\nfault.raise(1, "no")\nreturn 1',
                              "@recipes/example.lua"))
    local _, raised = pcall(chunk, fault)
    assert.equal("recipes/example.lua:4: no", fault.of(raised))
  end)

  it("skips levels inside the library and levels without a file", function()
    local library = debug.getinfo(fault.raise, "S").source:gsub("fault%.lua$", "nn/linear.lua")
    local inner = assert(load('local fault = ... fault.raise(1, "bad shape")', library))
    local middle = assert(load('local inner, fault = ... inner(fault) return 1', "=(text)"))
    local recipe = assert(load('local middle, inner, fault = ...\nmiddle(inner, fault)\nreturn 1',
                               "@recipes/outer.lua"))
    local _, raised = pcall(recipe, middle, inner, fault)
    assert.equal("recipes/outer.lua:2: bad shape", fault.of(raised))
  end)

  it("stands at the place that is given", function()
    local _, raised = pcall(fault.raise_at, 2, "words.jsonl:7", "is not JSON")
    assert.equal("words.jsonl:7: is not JSON", fault.of(raised))
    _, raised = pcall(fault.raise_at, 3, "", "is damaged")
    assert.same({ "is damaged", 3 }, { fault.of(raised) })
  end)

  it("shares its metatable with the C side through the registry", function()
    assert.equal(debug.getregistry()["marea.fault"], debug.getmetatable(fault.new(1, "x")))
  end)
end)

describe("any other error value", function()
  it("keeps its text and has code 1", function()
    assert.same({ "recipes/x.lua:3: boom", 1 }, { fault.of("recipes/x.lua:3: boom") })
    assert.same({ "nil", 1 }, { fault.of(nil) })
  end)

  it("is no fault, whatever its fields", function()
    assert.is_false(fault.is({ message = "x", code = 2 }))
    assert.is_false(fault.is("x"))
  end)
end)
