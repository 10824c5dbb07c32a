-- marea new: what it writes works as it is.

local json = require "marea.json"
local launch = require "marea.launch"
local scratch = require "spec.support.scratch"

local function run(ranks, ...) return launch.run({ ranks = ranks, time_limit = 60 }, { ... }) end

local function prepare(folder, name, ...)
  return run(nil, "prepare", folder.path .. "/" .. name, "ranks=1", "updates=1",
             "batch_size_per_rank=1", "--outputs", folder.path .. "/outputs", "--json", ...)
end

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

  it("names the fields that the rows have, and draws the split that they lack", function()
    local folder <close> = scratch.folder()
    local lines = {}
    for i = 1, 20 do
      lines[i] = ('{"verse":"number %d of the verses","book":"%s","note":[1]}'):format(i, i % 3)
    end
    scratch.write(folder.path .. "/own.jsonl", table.concat(lines, "\n"))
    assert.equal(0, (run(nil, "new", folder.path .. "/own", "--corpus",
                         folder.path .. "/own.jsonl")))
    local text = scratch.read(folder.path .. "/own.lua")
    assert.is_truthy(text:find('field = "verse"', 1, true))
    assert.is_truthy(text:find('fields = { "book" }', 1, true))
    assert.is_truthy(text:find("per_book = function", 1, true))
    assert.is_nil(text:find("split = ", 1, true))
    local code, card, errors = prepare(folder, "own.lua")
    assert.equal(0, code, errors)
    assert.equal(16, json.decode(card).splits.train.documents)
  end)

  it("reads plain text, and leaves out what it has not", function()
    local folder <close> = scratch.folder()
    scratch.write(folder.path .. "/notes.md", ("# Sea\n\n%s\n\nIt is blue.\n"):format(
      ("It is wide. "):rep(20)))
    assert.equal(0, (run(nil, "new", folder.path .. "/notes", "--corpus",
                         folder.path .. "/notes.md")))
    local text = scratch.read(folder.path .. "/notes.lua")
    assert.is_truthy(text:find("corpus.text", 1, true))
    assert.is_nil(text:find("book", 1, true))
    assert.is_nil(text:find("%f[%u]UNITS?%f[%W]"))
    local code, card, errors = prepare(folder, "notes.lua", "objective=by_root")
    assert.equal(0, code, errors)
    assert.equal(3, json.decode(card).documents)
    assert.equal(4, json.decode(card).sequences) -- the long one in two pieces
  end)

  for _, case in ipairs {
    { "what is no text", "a.bin", "the sea\xff", "is no text: byte 8 is 0xFF" },
    { "an empty file", "a.txt", "\n", "is empty" },
    { "lines that are no JSON", "a.jsonl", '{"text":"a"}\nthe sea\n', "a.jsonl:2: bad JSON" },
    { "rows without a text", "a.jsonl", '{"tokens":[1,2]}\n', "no field holds a text" },
  } do
    it("refuses " .. case[1], function()
      local folder <close> = scratch.folder()
      scratch.write(folder.path .. "/" .. case[2], case[3])
      local code, _, errors = run(nil, "new", folder.path .. "/own", "--corpus",
                                  folder.path .. "/" .. case[2])
      assert.equal(2, code)
      assert.is_truthy(errors:find(case[4], 1, true), errors)
      assert.is_nil(scratch.read(folder.path .. "/own.lua"))
    end)
  end

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
