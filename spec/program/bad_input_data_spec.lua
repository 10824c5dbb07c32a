-- Bad data: corpora, the files they come from, and plans. Refused with the line of the recipe or of
-- the file, before anything is written.

local bad = dofile "spec/support/bad_input.lua"

describe("a plan is refused", function()
  local function plan(text)
    return { config = "{ updates = 1 }", plan = ("function() return { %s } end"):format(text) }
  end
  local where = "@plan: plan: step 1, rank %d, microbatch %d: "
  local repeats = where ..
    "expected ids that do not repeat within a window, got 1, which is also in "

  it("when ids repeat within a window, wherever", function()
    bad.expect_all({
      { "in a microbatch", fields = plan "{ { { 1, 1 } } }",
        message = repeats:format(0, 1) .. "this microbatch" },
      { "on a rank", fields = plan "{ { { 1 }, { 1 } } }",
        message = repeats:format(0, 2) .. "step 1, rank 0, microbatch 1" },
      { "across ranks", ranks = 2, fields = plan "{ { { 1 } }, { { 2 }, { 1 } } }",
        message = repeats:format(1, 2) .. "step 1, rank 0, microbatch 1" },
    }, { code = 2 })
  end)

  it("when ids are unknown, of another split, or none", function()
    local id = where:format(0, 1) .. "expected a sequence id, an integer from 1 to 12, got "
    bad.expect_all({
      { "unknown", fields = plan "{ { { 1, 13 } } }",
        message = where:format(0, 1) .. "expected a sequence id from 1 to 12, got 13, which the " ..
          "corpus does not have" },
      { "validation", ranks = 2, fields = plan "{ { { 9 } }, { { 1 } } }",
        message = where:format(0, 1) .. "expected training sequences, got 9, which is of the " ..
          "validation split" },
      { "test", fields = plan "{ { { 11 } } }",
        message = where:format(0, 1) .. "expected training sequences, got 11, which is of the " ..
          "test split" },
      { "no integer", fields = plan "{ { { 1.5 } } }", message = id .. "1.5" },
      { "text", fields = plan "{ { { '1' } } }", message = id .. '"1"' },
    }, { code = 2 })
  end)

  it("when ranks or steps are missing, or it is no list", function()
    bad.expect_all({
      { "a rank", ranks = 2, fields = plan "{ { { 1 } } }",
        message = "@plan: plan: step 1: expected microbatches for 2 ranks, got 1" },
      { "a rank too many", fields = plan "{ { { 1 } }, { { 2 } } }",
        message = "@plan: plan: step 1: expected microbatches for 1 rank, got 2" },
      { "steps", fields = { plan = "function() return { { { { 1 } } } } end" },
        message = "@plan: plan: expected at least 2 steps (config.updates), got 1" },
      { "no plan", fields = { plan = "function() end" },
        message = "@plan: plan: expected a list, got nothing" },
      { "a number", fields = plan "7",
        message = "@plan: plan: step 1: expected a list, got a number" },
      { "a hole", fields = plan "{ { { 1, nil, 2 } } }",
        message = where:format(0, 1) .. "expected a list without holes" },
    }, { code = 2 })
  end)

  it("when it is not the same on all ranks", function()
    local differs = " is not the same on all ranks: hash %x+ on rank 0, %x+ on rank 1; it must " ..
      "not depend on the order of pairs or on time"
    bad.expect_all({
      { "plans", fields = plan "{ { { 1 + 2 * world:rank() } }, { { 2 } } }",
        message = "@plan: the plan" .. differs },
      { "corpora", fields = { corpus = "function() return corpus.symbols { train = 8, " ..
                              "seed = world:rank() } end" },
        message = "@corpus: the corpus" .. differs },
    }, { code = 6, ranks = 2, pattern = true })
  end)
end)

describe("a corpus is refused", function()
  local function of(inputs, targets)
    return { corpus = ("function() return corpus.from { vocabulary = 4, sequences = { " ..
      "{ inputs = { 1 }, targets = { 2 }, split = 'train' }, { inputs = { %s }, " ..
      "targets = { %s }, split = 'train' } } } end"):format(inputs, targets) }
  end

  it("when ids are outside its vocabulary", function()
    bad.expect_all({
      { "input", ranks = { false, 2 }, fields = of("1, 4", "1, 1"),
        message = "@corpus: corpus: sequence 2, inputs, position 2: expected an id from 0 to 3, " ..
          "got 4" },
      { "target", fields = of("1, 1", "1, -1"),
        message = "@corpus: corpus: sequence 2, targets, position 2: expected an id from 0 to 3 " ..
          "or -100, got -1" },
      { "no id", fields = of("1, 0.5", "1, 1"),
        message = "@corpus: corpus: sequence 2, inputs, position 2: expected an id from 0 to 3, " ..
          "got 0.5" },
    }, { code = 2 })
  end)

  it("when it is none, or its options are wrong", function()
    bad.expect_all({
      { "none", ranks = { false, 2 }, fields = { corpus = "function() end" },
        message = "@corpus: the recipe's corpus must return a corpus, got nothing" },
      { "option", fields = { corpus = "function() return corpus.symbols { tain = 8 } end" },
        message = '@corpus: corpus.symbols has no option "tain"; did you mean "train"?' },
      { "no sequences",
        fields = { corpus = "function() return corpus.symbols { train = 0 } end" },
        message = "@corpus: corpus.symbols: train must be an integer of at least 1, got 0" },
    }, { code = 2 })
  end)

  it("whose sequences the model cannot take, once the model runs", function()
    local function model(vocabulary, classes, context)
      return { model = ("function() return nn.Transformer { vocabulary = %d, classes = %d, " ..
                        "context = %d, width = 8, heads = 2, layers = 1 } end")
               :format(vocabulary, classes, context) }
    end
    bad.expect_all({
      { "vocabulary", fields = model(3, 4, 128), ranks = { false, 2 },
        message = "@recipe: embedding: ids[1] is 4, outside 0 to 2" },
      { "classes", fields = model(6, 2, 128), pattern = true,
        message = "@recipe: cross_entropy: targets%[%d+%] is [23], outside 0 to 1 and not %-100 " ..
          "%(ignored%)" },
      { "context", fields = model(6, 4, 15), pattern = true,
        message = "@recipe: nn.Transformer: sequence %d has %d+ inputs, which is longer than " ..
          "the context of 15" },
    }, { code = 2, failed = true })
  end)
end)

describe("a file of documents is refused, with the line,", function()
  local good = '{"text": "low tide", "split": "train"}\n'
  local model = "function() return nn.Transformer { vocabulary = 258, context = 16, width = 8, " ..
    "heads = 2, layers = 1 } end"
  local function source(call) return { corpus = "function() return " .. call .. " end",
                                       model = model } end
  local jsonl = source 'corpus.jsonl { path = "d", context = 16 }'
  local text = source 'corpus.text { path = "d", context = 16 }'

  it("when a document is empty, no UTF-8, or longer than the context", function()
    local long = "12345678901234567"
    bad.expect_all({
      { "empty JSON", files = { d = good .. '{"text": "", "split": "train"}\n' },
        message = "d:2: an empty document" },
      { "empty line", fields = text, files = { d = "low\n\nhigh\n" },
        message = "d:2: an empty document" },
      { "UTF-8 in JSON", files = { d = good .. '{"text": "a\xff", "split": "train"}\n' },
        message = "d:2: bad UTF-8 at byte 12: 0xFF", ranks = { false, 2 } },
      { "UTF-8", fields = text, files = { d = "low tide\nhigh \xc3\n" },
        message = "d:2: bad UTF-8 at byte 6: 0xC3" },
      { "long JSON", files = { d = ('{"text": "%s", "split": "train"}'):format(long) },
        message = "d:1: a document of 17 bytes is longer than the context of 16" },
      { "long", fields = text, files = { d = "low\n" .. long .. "\n" },
        message = "d:2: a document of 17 bytes is longer than the context of 16" },
      { "no document", files = { d = "" }, message = "d: corpus.jsonl: no documents" },
    }, { code = 2, fields = jsonl })
  end)

  it("when it is no JSON, or lacks a field", function()
    bad.expect_all({
      { "cut off", files = { d = good .. good .. '{"text": "ab' },
        message = "d:3: bad JSON: unterminated string at column 10" },
      { "malformed", files = { d = good .. '{"text" "ab", "split": "train"}\n' },
        message = "d:2: bad JSON: an object or list that is badly formed" },
      { "no object", files = { d = good .. "[1]\n" },
        message = "d:2: bad JSON: expected an object" },
      { "empty line", files = { d = good .. "\n" .. good },
        message = "d:2: an empty line; expected a JSON object" },
      { "no field", files = { d = good .. '{"txt": "ab", "split": "train"}\n' },
        message = 'd:2: the field "text" is missing' },
      { "wrong type", files = { d = good .. '{"text": 7, "split": "train"}\n' },
        message = 'd:2: the field "text" must be a string, got a number' },
      { "split", files = { d = good .. '{"text": "ab", "split": "dev"}\n' },
        message = 'd:2: unknown split "dev"; expected train, validation, test' },
    }, { code = 2, fields = jsonl })
  end)

  it("or of the recipe, when there is none", function()
    bad.expect_all({
      { "no file", message = "@corpus: corpus.jsonl: there is no file d, nor d" },
      { "option", fields = source 'corpus.jsonl { path = "d", contxt = 16 }', files = { d = good },
        message = '@corpus: corpus.jsonl has no option "contxt"; did you mean "context"?' },
      { "nothing to train on", files = { d = '{"text": "ab", "split": "test"}' },
        message = "@plan: sampler.shuffled: the training split has no sequences" },
    }, { code = 2, fields = jsonl })
  end)
end)
