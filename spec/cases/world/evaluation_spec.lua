-- Public cases of evaluation: one sum and one count over the whole split, on any ranks. A block of
-- 16 sequences is evaluated by one rank, so a block for each rank gives each its share.

local batch_of = require "marea.batch"
local core = require "marea.core"
local evaluate = require "marea.evaluate"
local marea = require "marea"
local cases = dofile "spec/support/cases.lua"
local training = dofile "spec/support/training.lua"

local check = cases.check
local block_sequences = 16

-- Sequences in blocks of 16, filled up with some that have no target.
local function in_blocks(blocks)
  local list = {}
  for _, block in ipairs(blocks) do
    for i = 1, block_sequences do list[#list + 1] = block[i] or { { 1000 } } end
  end
  return list
end

-- Loss of a validation split after an update, by all worlds of at most `ranks` ranks.
local function each_loss(validation, ranks, settings, body)
  settings = settings or {}
  settings.ranks = 1
  for count = 1, ranks do
    local on = count == 1 and cases.alone() or cases.group(count)
    if on then
      local recipe = training.toy({ { { { 5, 6 } }, { { 7 } }, { { 8 } }, { { 9 } } } },
                                  { validation = validation }, settings)
      local session = cases.session(recipe, on)
      body(evaluate.split(session, "validation"))
    end
  end
end

-- By construction: sums and counts are gathered as they are and added; no mean of either is taken.
-- A mean of integers over ranks is refused (policy).
describe("B01: ranks that saw unequal amounts", function()
  it("a: 12.0 in four and 10.5 in three are 3.214286", function()
    local validation = in_blocks { { { 3 }, { 3 }, { 3, 3 } }, { { 3.5, 3.5, 3.5 } } }
    each_loss(validation, 2, nil, function(result)
      check(22.5 / 7, result.loss, { { 3.75, "the mean of the counts lost its fraction" },
                                     { 3.25, "the mean of the ranks' means" } })
      assert.equal(7, result.tokens)
      assert.equal("integer", math.type(result.tokens))
    end)
  end)

  it("c: the mean of an integer buffer is refused by name, and changes nothing", function()
    for _, dtype in ipairs { "i32", "i64" } do
      local on = cases.group(2) or cases.alone()
      local count = core.from({ 3 + on:rank() }, dtype)
      local message, code = cases.refusal(on.all_reduce, on, count, "mean")
      assert.equal(1, code)
      assert.truthy(message:find("mean", 1, true) and message:find(dtype, 1, true), message)
      assert.equal(3 + on:rank(), count:get(1))
    end
  end)
end)

-- By construction: evaluation asks recipe.loss itself and no window, where K and W are.
describe("B31: evaluation knows neither K nor W", function()
  it("a: 6 in two and 4 in two are 2.5, whatever the accumulation", function()
    for _, accumulation in ipairs { 1, 2, 4 } do
      for _, reduction in ipairs { "mean", "sum" } do
        local settings = { accumulation = accumulation, reduction = reduction,
                           batch_size_per_rank = accumulation }
        for _, validation in ipairs { { { 3, 3 }, { 1, 3 } },
                                      in_blocks { { { 3, 3 } }, { { 1, 3 } } } } do
          each_loss(validation, 2, settings, function(result)
            check(2.5, result.loss, { { 0.625, "divided by K" }, { 5, "times W" },
                                      { 1.25, "divided by W" } })
          end)
        end
      end
    end
  end)

  it("b: two ranks with 6 in three each say 2.0", function()
    each_loss(in_blocks { { { 2, 2, 2 } }, { { 1 }, { 5, 0 } } }, 2, nil, function(result)
      check(2, result.loss, { { 4, "times W" }, { 1, "divided by W" } })
    end)
  end)

  it("c: says the same between the microbatches of a window and after it", function()
    local recipe = training.toy({ { { { 5 } }, { { 7 } } } }, {
      validation = { { 2, 4 } },
      accumulate = function(replica, window)
        replica:zero_grad()
        for i, batch in ipairs(window) do
          local _ <close> = i < #window and replica:no_sync()
          check(3, evaluate.split(window.session, "validation").loss, { { 1.5, "K" } })
          replica:loss(batch, window:weights(batch)):backward()
        end
      end })
    local session = cases.session(recipe, cases.alone())
    check(6, training.run(session):get(1), { { 9, "evaluation in the gradient" } })
    check(3, evaluate.split(session, "validation").loss, {})
  end)
end)

-- By construction: a split is one sum over one count; the perplexity is that loss's exponential.
describe("B46: evaluation does not average batch means, nor score padding", function()
  it("a: 8 in four and 9 in one are 3.4, perplexity 29.9641", function()
    for _, validation in ipairs { { { 2, 2, 2, 2 }, { 9 } }, { { 9 }, { 1, 2 }, { 3, 2 } },
                                  in_blocks { { { 2, 2, 2, 2 } }, { { 9 } } },
                                  in_blocks { { { 9 } }, {}, { { 2, 2 } }, { { 2, 2 } } } } do
      for _, batch_size in ipairs { 1, 2, 16 } do
        for _, layout in ipairs { "packed", "padded" } do
          local settings = { batch_size_per_rank = batch_size, layout = layout }
          each_loss(validation, 4, settings, function(result)
            check(3.4, result.loss, { { 5.5, "the mean of batch means" } })
            check(29.964100, math.exp(result.loss), { { 244.69, "of the mean of means" },
                                                      { 4055.24, "the mean of perplexities" } },
                  1e-6)
          end)
        end
      end
    end
  end)

  it("b: documents of 2 and 4 targets, padded, are 6, and each scores as alone", function()
    local documents = { { 4, 1 }, { 2, 6, 3, 5 } }
    local list = {}
    for i, targets in ipairs(documents) do
      list[i] = { inputs = table.move(targets, 1, #targets - 1, 2, { 0 }), targets = targets,
                  split = i == 3 and "test" or "train" }
    end
    local corpus = marea.corpus.from { sequences = list, vocabulary = 7, pad = 0 }
    local session = cases.session(training.small({ corpus = corpus, steps = { { { { 1, 2 } } } } },
                                                 { dtype = "f64", layout = "padded" }),
                                  cases.alone())
    check(6, session:window(1).tokens, { { 7, "a pad counted" }, { 8, "pads counted" } })
    local function losses(ids, layout)
      local rows = {}
      for i, id in ipairs(ids) do rows[i] = corpus:sequence(id) end
      local made = batch_of.build(corpus, rows, { layout = layout })
      local values, sums = session.recipe.loss(session.model, made):values(), {}
      for s, supervised in ipairs(made.supervised) do
        sums[s] = 0
        for _, row in ipairs(supervised) do sums[s] = sums[s] + values[row] end
      end
      return sums, made.tokens
    end
    local _ <close> = core.no_grad()
    local both, tokens = losses({ 1, 2 }, "padded")
    check(6, tokens, { { 8, "pads counted" } })
    for i = 1, 2 do check(losses({ i }, "packed")[1], both[i], {}, 1e-12) end
  end)
end)
