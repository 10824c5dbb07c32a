-- Text joined end to end: symbols, sequences of one length, and what follows what.

local corpus = require "marea.corpus"
local fault = require "marea.fault"
local scratch = dofile "spec/support/scratch.lua"

local function read(name, text, given)
  local folder <close> = scratch.folder()
  scratch.write(folder.path .. "/" .. name, text)
  given.path = folder.path .. "/" .. name
  return corpus.joined(given)
end

local function all(made, what, split)
  local symbols = {}
  for _, row in ipairs(made:rows(split)) do
    table.move(made[what](made, row.id), 1, row.length, #symbols + 1, symbols)
  end
  return symbols
end

describe("corpus.joined", function()
  it("makes sequences of one length whose targets are the symbols behind", function()
    local made = read("a.txt", ("abcdefghij"):rep(20), { vocabulary = 16, length = 7 })
    local inputs, targets = all(made, "inputs", "train"), all(made, "targets", "train")
    for _, row in ipairs(made:rows()) do
      assert.equal(7, row.length)
      assert.equal(7, row.tokens)
    end
    assert.equal(159 // 7 * 7, #inputs) -- of the first 160 bytes
    for i, symbol in ipairs(inputs) do
      assert.equal((i - 1) % 10, symbol)
      assert.equal(i % 10, targets[i])
    end
  end)

  it("gives the commonest bytes symbols, and all others one", function()
    local made = read("a.txt", ("aaab"):rep(30) .. ("c"):rep(40), { vocabulary = 3, length = 4 })
    assert.same({ 0, 0, 0, 1 }, made:inputs(1))
    local last = made:rows("test")[1]
    assert.same({ 2, 2, 2, 2 }, made:inputs(last.id))
    assert.equal(3, made.vocabulary)
  end)

  it("gives all bytes symbols, then the commonest words", function()
    local made = read("a.txt", ("in the day in the night "):rep(20),
                      { vocabulary = 258, length = 4 })
    local the, into = 256, 257 -- " in" stands as often as " the", but for the first
    assert.same({ 105, 110, the, 32 }, made:inputs(1))
    assert.same({ 110, the, 32, 100 }, made:targets(1))
    local inputs = table.concat(all(made, "inputs", "train"), ",")
    assert.is_truthy(inputs:find("," .. into .. ",", 1, true))
  end)

  it("keeps its parts apart, in the order of the text", function()
    local made = read("a.txt", ("x"):rep(80) .. ("y"):rep(10) .. ("z"):rep(10),
                      { vocabulary = 2, length = 3 })
    assert.same({ 0, 0, 0 }, made:inputs(made:rows("train")[1].id))
    for _, split in ipairs { "validation", "test" } do
      for _, symbol in ipairs(all(made, "inputs", split)) do assert.equal(1, symbol) end
    end
  end)

  it("joins the texts of JSON lines by newlines", function()
    local made = read("a.jsonl", ('{"text": "ab"}\n'):rep(40), { vocabulary = 4, length = 3 })
    local inputs = made:inputs(1)
    assert.equal(inputs[1], made:targets(1)[3])
    assert.equal(3, made.size > 0 and #inputs)
    assert.not_equal(inputs[2], inputs[3])
  end)

  it("refuses a text that is too short, lines without a text, and unknown options", function()
    local function refused(expected, ...)
      local good, raised = pcall(read, ...)
      assert.is_false(good)
      local message, code = fault.of(raised)
      assert.equal(2, code)
      assert.is_truthy(message:find(expected, 1, true), message)
    end
    refused("make no sequence of 8 symbols", "a.txt", "short", { vocabulary = 4, length = 8 })
    refused('a.jsonl:1: corpus.joined: expected an object with the text "text"', "a.jsonl", "{}\n",
            { vocabulary = 4, length = 8 })
    refused('no option "lenght"', "a.txt", "text", { vocabulary = 4, lenght = 8 })
    refused("vocabulary must be an integer of at least 2", "a.txt", "text",
            { vocabulary = 1, length = 8 })
  end)
end)
