local card = require "marea.corpus.card"
local corpus = require "marea.corpus"

local function with_lengths(lengths, split)
  local list = {}
  for i, length in ipairs(lengths) do
    local inputs, targets = {}, {}
    for j = 1, length do inputs[j], targets[j] = j % 4, j == 1 and -100 or i % 4 end
    list[i] = { inputs = inputs, targets = targets, split = split or "train" }
  end
  return list
end

local function made_of(list)
  return corpus.from { sequences = list, vocabulary = 6 }
end

describe("a corpus card", function()
  it("counts documents, supervised tokens and lengths of each split", function()
    local record = made_of(with_lengths { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }).card
    assert.same({ documents = 10, sequences = 10, tokens = 45, without_tokens = 1, p10 = 1,
                  p50 = 5, p90 = 9, max = 10 }, record.splits.train)
    assert.equal(10, record.documents)
    assert.equal(45, record.tokens)
    assert.is_nil(record.splits.test)
  end)

  it("counts duplicates, and those across splits", function()
    local list = with_lengths { 3, 3, 5 }
    list[2] = { inputs = list[1].inputs, targets = list[1].targets, split = "train" }
    list[4] = { inputs = list[1].inputs, targets = list[1].targets, split = "test" }
    assert.same({ total = 2, across_splits = 1 }, made_of(list).card.duplicates)
  end)

  it("counts a document once, however many pieces it has", function()
    local list = with_lengths { 3, 3, 2, 3 }
    for i, fields in ipairs { { 1, 1 }, { 1, 2 }, { 1, 3 }, { 2, 1 } } do
      list[i].fields = { document = fields[1], piece = fields[2] }
    end
    local record = made_of(list).card
    assert.same({ 2, 4, 2, 4 }, { record.documents, record.sequences,
                                  record.splits.train.documents, record.splits.train.sequences })
    assert.matches("^corpus      2 documents in 4 sequences, 7 tokens, ", card.text(record))
  end)

  it("tells how many sequences have no target", function()
    assert.matches("\nno target   2 sequences; they count in no mean\n",
                   card.text(made_of(with_lengths { 1, 3, 1 }).card))
    assert.is_nil(card.text(made_of(with_lengths { 3 }).card):find("no target", 1, true))
  end)

  it("counts the tokens of each rank under a plan", function()
    local made = made_of(with_lengths { 2, 3, 4, 5 })
    local record = card.with_plan(made, { { { { 1 }, { 2 } }, { { 4 } } }, { { { 3 } }, {} } })
    assert.same({ 1 + 2 + 3, 4 }, record.rank_tokens)
    assert.equal(2, record.steps)
  end)

  it("reads as text", function()
    local made = corpus.symbols { seed = 20, train = 4, validation = 2, test = 2 }
    local text = card.text(card.with_plan(made, { { { { 1 } }, { { 3 } } } }))
    for _, expected in ipairs { "8 documents", "train  ", "p50", "rank tokens", "duplicates",
                                "1.1825 a token", made:hash() } do
      assert.truthy(text:find(expected, 1, true), expected)
    end
  end)
end)
