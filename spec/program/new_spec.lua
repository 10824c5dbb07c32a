-- marea new: what it writes works as it is.

local json = require "marea.json"
local launch = require "marea.launch"
local scratch = require "spec.support.scratch"

local function run(ranks, ...) return launch.run({ ranks = ranks, time_limit = 60 }, { ... }) end

describe("marea new", function()
  it("writes a recipe that passes parity with its own unit, and trains", function()
    local folder <close> = scratch.folder()
    local path, outputs = folder.path .. "/mine.lua", folder.path .. "/outputs"
    local code, output = run(nil, "new", folder.path .. "/mine")
    assert.equal(0, code)
    assert.is_truthy(output:find("launch -n 2 parity", 1, true))
    assert.is_nil(scratch.read(path):find("%f[%u]NAME%f[%W]%.lua"))
    local small = { "width=16", "layers=1", "updates=2", "--outputs", outputs }
    local parity, found, errors = run(2, "parity", path, "objective=per_book", "--json",
                                      table.unpack(small))
    assert.equal(0, parity, errors)
    assert.is_true(json.decode(found).pass)
    assert.equal(0, (run(2, "train", path, table.unpack(small))))
  end)

  it("takes a corpus of the user's own", function()
    local folder <close> = scratch.folder()
    scratch.write(folder.path .. "/own.jsonl",
                  '{"text":"the sea","split":"train","book":"a"}\n')
    local code, _, errors = run(nil, "new", folder.path .. "/own", "--corpus",
                                folder.path .. "/own.jsonl")
    assert.equal(0, code, errors)
    local prepared, card = run(nil, "prepare", folder.path .. "/own.lua", "ranks=1", "updates=1",
                               "--outputs", folder.path .. "/outputs", "--json")
    assert.equal(0, prepared)
    assert.equal(1, json.decode(card).documents)
  end)

  it("overwrites nothing, and refuses names that are no files'", function()
    local folder <close> = scratch.folder()
    scratch.write(folder.path .. "/mine.lua", "-- precious\n")
    local code, _, errors = run(nil, "new", folder.path .. "/mine")
    assert.equal(2, code)
    assert.is_truthy(errors:find("mine.lua is already there", 1, true))
    assert.equal("-- precious\n", scratch.read(folder.path .. "/mine.lua"))
    assert.equal(2, (run(nil, "new", folder.path .. "/-x")))
  end)
end)
