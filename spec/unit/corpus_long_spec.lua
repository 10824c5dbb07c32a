-- Documents longer than the context: refused, cut off or split, with every target where it was.

local bytes = require "marea.corpus.bytes"
local corpus = require "marea.corpus"
local scratch = dofile "spec/support/scratch.lua"
local numeric = dofile "spec/support/numeric.lua"

local function read(call, text, given)
  local folder <close> = scratch.folder()
  local whole = { path = folder.path .. "/long", split = { validation = 0, test = 0 } }
  for key, value in pairs(given) do whole[key] = value end
  scratch.write(whole.path, text)
  return call(whole)
end

local function refusal(...)
  local given = table.pack(...)
  return numeric.refusal(function() read(table.unpack(given)) end)
end

local function texts_of(made)
  local texts = {}
  for id = 1, made.size do texts[id] = bytes.decode(made:targets(id)) end
  return texts
end

local text = '{"text":"abcdefgh"}\n{"text":"ij"}\n{"text":"klmno"}'

describe("long documents", function()
  it("are refused unless something else is asked for", function()
    for _, long in ipairs { "refuse", false } do
      local message, code = refusal(corpus.jsonl, text, { context = 5, long = long or nil })
      assert.matches("^a document of 8 bytes is longer than the context of 5$", message)
      assert.equal(2, code)
    end
    assert.same({ "abcdefgh", "ij", "klmno" }, texts_of(read(corpus.jsonl, text, {})))
  end)

  it("are truncated to the context, and the card says what was left out", function()
    local made = read(corpus.jsonl, text, { context = 3, long = "truncate" })
    assert.same({ "abc", "ij", "klm" }, texts_of(made))
    assert.is_nil(made:sequence(1).document)
    assert.equal("2 of 3 documents are longer than 3 and are cut off: 7 positions are left out",
                 made.card.notes.long)
  end)

  it("are split into pieces that keep their document, and no target is lost", function()
    local made = read(corpus.jsonl, text, { context = 3, long = "split" })
    assert.same({ "abc", "def", "gh", "ij", "klm", "no" }, texts_of(made))
    local documents, pieces = {}, {}
    for id = 1, made.size do
      documents[id], pieces[id] = made:sequence(id).document, made:sequence(id).piece
    end
    assert.same({ 1, 1, 1, 2, 3, 3 }, documents)
    assert.same({ 1, 2, 3, 1, 1, 2 }, pieces)
    assert.same({ 256, 97, 98 }, made:inputs(1))
    assert.same({ 99, 100, 101 }, made:inputs(2)) -- "c" is what stands before "def"
    assert.same({ 15, 3, 6 }, { made.card.tokens, made.card.documents, made.card.sequences })
    assert.equal("2 of 3 documents are longer than 3 and are split into 5 pieces",
                 made.card.notes.long)
  end)

  it("of tokens keep every pair of neighbours, and make none across documents (B53)", function()
    local made = read(corpus.jsonl, '{"tokens":[1,2,3,4,5,6,7,8]}\n{"tokens":[9,10]}',
                      { context = 3, long = "split", vocabulary = 11 })
    local pairs_seen = {}
    for id = 1, made.size do
      local inputs = made:inputs(id)
      for i, target in ipairs(made:targets(id)) do
        pairs_seen[#pairs_seen + 1] = inputs[i] .. ">" .. target
      end
    end
    assert.equal("1>2 2>3 3>4 4>5 5>6 6>7 7>8 9>10", table.concat(pairs_seen, " "))
  end)

  it("of prompts keep what is supervised and how much of it is prompt", function()
    local rows = '{"prompt":"abcd","completion":"ef"}'
    local made = read(corpus.jsonl, rows, { context = 3, long = "split" })
    assert.same({ { -100, -100, -100 }, { -100, 101, 102 } },
                { made:targets(1), made:targets(2) })
    assert.same({ 0, 2 }, { made:sequence(1).tokens, made:sequence(2).tokens })
    made = read(corpus.jsonl, rows, { context = 3, long = "split", prompts = "supervised" })
    assert.same({ 3, 1 }, { made:sequence(1).prompt_tokens, made:sequence(2).prompt_tokens })
    made = read(corpus.jsonl, rows, { context = 3, long = "truncate" })
    assert.equal(0, made:sequence(1).tokens)
  end)

  it("keep a field called document that the rows have", function()
    local made = read(corpus.jsonl, '{"text":"abcd","document":"X"}\n{"text":"ef","document":"X"}',
                      { context = 2, long = "split", fields = { "document" } })
    assert.same({ "X", "X", "X" }, { made:sequence(1).document, made:sequence(2).document,
                                     made:sequence(3).document })
  end)

  it("stay in one split", function()
    local lines = {}
    for i = 1, 30 do lines[i] = ('{"text":"document %02d is long"}'):format(i) end
    local made = read(corpus.jsonl, table.concat(lines, "\n"),
                      { context = 7, long = "split", split = { validation = 0.2, test = 0.3 } })
    local split_of = {}
    for id = 1, made.size do
      local row = made:sequence(id)
      assert.equal(split_of[row.document] or row.split, row.split)
      split_of[row.document] = row.split
    end
    assert.same({ 15, 6, 9 }, { made.card.splits.train.documents,
                                made.card.splits.validation.documents,
                                made.card.splits.test.documents })
    assert.equal(45, made.card.splits.train.sequences)
  end)

  it("are cut in plain text too", function()
    assert.same({ "abc", "d", "ef" }, texts_of(read(corpus.text, "abcd\nef\n",
                                                    { context = 3, long = "split" })))
  end)

  it("need a context, and one of three ways", function()
    local message = refusal(corpus.jsonl, text, { long = "split" })
    assert.matches('long = "split" needs a context$', message)
    message = refusal(corpus.text, "a", { long = "cut", context = 3 })
    assert.matches('long must be "refuse", "truncate" or "split", got cut$', message)
  end)
end)
