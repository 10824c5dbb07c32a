local corpus = require "marea.corpus"
local fault = require "marea.fault"

local path

local function write(text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

before_each(function() path = os.tmpname() end)
after_each(function() os.remove(path) end)

local function text_of(made, id)
  return require("marea.corpus.bytes").decode(made:targets(id))
end

local function texts_of(made)
  local texts = {}
  for id = 1, made.size do texts[id] = text_of(made, id) end
  table.sort(texts)
  return texts
end

local function assert_refused(expected, read, given)
  given.path = path
  local ok, raised = pcall(read, given)
  assert.is_false(ok)
  local message, code = fault.of(raised)
  assert.truthy(message:find(expected, 1, true), message)
  assert.equal(2, code)
end

describe("corpus.jsonl", function()
  it("draws a tenth each for validation and test where rows name no split", function()
    local lines = {}
    for i = 1, 40 do lines[i] = ('{"text":"document %d"}'):format(i) end
    write(table.concat(lines, "\n"))
    local made = corpus.jsonl { path = path, field = "text" }
    assert.same({ 32, 4, 4 }, { #made:rows "train", #made:rows "validation", #made:rows "test" })
    local asked = corpus.jsonl { path = path, split = { validation = 0.1, test = 0.1 } }
    assert.equal(asked:hash(), made:hash())
  end)

  it("reads bytes, splits and fields", function()
    write('{"text":"ab","split":"train","book":"X"}\n' ..
          '{"text":"c\xc3\xa9","split":"test","book":"Y"}\n')
    local made = corpus.jsonl { path = path, fields = { "book" } }
    assert.equal(2, made.size)
    assert.same({ 256, 97 }, made:inputs(1))
    assert.same({ 97, 98 }, made:targets(1))
    assert.same({ 99, 0xc3, 0xa9 }, made:targets(2))
    assert.same({ id = 2, split = "test", tokens = 3, length = 3, book = "Y" }, made:sequence(2))
    assert.same({ 258, 256, 257 }, { made.vocabulary, made.begin, made.pad })
  end)

  it("reads other field names, and fractions instead of a field", function()
    local lines = {}
    for i = 1, 20 do lines[i] = ('{"verse":"number %d"}'):format(i) end
    write(table.concat(lines, "\n"))
    local made = corpus.jsonl { path = path, field = "verse", split = { validation = 0.1,
                                                                       test = 0.25 } }
    assert.same({ 13, 2, 5 }, { #made:rows("train"), #made:rows("validation"),
                                #made:rows("test") })
    local again = corpus.jsonl { path = path, field = "verse",
                                 split = { validation = 0.1, test = 0.25 } }
    assert.equal(made:hash(), again:hash())
    local other = corpus.jsonl { path = path, field = "verse",
                                 split = { validation = 0.1, test = 0.25, seed = 1 } }
    assert.are_not.equal(made:hash(), other:hash())
  end)

  for _, case in ipairs {
    { "bad JSON", '{"text":"a","split":"train"}\n{"text": oops}\n', ":2: bad JSON: " },
    { "an unfinished line", '{"text":"a","split":"train"', ":1: bad JSON: " },
    { "a line that is no object", '["text"]\n', ":1: bad JSON: expected an object" },
    { "an empty line", '{"text":"a","split":"train"}\n\n{"text":"b","split":"train"}',
      ":2: an empty line; expected a JSON object" },
    { "bad UTF-8", '{"text":"a","split":"train"}\n{"text":"\xff","split":"train"}',
      ":2: bad UTF-8 at byte 10: 0xFF" },
    { "half a surrogate pair", '{"text":"\\ud800","split":"train"}', ":1: bad UTF-8" },
    { "an empty document", '{"text":"a","split":"train"}\n{"text":"","split":"train"}',
      ":2: an empty document" },
    { "a missing text", '{"split":"train"}', ':1: the field "text" is missing' },
    { "a missing field", '{"text":"a","split":"train"}', ':1: the field "book" is missing' },
    { "a missing split", '{"text":"a","split":"train","book":"b"}\n{"text":"b","book":"b"}',
      ':2: the field "split" is missing' },
    { "a split that only later rows have", '{"text":"a","book":"b"}\n' ..
      '{"text":"b","split":"test","book":"b"}', ':2: the field "split" is given here' },
    { "a text that is a number", '{"text":5,"split":"train"}',
      ':1: the field "text" must be a string, got a number' },
    { "an unknown split", '{"text":"a","split":"dev"}',
      ':1: unknown split "dev"; expected train, validation, test' },
    { "a document longer than the context", '{"text":"123456","split":"train","book":"b"}',
      ":1: a document of 6 bytes is longer than the context of 5" },
    { "an empty file", "", ": corpus.jsonl: no documents" },
  } do
    it("refuses " .. case[1] .. " with file and line", function()
      write(case[2])
      assert_refused(path .. case[3], corpus.jsonl,
                     { fields = case[3]:find("book") and { "book" } or nil, context = 5 })
    end)
  end

  it("refuses a file that is not there, and options that it does not have", function()
    assert_refused("split must be the name of a field", corpus.jsonl, { split = 3 })
    assert_refused('did you mean "field"?', corpus.jsonl, { feild = "text" })
    os.remove(path)
    assert_refused("there is no file " .. path, corpus.jsonl, {})
  end)

  it("reads the verses as they were published", function()
    local made = corpus.jsonl { path = "recipes/data/verses.jsonl", fields = { "book" },
                                context = 128 }
    assert.same({ 1024, 128, 256 }, { #made:rows("train"), #made:rows("validation"),
                                      #made:rows("test") })
    assert.equal("And he made haste, and came down, and received him joyfully.", text_of(made, 1))
    assert.equal("Luke", made:sequence(1).book)
    local card = made.card
    assert.same({ total = 0, across_splits = 0 }, card.duplicates)
    local train = card.splits.train
    assert.is_true(train.p10 < train.p50 and train.p50 < train.p90 and train.max == 128)
  end)
end)

describe("corpus.text", function()
  local none = { validation = 0, test = 0 }

  it("leaves out a byte order mark at the start, and there only", function()
    local mark = "\xEF\xBB\xBF"
    write(mark .. "one\n" .. mark .. "two\nthree\n")
    local texts = texts_of(corpus.text { path = path, split = {} })
    assert.same({ "one", "three", mark .. "two" }, texts)
  end)

  it("reads a document a line", function()
    write("one\r\ntwo\nthree")
    assert.same({ "one", "three", "two" }, texts_of(corpus.text { path = path, split = none }))
  end)

  it("reads documents between blank lines", function()
    write("\none\nmore\n\n \n\ntwo\n\n")
    assert.same({ "one\nmore", "two" },
                texts_of(corpus.text { path = path, separator = "blank", split = none }))
  end)

  it("reads documents between lines of %", function()
    write("one\n\nmore\n%\ntwo\n%\n")
    assert.same({ "one\n\nmore", "two" },
                texts_of(corpus.text { path = path, separator = "%", split = none }))
  end)

  it("refuses empty documents, with the line on which they begin", function()
    write("one\n\nthree\n")
    assert_refused(path .. ":2: an empty document", corpus.text, {})
    write("one\n%\n%\ntwo\n")
    assert_refused(path .. ":3: an empty document", corpus.text, { separator = "%" })
    write("\n\n")
    assert_refused(path .. ": corpus.text: no documents", corpus.text, { separator = "blank" })
  end)

  it("refuses bad UTF-8 and documents longer than the context", function()
    write("one\n\xc3(")
    assert_refused(path .. ":2: bad UTF-8 at byte 1: 0xC3", corpus.text, {})
    write("first\n%\nsecond one\nlong\n")
    assert_refused(path .. ":3: a document of 15 bytes is longer than the context of 10",
                   corpus.text, { separator = "%", context = 10 })
  end)

  it("refuses a separator that it does not know", function()
    write("one\n")
    assert_refused('separator must be "line", "blank" or "%", got ";"', corpus.text,
                   { separator = ";" })
  end)

  it("puts equal documents into one split", function()
    local lines = {}
    for i = 1, 60 do lines[i] = "text " .. i % 20 end
    write(table.concat(lines, "\n"))
    local made = corpus.text { path = path, split = { validation = 0.25, test = 0.25 } }
    assert.equal(60, made.size)
    assert.same({ total = 40, across_splits = 0 }, made.card.duplicates)
    assert.same({ 30, 15, 15 }, { #made:rows("train"), #made:rows("validation"),
                                  #made:rows("test") })
  end)

  it("refuses fractions that leave nothing to train on", function()
    write("one\ntwo\n")
    assert_refused("split leaves nothing for training", corpus.text,
                   { split = { validation = 0.5, test = 0.5 } })
    assert_refused("split.test must be a number of at least 0 and below 1, got 2", corpus.text,
                   { split = { test = 2 } })
  end)
end)
