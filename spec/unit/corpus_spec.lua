local corpus = require "marea.corpus"
local fault = require "marea.fault"

local function tiny()
  return {
    vocabulary = 6, begin = 4, pad = 5,
    sequences = {
      { inputs = { 4, 0 }, targets = { 0, 1 }, split = "test", fields = { cost = 2, book = "b" } },
      { inputs = { 4, 1, 2 }, targets = { 1, -100, 3 }, split = "train",
        fields = { cost = 1.5, book = "a" } },
      { inputs = { 4 }, targets = { 3 }, split = "validation", fields = { cost = 0, book = "b" } },
      { inputs = { 4, 3 }, targets = { -100, -100 }, split = "train",
        fields = { cost = 3, book = "a" } },
    },
  }
end

local function refusal(source)
  local ok, raised = pcall(corpus.from, source)
  assert.is_false(ok)
  local message, code = fault.of(raised)
  assert.equal(2, code)
  return message
end

describe("a corpus", function()
  it("numbers sequences through the splits: train, validation, test", function()
    local made = corpus.from(tiny())
    assert.is_true(corpus.is(made))
    assert.equal(4, made.size)
    local splits = {}
    for id = 1, 4 do splits[id] = made:sequence(id).split end
    assert.same({ "train", "train", "validation", "test" }, splits)
    assert.same({ id = 1, split = "train", tokens = 2, length = 3, cost = 1.5, book = "a" },
                made:sequence(1))
    assert.same({ 4, 1, 2 }, made:inputs(1))
    assert.same({ 1, -100, 3 }, made:targets(1))
    assert.same({ 4, 0 }, made:inputs(4))
  end)

  it("counts supervised positions, not inputs", function()
    local made = corpus.from(tiny())
    assert.equal(2, made:sequence(1).tokens)
    assert.equal(0, made:sequence(2).tokens)
    assert.equal(2, made:sequence(2).length)
  end)

  it("lists the rows of a split", function()
    local made = corpus.from(tiny())
    assert.equal(2, #made:rows("train"))
    assert.equal(4, made:rows("test")[1].id)
    assert.equal(4, #made:rows())
    local ok, raised = pcall(made.rows, made, "dev")
    assert.is_false(ok)
    assert.truthy(fault.of(raised):find('got "dev"', 1, true))
  end)

  it("refuses ids that it does not have", function()
    for _, id in ipairs { 0, 5, 1.5 } do
      local ok, raised = pcall(function() return corpus.from(tiny()):inputs(id) end)
      assert.is_false(ok)
      assert.truthy(fault.of(raised):find("expected a sequence id from 1 to 4", 1, true))
    end
  end)

  it("refuses ids outside the vocabulary, with sequence and position", function()
    local source = tiny()
    source.sequences[2].inputs[3] = 6
    assert.truthy(refusal(source):find(
      "sequence 2, inputs, position 3: expected an id from 0 to 5, got 6", 1, true))
    source = tiny()
    source.sequences[2].targets[1] = -1
    assert.truthy(refusal(source):find(
      "sequence 2, targets, position 1: expected an id from 0 to 5 or -100, got -1", 1, true))
    source = tiny()
    source.sequences[2].inputs[2] = -100
    assert.truthy(refusal(source):find("got -100", 1, true))
  end)

  it("refuses lists that do not match, and empty ones", function()
    local source = tiny()
    source.sequences[1].targets[3] = 1
    assert.truthy(refusal(source):find("got 3 and 2", 1, true))
    source.sequences[1].inputs, source.sequences[1].targets = {}, {}
    assert.truthy(refusal(source):find("at least one, got 0 and 0", 1, true))
    assert.truthy(refusal({ vocabulary = 6, sequences = {} }):find("at least one", 1, true))
  end)

  it("refuses unknown splits and options", function()
    local source = tiny()
    source.sequences[1].split = "dev"
    assert.truthy(refusal(source):find('expected split train, validation, test, got "dev"', 1,
                                       true))
    source = tiny()
    source.vocabluary = 6
    assert.truthy(refusal(source):find('did you mean "vocabulary"?', 1, true))
  end)

  it("refuses fields that differ in kind, are missing, or take a row's names", function()
    local source = tiny()
    source.sequences[3].fields.book = 7
    assert.truthy(refusal(source):find('the field "book" of sequence', 1, true))
    source = tiny()
    source.sequences[3].fields.book = nil
    assert.truthy(refusal(source):find('has no field "book"', 1, true))
    for _, name in ipairs { "tokens", "rank", "microbatch" } do
      source = tiny()
      for _, sequence in ipairs(source.sequences) do sequence.fields[name] = 1 end
      assert.truthy(refusal(source):find(('a field cannot be called "%s"'):format(name), 1, true))
    end
    source = tiny()
    for i, sequence in ipairs(source.sequences) do sequence.fields.cost = i == 2 and 0 / 0 or 1 end
    assert.truthy(refusal(source):find('the field "cost" of sequence', 1, true))
  end)

  it("keeps integers, numbers, strings and booleans as they were", function()
    local source = tiny()
    for i, sequence in ipairs(source.sequences) do
      sequence.fields = { grade = i, share = i / 4, good = i % 2 == 1, name = "s" .. i }
    end
    local row = corpus.from(source):sequence(1)
    assert.equal("integer", math.type(row.grade))
    assert.same({ grade = 2, share = 0.5, good = false, name = "s2" },
                { grade = row.grade, share = row.share, good = row.good, name = row.name })
  end)
end)

describe("gathering", function()
  local function lists(made)
    local result = {}
    for name, tensor in pairs(made) do result[name] = tensor:values() end
    return result
  end

  it("lays sequences end to end, in the order of the ids", function()
    assert.same({
      ids = { 4, 0, 4, 1, 2 }, targets = { 0, 1, 1, -100, 3 }, positions = { 0, 1, 0, 1, 2 },
      sequence_ids = { 4, 4, 1, 1, 1 }, lengths = { 2, 3 }, starts = { 0, 2 },
    }, lists(corpus.from(tiny()):gather({ 4, 1 })))
  end)

  it("fills up with padding that does not count", function()
    assert.same({
      ids = { 4, 0, 5, 4, 1, 2 }, targets = { 0, 1, -100, 1, -100, 3 },
      positions = { 0, 1, 2, 0, 1, 2 }, sequence_ids = { 4, 4, 4, 1, 1, 1 }, lengths = { 2, 3 },
      starts = { 0, 3 },
    }, lists(corpus.from(tiny()):gather_padded({ 4, 1 }, 3)))
  end)

  it("of no sequences gives tensors of zero rows", function()
    local made = corpus.from(tiny()):gather({})
    for _, name in ipairs { "ids", "targets", "positions", "sequence_ids", "lengths", "starts" } do
      assert.same({ 0 }, made[name]:shape())
    end
  end)

  it("refuses unknown ids and rows that are too short", function()
    local made = corpus.from(tiny())
    local ok, raised = pcall(made.gather, made, { 1, 9 })
    assert.is_false(ok)
    assert.same({ true, 2 }, { fault.of(raised):find("got 9", 1, true) ~= nil,
                               select(2, fault.of(raised)) })
    ok, raised = pcall(made.gather_padded, made, { 4, 1 }, 2)
    assert.is_false(ok)
    assert.truthy(fault.of(raised):find("sequence 1 has 3 inputs, and rows for 2", 1, true))
  end)

  it("gives the same from memory and from a file", function()
    local path = os.tmpname()
    local made = corpus.from(tiny())
    made:write(path)
    local opened = corpus.open(path)
    assert.same(lists(made:gather({ 3, 1, 2 })), lists(opened:gather({ 3, 1, 2 })))
    assert.same(lists(made:gather_padded({ 3, 1 }, 4)), lists(opened:gather_padded({ 3, 1 }, 4)))
    os.remove(path)
  end)
end)

describe("a corpus's hash", function()
  it("is of the content", function()
    assert.equal(corpus.from(tiny()):hash(), corpus.from(tiny()):hash())
    assert.equal(64, #corpus.from(tiny()):hash())
  end)

  it("sees every part of it", function()
    local original = corpus.from(tiny()):hash()
    for name, change in pairs {
      inputs = function(s) s.sequences[2].inputs[2] = 0 end,
      targets = function(s) s.sequences[2].targets[2] = 0 end,
      split = function(s) s.sequences[4].split = "validation" end,
      number = function(s) s.sequences[2].fields.cost = 1.25 end,
      text = function(s)
        for _, sequence in ipairs(s.sequences) do sequence.fields.book = "other" end
      end,
      begin = function(s) s.begin = 3 end,
      vocabulary = function(s) s.vocabulary = 7 end,
      order = function(s) s.sequences[2], s.sequences[4] = s.sequences[4], s.sequences[2] end,
    } do
      local source = tiny()
      change(source)
      assert.are_not.equal(original, corpus.from(source):hash(), name)
    end
  end)
end)

describe("a corpus on disk", function()
  local path

  before_each(function() path = os.tmpname() end)
  after_each(function() os.remove(path) end)

  it("opens as the same object", function()
    local made = corpus.from(tiny())
    made:write(path)
    local opened = corpus.open(path)
    assert.equal(made:hash(), opened:hash())
    assert.same(made:rows(), opened:rows())
    for id = 1, made.size do
      assert.same(made:inputs(id), opened:inputs(id))
      assert.same(made:targets(id), opened:targets(id))
    end
    assert.same({ 6, 4, 5 }, { opened.vocabulary, opened.begin, opened.pad })
    assert.same(made.card, opened.card)
  end)

  it("has the same bytes each time", function()
    corpus.from(tiny()):write(path)
    local first = assert(io.open(path, "rb")):read("a")
    corpus.from(tiny()):write(path)
    assert.equal(first, assert(io.open(path, "rb")):read("a"))
  end)

  it("is refused when a byte of it was changed", function()
    corpus.from(tiny()):write(path)
    local file = assert(io.open(path, "rb"))
    local bytes = file:read("a")
    file:close()
    file = assert(io.open(path, "wb"))
    file:write(bytes:sub(1, -2), string.char(bytes:byte(-1) ~ 1))
    file:close()
    local ok, raised = pcall(corpus.open, path)
    assert.is_false(ok)
    assert.equal(3, select(2, fault.of(raised)))
  end)

  it("is refused when it is no corpus", function()
    local file = assert(io.open(path, "wb"))
    file:write("not a tensor file")
    file:close()
    local ok, raised = pcall(corpus.open, path)
    assert.is_false(ok)
    assert.equal(3, select(2, fault.of(raised)))
  end)
end)
