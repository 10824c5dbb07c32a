local core = require "marea.core"
local fault = require "marea.fault"
local run = require "marea.run"
local scratch = dofile "spec/support/scratch.lua"

local alone = { rank = function() return 0 end, size = function() return 1 end }

local outputs, folder

before_each(function()
  folder = scratch.folder()
  outputs = folder.path .. "/outputs"
end)

after_each(function()
  getmetatable(folder).__close()
end)

local function open(way, name)
  return run.open { outputs = outputs, name = name or "tide", way = way, world = alone }
end

local function refusal(way, name)
  local ok, raised = pcall(open, way, name)
  assert.is_false(ok)
  return fault.of(raised)
end

describe("a run's folder", function()
  it("is made under outputs with the run's name", function()
    local opened <close> = open "fresh"
    assert.equal(outputs .. "/tide", opened.folder)
    assert.is_true(core.file.is_folder(opened.folder))
    assert.is_nil(opened.moved_to)
    assert.equal(outputs .. "/tide/run.json", opened:path("run.json"))
    assert.equal(outputs .. "/tide/rank-0.jsonl", opened:rank_log())
    assert.is_true(opened:writes())
  end)

  it("of an older trained run is moved aside whole, under the first free number", function()
    for i = 1, 3 do
      local opened <close> = open "fresh"
      assert.equal(i > 1 and outputs .. "/tide." .. i - 1 or nil, opened.moved_to)
      assert.is_false(opened:was_trained())
      core.file.write(opened:path("run.json"), tostring(i))
    end
    assert.equal("1", core.file.read(outputs .. "/tide.1/run.json"))
    assert.equal("2", core.file.read(outputs .. "/tide.2/run.json"))
    assert.equal("3", core.file.read(outputs .. "/tide/run.json"))
  end)

  it("that holds only what other commands left is kept", function()
    do
      local opened <close> = open "any"
      core.file.write(opened:path("plan.json"), "{}")
    end
    local opened <close> = open "fresh"
    assert.is_nil(opened.moved_to)
    assert.is_true(opened:has("plan.json"))
  end)

  it("opens as it is when it must exist", function()
    do
      local opened <close> = open "fresh"
      core.file.write(opened:path("run.json"), "x")
    end
    local opened <close> = open "existing"
    assert.is_true(opened:was_trained())
    assert.is_nil(opened.moved_to)
  end)

  it("that must exist and does not is refused, and nothing is made", function()
    local message, code = refusal "existing"
    assert.equal("there is no run " .. outputs .. "/tide", message)
    assert.equal(2, code)
    assert.is_false(core.file.exists(outputs))
  end)

  it("is refused while another holds it, and opens afterwards", function()
    local first = open "any"
    local message, code = refusal "fresh"
    assert.equal(4, code)
    assert.truthy(message:find("in use", 1, true))
    assert.has_no.errors(function() open("any", "other"):close() end)
    first:close()
    assert.has_no.errors(function() open("fresh"):close() end)
  end)

  it("has no name that leaves outputs or is hidden", function()
    for _, name in ipairs { "", "..", ".hidden", "a/b", "/tmp/x", "a b" } do
      local message, code = refusal("fresh", name)
      assert.equal(2, code)
      assert.truthy(message:find("a run's name becomes a folder", 1, true))
    end
  end)
end)
