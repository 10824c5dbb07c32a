-- The checks that spec/program/bad_input_* share can fail.

local bad = dofile "spec/support/bad_input.lua"
local core = require "marea.core"
local scratch = dofile "spec/support/scratch.lua"

local function fails(action, ...)
  local good, raised = pcall(action, ...)
  assert.is_false(good)
  return tostring(raised.message or raised)
end

describe("what a failed run leaves", function()
  local place

  before_each(function()
    place = bad.place(nil, { ["run/run.json"] = "{}", ["run/metrics.jsonl"] = '{"update":1}\n' })
  end)

  after_each(function() getmetatable(place).__close(place) end)

  it("passes while every file is whole", function() bad.expect_whole_files(place.path) end)

  it("does not pass with half a file, or one under a temporary name", function()
    for name, text in pairs { ["a.json"] = '{"update":', ["b.jsonl"] = '{"update":1}\n{"upd',
                              ["c.jsonl"] = '{"update":1}\n{"upd\n', ["d.safetensors"] = "\1",
                              [".step-000001.partial-7/state.json"] = "{}" } do
      local path = place.path .. "/run/" .. name
      scratch.write(path, text)
      assert.is_truthy(fails(bad.expect_whole_files, place.path), name)
      os.remove(path)
    end
    bad.expect_whole_files(place.path)
  end)

  it("is compared with what was there before", function()
    local before = place:listing()
    scratch.write(place.path .. "/run/more", "")
    assert.not_equal(before, place:listing())
  end)
end)

describe("a process that is left behind", function()
  it("is found by the place that it knows", function()
    local place <close> = bad.place()
    place.patience = 0
    place:expect_no_process()
    local words = { "sh", "-c", "sleep 30; true", place.path .. "/tide.lua" }
    do
      local _ <close> = core.process.start { arguments = words }
      assert.is_truthy(fails(place.expect_no_process, place):find("tide.lua", 1, true))
    end
    place.patience = 5
    place:expect_no_process()
  end)
end)

describe("what marea says", function()
  local case = { "a typo", words = { "trian" }, code = 2,
                 message = "unknown command 'trian'; did you mean 'train'? (see marea --help)" }

  local function with(changes)
    return setmetatable(changes, { __index = function(_, key) return case[key] end })
  end

  it("must be the message and the code, from the rank that should say it", function()
    local place <close> = bad.place()
    bad.expect(place, case)
    for _, changes in ipairs { { code = 1 }, { message = "unknown command 'trian'" }, { rank = 1 },
                               { message = "unknown", pattern = true }, { message = { "a" } } } do
      fails(bad.expect, place, with(changes))
    end
  end)

  it("has the line on which a field stands", function()
    local text, lines = bad.recipe { head = "\n\n", plan = "1", tail = "x = 1" }
    local number = 0
    for line in text:gmatch("([^\n]*)\n") do
      number = number + 1
      if line:find("plan = 1", 1, true) then assert.equal(number, lines.plan) end
      if line:find("x = 1", 1, true) then assert.equal(number, lines.tail) end
    end
    assert.is_true(lines.plan < lines.tail)
  end)
end)
