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
    assert.same({ "7", 1 }, { fault.of(7) })
    local speaking = setmetatable({}, { __tostring = function() return "low tide" end })
    assert.same({ "low tide", 1 }, { fault.of(speaking) })
  end)

  it("is said to have no text when it has none", function()
    assert.same({ "an error without a message", 1 }, { fault.of(nil) })
    assert.same({ "an error whose value is a table and no text", 1 }, { fault.of({ code = 7 }) })
    assert.same({ "an error whose value is a boolean and no text", 1 }, { fault.of(false) })
  end)

  it("is no fault, whatever its fields", function()
    assert.is_false(fault.is({ message = "x", code = 2 }))
    assert.is_false(fault.is("x"))
  end)
end)

describe("an error that is seized where it is raised", function()
  local function seized(text)
    local chunk = assert(load(text, "@recipes/example.lua"))
    local _, raised = xpcall(chunk, fault.seize, fault)
    return fault.of(raised)
  end

  it("gets the line outside the library, unless it begins with one", function()
    assert.same({ "recipes/example.lua:2: low", 1 }, { seized '\nerror("low")' })
    assert.same({ "recipes/example.lua:2: low", 1 }, { seized '\nerror("low", 0)' })
    assert.same({ "recipes/example.lua:2: an error without a message", 1 }, { seized "\nerror()" })
    assert.same({ "recipes/example.lua:2: an error whose value is a table and no text", 1 },
                { seized "\nerror({})" })
    assert.same({ "other.lua:9: low", 1 }, { seized 'error("other.lua:9: low", 0)' })
  end)

  it("that the library's own code raised is blamed on the line that called it", function()
    local source = debug.getinfo(fault.raise, "S").source:gsub("fault%.lua$", "nn/linear.lua")
    local inner = assert(load("local x = nil + 1", source))
    local recipe = assert(load("local inner = ...\ninner()\nreturn 1", "@recipes/outer.lua"))
    local _, raised = xpcall(recipe, fault.seize, inner)
    assert.truthy(fault.of(raised):find("^recipes/outer%.lua:2: .*nn/linear%.lua:1: attempt to"))
  end)

  it("stays the fault that it is", function()
    local made = fault.new(5, "no water")
    local _, raised = pcall(error, made)
    assert.equal(made, fault.seize(raised))
  end)
end)

describe("a message that is printed", function()
  local failure = require "marea.cli.failure"

  local function printed(text) return failure.catch(fault.new(1, text)).message end

  it("ends after 4096 bytes, between two characters, and says how much is missing", function()
    assert.equal(("x"):rep(4096), printed(("x"):rep(4096)))
    assert.equal(("x"):rep(4096) .. " ... (4904 more bytes)", printed(("x"):rep(9000)))
    assert.equal(("x"):rep(4095) .. " ... (6 more bytes)", printed(("x"):rep(4095) .. "ééé"))
  end)

  it("has no control characters but the ends of lines and tabs", function()
    assert.equal("a\\x1B[2Jb\n\tc\\x00é", printed("a\27[2Jb\n\tc\0é"))
  end)
end)
