-- The likeliest mistakes of those who write recipes, each with the whole text of what is said of
-- it: the line of the recipe, what was expected, what is there, and the nearest name.

local bad = dofile "spec/support/bad_input.lua"
local mistakes = dofile "spec/support/mistakes.lua"

local with, loss, each, model = mistakes.with, mistakes.loss, mistakes.each, mistakes.model
local unit, plan, losses = mistakes.unit, mistakes.plan, mistakes.losses
local head = "local marea = require 'marea'\n"

describe("a file", function()
  it("that returns no recipe is told how it must end", function()
    local text = bad.recipe()
    bad.expect_all({
      { "return is forgotten", fields = { text = text:gsub("return marea", "marea") },
        message = "@recipe: this recipe is declared and not returned; write: return " ..
          "marea.recipe { ... }" },
      { "the same without a command", words = { "RECIPE", "--outputs", "OUTPUTS" },
        fields = { text = text:gsub("return marea", "local r = marea") },
        message = "@recipe: this recipe is declared and not returned; write: return " ..
          "marea.recipe { ... }" },
      { "marea.recipe is forgotten", fields = { text = text:gsub("marea.recipe", "") },
        message = "tide.lua: this file returns a table and no recipe; it must end in return " ..
          "marea.recipe { ... }" },
      { "it requires what is not there", fields = { head = "local torch = require 'torch'" },
        message = '@head: there is no module "torch", neither beside the recipe nor in Lua\'s ' ..
          "package.path" },
    }, { code = 2, ranks = { false, 2 } })
  end)
end)

describe("a name that nobody has", function()
  it("is refused in a recipe, with the nearest", function()
    bad.expect_all({
      { "a field", fields = { tail = "optimizr = 1," },
        message = '@tail: a recipe has no field "optimizr"; did you mean "optimizer"?' },
      { "an option", fields = model "heds = 2, layers = 1",
        message = '@model: nn.Transformer has no option "heds"; did you mean "heads"?' },
      { "a module", fields = { model = "function() return nn.Transfomer {} end" },
        message = '@model: marea.nn has no "Transfomer"; did you mean "Transformer"?' },
      { "an optimizer", fields = { optimizer = "function(m) return optim.Adam(m, {}) end" },
        message = '@optimizer: marea.optim has no "Adam"; did you mean "AdamW"?' },
      { "an objective", fields = { objective = "marea.objective.global_tokens" },
        message = '@objective: marea.objective has no "global_tokens"; did you mean ' ..
          '"global_token"?' },
      { "an objective's text", fields = { objective = '"global_tokens"' },
        message = '@objective: there is no objective "global_tokens"; did you mean ' ..
          '"global_token"?' },
      { "a sampler", fields = plan "return sampler.shufled(rows, c)",
        message = '@plan: marea.sampler has no "shufled"; did you mean "shuffled"?' },
      { "a corpus", fields = { corpus = "function() return corpus.json { path = 'x' } end" },
        message = '@corpus: marea.corpus has no "json"; did you mean "jsonl"?' },
      { "a schedule", fields = { schedule = "function(c) return marea.schedule.cosin {} end" },
        message = '@schedule: marea.schedule has no "cosin"; did you mean "cosine"?' },
      { "a part", fields = { head = "local schedule = marea.schedules" },
        message = '@head: marea has no "schedules"; did you mean "schedule"?' },
    }, { code = 2 })
  end)

  it("is refused of a config, also where other tools have it", function()
    bad.expect_all({
      { "on the command line", words = bad.train "lerning_rate=1",
        message = 'config has no key "lerning_rate"; did you mean "lr"?' },
      { "in a callback", message = '@optimizer: config has no key "learning_rate"; did you mean ' ..
          '"lr"?',
        fields = { optimizer = "function(m, c) return optim.SGD(m, { lr = c.learning_rate }) " ..
                   "end" } },
      { "half of one", words = bad.train "batchsize=1",
        message = 'config has no key "batchsize"; did you mean "batch_size_per_rank"?' },
      { "no =", words = bad.train("lr", "0.1"),
        message = 'expected key=value on the command line, got "lr"' },
    }, { code = 2 })
  end)

  it("is told of where it may be the recipe's own", function()
    local place <close> = bad.place { config = "{ updates = 2, lr = 0.1, batch_size = 3 }" }
    local result = place:run()
    assert.equal("marea: no callback reads config.batch_size; did you mean " ..
                 "config.batch_size_per_rank?\n", result.errors)
    assert.equal(0, result.code)
    place:rewrite { config = "{ updates = 2, lr = 0.1, batch_size = 3 }",
                    optimizer = "function(m, c) local lr = c.lr / c.batch_size " ..
                      "return optim.SGD(m, { lr = lr }) end" }
    assert.equal("", place:run().errors)
  end)

  it("is refused of what a loop and a loss are given", function()
    bad.expect_all({
      { "batch", fields = loss "return nn.cross_entropy(model(batch), batch.target)",
        message = '@loss: a batch has no "target"; did you mean "targets"?' },
      { "tensor", fields = loss("return " .. losses .. ":scle(2)"),
        message = '@loss: a tensor has no "scle"; did you mean "scale"?' },
      { "replica", fields = each "local _ <close> = replica:no_synch()",
        message = '@accumulate: a replica has no "no_synch"; did you mean "no_sync"?' },
      { "window", fields = each "replica:loss(batch, window:weight(batch)):backward()",
        message = '@accumulate: a window has no "weight"; did you mean "weights"?' },
      { "field", fields = unit "return s.tokns",
        message = "@units: window 1: the unit of loss must give finite weights of at least 0, " ..
          "got nothing for sequence 1 on rank 0", code = 5 },
      { "field of a window", fields = unit "return 1 / window:total('boook', s.boook)", code = 2,
        message = '@units: the sequences have no field "boook"; they have id, length, split, ' ..
          "tokens" },
      { "global", fields = loss "return nn.cross_entropy(modle(batch), batch.targets)",
        message = "@loss: attempt to call a nil value (global 'modle')" },
    }, { code = 1, failed = true })
  end)
end)

describe("a config", function()
  it("of other kinds and ranges is refused", function()
    local function config(text) return with { config = text } end
    bad.expect_all({
      { "text for a number", fields = config "{ updates = '100' }",
        message = '@config: config.updates must be an integer of at least 1, got "100"' },
      { "reduction", fields = config "{ reduction = 'avg' }",
        message = '@config: config.reduction must be "mean" or "sum", got "avg"' },
      { "dtype", fields = config "{ dtype = 'f16' }",
        message = '@config: config.dtype must be "f32" or "f64" or "bf16", got "f16"' },
      { "bf16 without a GPU", fields = config "{ dtype = 'bf16' }",
        message = "@config: dtype=bf16 is for GPUs, and this run computes on the CPU: give " ..
          "--device cuda, or dtype=f32" },
      { "a list", fields = config "{ betas = { 0.9, 0.99 } }",
        message = "@config: config.betas must be a number, a string or a boolean, got a table" },
      -- the command to give follows on an indented line, which counts as progress here
      { "ranks", fields = config "{ ranks = 2 }",
        message = "@config: the recipe is planned for 2 ranks and was started on 1; start it on " ..
          "2, or plan for these with ranks=1:" },
      { "no run", words = bad.train("--resume", "latest"),
        message = "outputs/tide holds no run that was trained" },
    }, { code = 2 })
  end)
end)

describe("data", function()
  it("that are not there, or none, are refused", function()
    local source = mistakes.corpus
    bad.expect_all({
      { "no file", fields = source 'corpus.jsonl { path = "mine.jsonl" }',
        message = "@corpus: corpus.jsonl: there is no file mine.jsonl, nor mine.jsonl" },
      { "a list", fields = source "{ { 1, 2, 3 } }",
        message = "@corpus: the recipe's corpus must return a corpus, got a table" },
      { "unshifted", fields = source("corpus.from { vocabulary = 4, sequences = { { inputs = " ..
          "{ 1, 2 }, targets = { 2 }, split = 'train' } } }"),
        message = "@corpus: corpus: sequence 1: expected as many targets as inputs, and at " ..
          "least one, got 1 and 2" },
      { "symbols from 1", fields = source("corpus.from { vocabulary = 2, sequences = { { inputs " ..
          "= { 1, 2 }, targets = { 2, 1 }, split = 'train' } } }"),
        message = "@corpus: corpus: sequence 1, inputs, position 2: expected an id from 0 to 1, " ..
          "got 2" },
      { "no split", fields = source("corpus.from { vocabulary = 4, sequences = { { inputs = " ..
          "{ 1 }, targets = { 1 } } } }"),
        message = "@corpus: corpus: sequence 1: expected split train, validation, test, got " ..
          "nothing" },
    }, { code = 2 })
  end)
end)

describe("a plan", function()
  it("that cannot be run is refused", function()
    local one = "@plan: plan: step 1, rank 0, microbatch 1: "
    bad.expect_all({
      { "ranks from 0", fields = plan "return { { [0] = { { 1 } } }, { [0] = { { 2 } } } }",
        message = "@plan: plan: step 1: expected a list, got one with the key 0" },
      { "ids from 0", fields = plan "return { { { { 0, 1 } } }, { { { 2 } } } }",
        message = one .. "expected a sequence id from 1 to 5, got 0, which the corpus does not " ..
          "have" },
      { "rows for ids", fields = plan "return { { { { rows[1] } } }, { { { rows[2] } } } }",
        message = one .. "expected a sequence id, an integer from 1 to 5, got a table" },
      { "an id twice", fields = plan "return { { { { 1, 1 } } }, { { { 2 } } } }",
        message = one .. "expected ids that do not repeat within a window, got 1, which is also " ..
          "in this microbatch" },
      { "too short", fields = plan "return { { { { 1 } } } }",
        message = "@plan: plan: expected at least 2 steps (config.updates), got 1" },
      { "too flat", fields = plan "return { { { 1, 2 } }, { { 3, 4 } } }",
        message = "@plan: plan: step 1, rank 0, microbatch 1: expected a list, got a number" },
      { "for one rank of two", ranks = 2, fields = plan "return { { { { 1 } } }, { { { 2 } } } }",
        message = "@plan: plan: step 1: expected microbatches for 2 ranks, got 1" },
      { "not returned", fields = plan "sampler.shuffled(rows, c)",
        message = "@plan: plan: expected a list, got nothing" },
      { "a sampler without the config", fields = plan "return sampler.shuffled(rows)",
        message = "@plan: sampler.shuffled expects the rows and the config that the plan " ..
          "callback was given, got a table and nothing" },
      { "the other way round", fields = plan "return sampler.by_length(c, rows)",
        message = "@plan: sampler.by_length expects the rows and the config that the plan " ..
          "callback was given, got a config and a table" },
      { "by chance", fields = plan "return { { { { math.random(5) } } }, { { { 1 } } } }",
        message = "@plan: a recipe cannot call math.random, which draws other numbers on each " ..
          "rank and in each run; use marea.random.stream(seed, number)" },
    }, { code = 2 })
  end)

  it("that is another one on each rank is refused, on all ranks", function()
    bad.expect_all({ { "a plan of the rank", code = 6, ranks = 2, pattern = true,
      fields = plan("local p = {} for u = 1, 2 do p[u] = { {}, {} } for r = 1, 2 do p[u][r][1] " ..
        "= { r } end end p[1][1][1][1] = world:rank() + 3 return p"),
      message = "@plan: the plan is not the same on all ranks: hash %x+ on rank 0, %x+ on rank " ..
        "1; it must not depend on the order of pairs or on time" } })
  end)
end)

describe("a unit", function()
  it("that gives no weights is refused", function()
    local must = "@units: window 1: the unit of loss must give finite weights of at least 0, got "
    bad.expect_all({
      { "nothing", fields = unit "local w = 1 / s.tokens",
        message = must .. "nothing for sequence 1 on rank 0" },
      { "a text", fields = unit "return 'heavy'",
        message = must .. "a string for sequence 1 on rank 0" },
      { "one weight an input", fields = unit "return { 1, 1, 1 }",
        message = "@units: window 1: the unit of loss gave 3 weights for sequence 1, which has " ..
          "2 supervised positions" },
      { "none at all", fields = unit "return s.id > 99 and 1 or 0",
        message = "@units: window 1: the weights of loss are zero for all 8 supervised positions" },
    }, { code = 5, failed = true })
  end)
end)

describe("a mistake in a file beside the recipe", function()
  it("names that file and line", function()
    bad.expect_all({ { "helper", code = 1, failed = true,
      files = { ["helper.lua"] = head .. "return function(model, batch)\n" ..
                "  return marea.nn.cross_entropy(model(batch), batch.label)\nend\n" },
      fields = with { loss = "function(...) return require('helper')(...) end" },
      message = 'helper.lua:3: a batch has no "label"; it has ids, targets, positions, ' ..
        "sequence_ids, lengths, starts, sequences, tokens, rows, supervised" } })
  end)
end)
