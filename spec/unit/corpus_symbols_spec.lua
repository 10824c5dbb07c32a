local corpus = require "marea.corpus"
local fault = require "marea.fault"

describe("corpus.symbols", function()
  local made = corpus.symbols { seed = 20, train = 200, validation = 20, test = 60 }

  it("draws as many sequences as asked, half of training short and half long", function()
    assert.same({ 200, 20, 60 }, { #made:rows("train"), #made:rows("validation"),
                                   #made:rows("test") })
    local short = 0
    for _, row in ipairs(made:rows("train")) do
      if row.length <= 64 then short = short + 1 end
      assert.is_true(row.length >= 16 and row.length <= 128)
    end
    assert.equal(100, short)
  end)

  it("begins with the mark, and shifts by one: n tokens, n supervised positions", function()
    for id = 1, made.size do
      local inputs, targets, row = made:inputs(id), made:targets(id), made:sequence(id)
      assert.equal(4, inputs[1])
      for i = 2, #inputs do assert.equal(targets[i - 1], inputs[i]) end
      assert.equal(#targets, row.tokens)
      assert.equal(#inputs, row.length)
      for _, symbol in ipairs(targets) do assert.is_true(symbol >= 0 and symbol <= 3) end
    end
    assert.same({ 6, 4, 5 }, { made.vocabulary, made.begin, made.pad })
  end)

  -- 17,000 transitions: three standard deviations of a share of 0.55 are 0.012.
  it("follows the chain", function()
    local steps, count = { [0] = 0, 0, 0, 0 }, 0
    for id = 1, made.size do
      local targets = made:targets(id)
      for i = 2, #targets do
        local step = (targets[i] - targets[i - 1]) % 4
        steps[step], count = steps[step] + 1, count + 1
      end
    end
    assert.is_true(count > 15000)
    assert.is_true(math.abs(steps[1] / count - 0.55) < 0.012)
    for _, step in ipairs { 0, 2, 3 } do
      assert.is_true(math.abs(steps[step] / count - 0.15) < 0.009)
    end
  end)

  it("says on its card what can be reached", function()
    local notes = made.card.notes
    assert.is_true(math.abs(notes.entropy - 1.1825) < 5e-5)
    assert.is_true(math.abs(notes.first_symbol_entropy - 1.3863) < 5e-5)
    local tokens, loss, counts = 0, 0, { [0] = 0, 0, 0, 0 }
    for _, row in ipairs(made:rows("test")) do
      local targets = made:targets(row.id)
      for i, symbol in ipairs(targets) do
        local follows = i > 1 and symbol == (targets[i - 1] + 1) % 4
        loss = loss - math.log(i == 1 and 0.25 or follows and 0.55 or 0.15)
        tokens, counts[symbol] = tokens + 1, counts[symbol] + 1
      end
    end
    assert.equal(tokens, notes.test.tokens)
    assert.is_true(math.abs(notes.test.loss - loss / tokens) < 1e-12)
    assert.equal(math.max(counts[0], counts[1], counts[2], counts[3]) / tokens,
                 notes.test.commonest_share)
    assert.is_true(notes.test.loss > 1.1 and notes.test.loss < 1.3)
  end)

  it("is the same for the same seed and another for another", function()
    local given = { seed = 3, train = 8, validation = 2, test = 2 }
    assert.equal(corpus.symbols(given):hash(), corpus.symbols(given):hash())
    local other = corpus.symbols { seed = 4, train = 8, validation = 2, test = 2 }
    assert.are_not.equal(corpus.symbols(given):hash(), other:hash())
  end)

  it("draws the test split without regard to the size of the others", function()
    local small = corpus.symbols { seed = 20, train = 2, validation = 0, test = 60 }
    for i, row in ipairs(small:rows("test")) do
      assert.same(made:targets(made:rows("test")[i].id), small:targets(row.id))
    end
  end)

  it("refuses unknown options and sizes that are none", function()
    for _, case in ipairs {
      { { train = 0 }, "corpus.symbols: train must be an integer of at least 1, got 0" },
      { { train = 4, test = -1 }, "corpus.symbols: test must be an integer of at least 0, got -1" },
      { { trian = 4 }, 'corpus.symbols has no option "trian"; did you mean "train"?' },
    } do
      local ok, raised = pcall(corpus.symbols, case[1])
      local message, code = fault.of(raised)
      assert.is_false(ok)
      assert.truthy(message:find(case[2], 1, true), message)
      assert.equal(2, code)
    end
  end)
end)
