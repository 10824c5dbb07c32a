-- Public cases of normalisation: what is divided by what. Each window is run by as many ranks as
-- it has where this world has them, and played by one process everywhere.

local marea = require "marea"
local objective = require "marea.objective"
local cases = dofile "spec/support/cases.lua"
local scratch = dofile "spec/support/scratch.lua"
local training = dofile "spec/support/training.lua"

local expect, check = cases.expect, cases.check

-- A corpus of rows of tokens, as a user has them in a file.
local function rows_of_tokens(lines, options)
  local folder <close> = scratch.folder()
  for i, line in ipairs(lines) do lines[i] = ('{"split": "train", %s}\n'):format(line) end
  scratch.write(folder.path .. "/rows.jsonl", table.concat(lines))
  local given = { path = folder.path .. "/rows.jsonl", vocabulary = 10 }
  for key, value in pairs(options or {}) do given[key] = value end
  return marea.corpus.jsonl(given)
end

local function tokens_of(corpus)
  local tokens = 0
  for _, row in ipairs(corpus:rows()) do tokens = tokens + row.tokens end
  return tokens
end

-- By construction: positions exist after the shift only, and what counts is their targets.
describe("B02: targets are counted after the shift", function()
  local function corpus_of(options)
    return rows_of_tokens({ '"tokens": [5, 6, 7, 8, 9], "labels": [5, 6, 7, 8, 9]',
                            '"tokens": [1, 2, 3, 4], "labels": [-100, -100, 3, 4]' }, options)
  end

  it("N is 6 and the loss 1, not 7 and 0.857143, nor 5 and 1.2", function()
    local corpus = corpus_of()
    check(6, tokens_of(corpus), { { 7, "unshifted labels" }, { 5, "one off every row" } })
    expect { right = 1, never = { { 6 / 7, "unshifted labels" }, { 1.2, "one off every row" } },
             ranks = { { { { 1, 1, 1, 1, 1, 1, 1, 1, 1 } } } },
             given = { corpus = corpus, steps = { { { { 1, 2 } } } } } }
  end)

  it("a symbol in front gives the first label a position, and it counts then", function()
    assert.equal(5 + 2, tokens_of(corpus_of { begin = 0 }))
  end)
end)

-- By construction: each term has a denominator of its own in the count, and the factor W is undone
-- for all of them in one place.
describe("B05: terms with denominators of their own", function()
  local main = { { 1, 1 }, { 2, 2 }, { 2, 3 }, { 2, 3 } } -- S = 16, N = 8

  -- A window of main items and an auxiliary value for each microbatch.
  local function two_terms(values, items)
    local ranks = {}
    for r, list in ipairs(values) do
      ranks[r] = {}
      for m, value in ipairs(list) do
        local sequence = items and table.move(items[m], 1, 2, 1, {}) or { 0 }
        sequence.fields = { auxiliary = value }
        ranks[r][m] = { sequence }
      end
    end
    return ranks
  end
  local given = {
    objective = { { name = "main", unit = objective.global_token },
                  { name = "auxiliary", unit = "microbatch", coefficient = 0.1 } },
    loss = function(model, batch)
      local value = batch.sequences[1] and batch.sequences[1].auxiliary or 7
      return { main = model(batch), auxiliary = model.w:scale(value) }
    end,
  }
  local first, second = { 0.2, 0.4, 0.6, 0.8 }, { 0.4, 0.6, 0.8, 1.0 }

  it("a: the main term is 2, not divided by K again", function()
    expect { right = 2, never = { { 0.5, "divided by K again" } },
             ranks = { { { main[1] }, { main[2] }, { main[3] }, { main[4] } } } }
  end)

  it("b: the auxiliary term is 0.05, divided by K", function()
    expect { right = 0.05, never = { { 0.2, "not divided by K" } },
             ranks = two_terms { first }, given = given }
  end)

  it("c: on two ranks it is 0.06, without the factor that the mean over ranks needs", function()
    expect { right = 0.06, never = { { 0.12, "given the factor W" }, { 0.24, "not divided by K" } },
             ranks = two_terms { first, second }, given = given }
    expect { right = 0.06, never = { { 0.08, "the mean of the ranks' means" } },
             ranks = two_terms { { 0.2 }, { 0.4, 0.6, 0.8, 0.4, 0.6, 0.8, 1.0 } }, given = given }
  end)

  it("both together are both", function()
    expect { right = 2.05, never = { { 2.2, "auxiliary not divided" }, { 0.55, "main by K" },
                                     { 0.5125, "both by K" } },
             ranks = two_terms({ first }, main), given = given }
  end)
end)

-- By a refusal, which all ranks give before any backward (policy).
describe("B11: a window without a target", function()
  local masked = { { { { { 5 } } }, { { { 6 } } } }, { { { { 7 }, { 8 } } }, { { { 9 } } } } }
  local good = { { { { 1, 2 } } }, { { { 3, 4 } } } } -- S = 10, N = 4

  local function recipe()
    return training.toys({ masked, good }, {
      optimizer = function(model, c)
        return marea.optim.AdamW(model, { lr = c.lr, decay = 0.1, decay_all = true })
      end })
  end

  it("is refused: w stays 1, the step counter 0, and nothing is NaN", function()
    for _, on in ipairs { cases.alone(), cases.group(2) } do
      local session = cases.session(recipe(), on)
      local trainer = require("marea.trainer").new(session)
      local message, code = cases.refusal(trainer.advance, trainer)
      assert.equal("window 1: no rank has a supervised position, so its loss is not defined",
                   message)
      assert.equal(5, code)
      check(1, session.model:values():get(1), { { 0.99, "an update by decay alone" } })
      assert.same({ 0, 0 }, { session.optimizer:steps(), trainer.update })
      assert.equal(0, session.model:gradients():total())
    end
  end)

  it("leaves no trace in the next one, whose gradient is 2.5", function()
    local group = cases.group(2)
    if not group then return end
    local touched, fresh = cases.session(recipe(), group), cases.session(recipe(), group)
    cases.refusal(touched.window, touched, 1)
    for _, session in ipairs { touched, fresh } do
      check(2.5, training.run(session, 2):get(1), {})
      session.optimizer:step()
    end
    assert.equal(1, touched.optimizer:steps())
    assert.equal(fresh.model:values():hash(), touched.model:values():hash())
    for name, state in pairs(fresh.optimizer:state()) do
      assert.equal(state:hash(), touched.optimizer:state()[name]:hash())
    end
  end)
end)

-- By construction: a rank without targets adds 0 to sum and count, and divides by neither.
describe("B14: a rank without a target", function()
  local wrong = { { 1, "the mean of 2 and 0" }, { 11 / 3, "its count raised to 1" } }
  local good = { { { 1, 2, 3 } } }

  for _, case in ipairs { { "a: no microbatch", {} }, { "a: an empty microbatch", { {} } },
                          { "b: a placeholder of loss 5", { { { { 5 } } } } } } do
    it(case[1] .. " there leaves the gradient at 2, under every unit", function()
      for _, unit in ipairs { "global_token", "mean_of_means", "per_sequence" } do
        for _, ranks in ipairs { { good, case[2] }, { case[2], good } } do
          expect { right = 2, never = wrong, ranks = ranks, config = { objective = unit } }
        end
      end
    end)
  end
end)

-- By construction: a unit is asked for each sequence of the corpus; rows of a tensor have no say.
describe("B17: a sequence is a sequence however it is packed", function()
  local a, b, c = { 1, 1, 1 }, { 5 }, { 4, 4 }
  local packings = { { { { a, b }, { c } } }, { { { a }, { b }, { c } } }, { { { a, b, c } } },
                     { { { a, b } }, { { c } } }, { { { c } }, {}, { { b }, { a } } } }

  it("per sequence 3.333333, not 3.0", function()
    for _, ranks in ipairs(packings) do
      expect { right = 10 / 3, never = { { 3, "per row" } }, ranks = ranks,
               config = { objective = "per_sequence" } }
    end
  end)

  it("per token 2.666667", function()
    for _, ranks in ipairs(packings) do
      expect { right = 16 / 6, never = { { 3, "per row" } }, ranks = ranks }
    end
  end)
end)

-- By construction: microbatches have no weight of their own in a unit of positions or sequences. A
-- mean over sequences is over those that have a target (policy).
describe("B38: a microbatch weighs what is in it", function()
  it("a: per token 1.0, whatever the number of its samples", function()
    local one, three = { { 3, 3 } }, { { 0.5, 0.5, 0.5 }, { 0.5, 0.5, 0.5 }, { 0.5, 0.5 } }
    for _, ranks in ipairs { { { one, three } }, { { one }, { three } } } do
      expect { right = 1, ranks = ranks, never = { { 1.75, "equal weights" },
                                                   { 1.125, "weights by samples" } } }
    end
  end)

  it("b: per sequence 4.0, over those that have a target, on any ranks", function()
    local two, four, six, none = { 2, 2 }, { 4 }, { 6, 6, 6 }, { { 100 }, { 100 } }
    for _, ranks in ipairs {
      { { { two }, { four }, { six }, { none } } },
      { { { two }, { four } }, { { six }, { none } } },
      { { { two } }, { { four } }, { { six } }, { { none } } },
    } do
      expect { right = 4, never = { { 3, "an empty one counted" } }, ranks = ranks,
               config = { objective = "per_sequence" } }
    end
  end)
end)

-- By construction: the factor W is in window:weights once, and is the size of the group that
-- reduces.
describe("B48: the factor that undoes the mean over ranks", function()
  local ranks = { { { { 1 } } }, { { { 3, 3, 3 } } }, { { { 1, 3 } } }, { { { 2, 0 } } } }

  it("makes 2.0 of sums over tokens, and 1.75 of the ranks' means", function()
    local wrong = { { 0.5, "no factor" }, { 7, "the factor on local means" },
                    { 1, "the factor of half the ranks" } }
    expect { right = 2, never = wrong, ranks = ranks }
    expect { right = 1.75, never = wrong, ranks = ranks, config = { objective = "mean_of_means" } }
  end)

  it("is that of the group which reduces, where that is a part of the world", function()
    local group = cases.group(2)
    if not group then return end
    local session = cases.session(training.toy { ranks[1], ranks[2] }, group)
    assert.equal(2, session:window(1).factor)
    check(10 / 4, training.run(session):get(1), { { 5, "the factor of twice the ranks" } })
  end)
end)

-- By construction: the corpus shifts once, the loss never; labels that were shifted are refused.
describe("B52: targets are shifted once", function()
  local function pairs_of(corpus)
    local list = {}
    for _, row in ipairs(corpus:rows()) do
      local inputs, targets = corpus:inputs(row.id), corpus:targets(row.id)
      for i, input in ipairs(inputs) do list[#list + 1] = input .. ">" .. targets[i] end
    end
    return table.concat(list, " ")
  end

  it("gives 1>2 2>3 3>4 5>6 6>7 7>8, six of them", function()
    local corpus = rows_of_tokens { '"tokens": [1, 2, 3, 4]', '"tokens": [5, 6, 7, 8]' }
    assert.are_not.equal("1>3 2>4 3>6 5>7 6>8", pairs_of(corpus))
    assert.equal("1>2 2>3 3>4 5>6 6>7 7>8", pairs_of(corpus))
    check(6, tokens_of(corpus), { { 5, "shifted twice" } })
    local batch = corpus:gather { 1, 2 }
    assert.same({ 1, 2, 3, 5, 6, 7 }, batch.ids:values())
    assert.same({ 2, 3, 4, 6, 7, 8 }, batch.targets:values())
  end)

  it("refuses labels that were shifted already, naming row and label", function()
    local message, code = cases.refusal(rows_of_tokens,
      { '"tokens": [1, 2, 3, 4], "labels": [2, 3, 4, -100]' })
    assert.equal(2, code)
    assert.truthy(message:find("labels[1] is 2 where tokens[1] is 1", 1, true), message)
  end)

  it("a loss that shifts as well is seen by its shape", function()
    local session = cases.session(training.toy({ { { { 1, 2, 3 } } } }, {
      loss = function(model, batch) return model(batch):slice(2, batch.rows - 1) end,
    }), cases.alone())
    local message = cases.refusal(training.run, session)
    assert.truthy(message:find("recipe.loss must have shape [3] (one loss per position), got [2]",
                               1, true), message)
    assert.equal(0, session.model:gradients():total())
  end)
end)
