-- Windows: what they count, what they divide by, what they refuse. Numbers of B02, B11, B14 and B32
-- are those of the public cases.

local core = require "marea.core"
local objective = require "marea.objective"
local Session = require "marea.session"
local Window = require "marea.window"
local numeric = dofile "spec/support/numeric.lua"
local training = dofile "spec/support/training.lua"

local function gradient(ranks, given, overrides)
  return training.play(training.session(training.toy(ranks, given, overrides))):get(1)
end

local function open(ranks, given, overrides)
  return Session.open(training.toy(ranks, given, overrides))
end

-- Three ranks: two microbatches, none, one. Items without a target are in braces.
local uneven = {
  { { { 1, 2, { 9 }, fields = { book = "Ruth", cost = 2 } },
      { 3, fields = { book = "Job", cost = 1 } } },
    { { 4, 5, 6, fields = { book = "Ruth", cost = 3 } } } },
  {},
  { { { { 8 }, { 8 }, fields = { book = "Job", cost = 4 } },
      { 7, fields = { book = "Amos", cost = 5 } } } },
}

describe("a window", function()
  it("knows the sequences and the supervised positions of all ranks, from each", function()
    local session = open(uneven)
    for rank = 0, 2 do
      local window = Window.new(session, 1, rank)
      assert.equal(7, window.tokens)
      assert.same({ 6, 0, 1 }, window.rank_tokens)
      assert.equal(window.rank_tokens[rank + 1], window.my_tokens)
      assert.equal(5, window.sequence_count)
      assert.equal("integer", math.type(window.tokens))
      local seen = {}
      for sequence in window:sequences() do
        seen[#seen + 1] = { sequence.id, sequence.rank, sequence.microbatch, sequence.tokens,
                            sequence.length, sequence.book }
      end
      assert.same({ { 1, 0, 1, 2, 3, "Ruth" }, { 2, 0, 1, 1, 1, "Job" }, { 3, 0, 2, 3, 3, "Ruth" },
                    { 4, 2, 1, 0, 2, "Job" }, { 5, 2, 1, 1, 1, "Amos" } }, seen)
    end
  end)

  it("adds up the supervised positions of a field's value over all ranks", function()
    local window = Window.new(open(uneven), 1, 1)
    assert.equal(5, window:total("book", "Ruth"))
    assert.equal(1, window:total("book", "Job"))
    assert.equal(1, window:total("book", "Amos"))
    assert.equal(3, window:total("cost", 3))
    assert.equal(0, window:total("book", "Joel"))
    local message, code = numeric.refusal(function() window:total("boook", "Ruth") end)
    assert.equal("the sequences have no field \"boook\"; did you mean \"book\"?", message)
    assert.equal(2, code)
  end)

  it("refuses to add up what has no value, naming the sequence that lacks it", function()
    local window = Window.new(open(uneven), 1, 1)
    local function refusal(field)
      local message, code = numeric.refusal(function() window:total(field, nil) end)
      assert.equal(2, code)
      return message
    end
    assert.equal('the sequences have no field "boook"; did you mean "book"?', refusal "boook")
    assert.equal('window:total("book", nil): expected a value of that field, which every ' ..
                 'sequence has', refusal "book")
    window.by_rank[1][1][1] = setmetatable({ id = 1, tokens = 2 }, {})
    assert.equal('sequence 1 has no field "book"', refusal "book")
  end)

  it("holds this rank's microbatches; a rank without any gets one of no sequences", function()
    local session = open(uneven)
    assert.equal(2, #Window.new(session, 1, 0))
    local empty = Window.new(session, 1, 1)
    assert.equal(1, #empty)
    assert.equal(0, empty[1].rows)
    assert.equal(0, empty[1].tokens)
    assert.same({ 0 }, empty:count():weights(empty[1]):shape())
    assert.equal(1, #Window.new(session, 1, 2))
  end)

  it("gives a batch ids, targets, positions, lengths and which rows count", function()
    local batch = Window.new(open(uneven), 1, 0)[1]
    assert.same({ 1, 2, 3, 4 }, batch.ids:values())
    assert.same({ 0, 0, -100, 0 }, batch.targets:values())
    assert.same({ 0, 1, 2, 0 }, batch.positions:values())
    assert.same({ 1, 1, 1, 2 }, batch.sequence_ids:values())
    assert.same({ 3, 1 }, batch.lengths:values())
    assert.same({ 0, 3 }, batch.starts:values())
    assert.same({ { 1, 2 }, { 4 } }, batch.supervised)
    assert.equal(3, batch.tokens)
    assert.equal(4, batch.rows)
    assert.equal(1, batch.update)
    assert.is_nil(Window.new(open(uneven), 1, 0, { training = false })[1].update)
  end)

  it("gives weights of unit over denominator, 0 where there is no target", function()
    local session = open(uneven)
    local window = Window.new(session, 1, 0):count()
    assert.same({ 7 }, window.denominators)
    local s = 1 / 7
    assert.same({ s, s, 0, s }, window:weights(window[1]):values())
    assert.same({ s, s, s }, window:weights(window[2]):values())
    assert.equal("f64", window:weights(window[2]):dtype())
    window.factor = 3
    assert.same({ 3 * s, 3 * s, 3 * s }, window:weights(window[2]):values())
  end)

  it("has the right denominators under each objective", function()
    for name, expected in pairs { global_token = 7, per_sequence = 4, mean_of_means = 2 } do
      for rank = 0, 2 do
        local window = Window.new(open(uneven, {}, { objective = name }), 1, rank):count()
        assert.near(expected, window.denominators[1], 1e-15)
      end
    end
  end)

  it("is read from the padded layout alike", function()
    local session = open(uneven, {}, { layout = "padded" })
    local window = Window.new(session, 1, 0):count()
    assert.equal(6, window[1].rows)
    assert.same({ { 1, 2 }, { 4 } }, window[1].supervised)
    local s = 1 / 7
    assert.same({ s, s, 0, s, 0, 0 }, window:weights(window[1]):values())
  end)

  it("hides targets of one rank where it is told to, and counts what is left", function()
    local session = open { { { { 1, 2, { 9 }, 3, 4 }, { 5, 6 }, { 7 } } }, { { { 8, 9 } } } }
    local window = Window.new(session, 1, 0, { mask_rank = 0 }):count()
    assert.same({ 5, 2 }, window.rank_tokens)
    assert.same({ -100, -100, -100, 0, 0, 0, 0, 0 }, window[1].targets:values())
    assert.same({ { 4, 5 }, { 6, 7 }, { 8 } }, window[1].supervised)
    local s = 1 / 7
    assert.same({ 0, 0, 0, s, s, s, s, s }, window:weights(window[1]):values())
    assert.same({ { 1, 2 } }, Window.new(session, 1, 1, { mask_rank = 0 })[1].supervised)
    assert.equal(4, session.corpus:sequence(1).tokens)
  end)
end)

describe("the count", function()
  it("is of targets after the shift (B02)", function()
    local rows = { { { { 1, 1, 1, 1 }, { { 1 }, 1, 1 } } } }
    assert.equal(6, Window.new(open(rows), 1, 0).tokens)
    assert.near(1, gradient(rows), 1e-15)
  end)

  it("takes no part of a rank without targets (B14)", function()
    assert.near(2, gradient { { { { 1, 2, 3 } } }, {} }, 1e-15)
    assert.near(2, gradient { { { { 1, 2, 3 } } }, { {} } }, 1e-15)
    assert.near(2, gradient { { { { 1, 2, 3 } } }, { { { { 5 } } } } }, 1e-15)
    assert.near(2, gradient({ { { { 1, 2, 3 } } }, { { { { 5 } } } } }, {},
                            { objective = "mean_of_means" }), 1e-15)
  end)

  it("comes before weights, and a window has an end", function()
    local session = open(uneven)
    local window = Window.new(session, 1, 0)
    assert.equal("window:weights was called before the window was counted",
                 (numeric.refusal(function() window:weights(window[1]) end)))
    local message, code = numeric.refusal(function() session:window(2) end)
    assert.same({ "the plan has 1 step, and update 2 was asked for", 2 }, { message, code })
  end)

  it("is refused where no rank has a supervised position (B11)", function()
    for _, ranks in ipairs { { { {} } }, { {}, {} },
                             { { { { { 5 } } } }, { { { { 5 }, { 6 } } } } } } do
      local session = training.session(training.toy(ranks))
      local before = session.model:values():hash()
      local message, code = numeric.refusal(function() session:window(1) end)
      assert.same({ "window 1: no rank has a supervised position, so its loss is not defined", 5 },
                  { message, code })
      assert.equal(before, session.model:values():hash())
      assert.equal(0, session.optimizer:steps())
    end
  end)

  it("agrees with what another plan would count, or is refused with code 6", function()
    local window = Window.new(open(uneven), 1, 0)
    window.rank_tokens = { 6, 1, 1 }
    local other = { size = function() return 3 end, rank = function() return 0 end }
    function other.all_gather()
      return core.from({ 6, 6, 0, 0, 0, 0, 1, 1, 0 }, "f64")
    end
    local message, code = numeric.refusal(function() window:count(other) end)
    assert.same({ "window 1: rank 1 counts 0 tokens where rank 0 expects 1: their plans or " ..
                  "corpora differ", 6 }, { message, code })
  end)
end)

describe("weights", function()
  local function refusal(unit)
    local session = open({ { { { 1, 2 } } }, { { { 3 }, { 4, 5, 6 } } } }, { objective = unit })
    return numeric.refusal(function() session:window(1) end)
  end

  local must = "window 1: the unit of loss must give finite weights of at least 0, got "

  it("that are negative or not finite are refused with code 5, naming sequence and rank", function()
    for text, bad in pairs { ["-1"] = -1, ["inf"] = 1 / 0, ["-inf"] = -1 / 0, nothing = false,
                             ["a string"] = "heavy", ["not a number"] = 0 / 0 } do
      local message, code = refusal(function(sequence)
        if sequence.id == 2 then return bad or nil end
        return 1
      end)
      assert.same({ must .. text .. " for sequence 2 on rank 1", 5 }, { message, code })
    end
  end)

  it("are refused within a list too, and a list of another length", function()
    local message, code = refusal(function(sequence)
      local list = {}
      for i = 1, sequence.tokens do list[i] = i == 3 and -0.5 or 1 end
      return list
    end)
    assert.same({ must .. "-0.5 for sequence 3 on rank 1", 5 }, { message, code })
    message, code = refusal(function() return { 1, 1 } end)
    assert.same({ "window 1: the unit of loss gave 2 weights for sequence 2, which has 1 " ..
                  "supervised positions", 5 }, { message, code })
  end)

  it("that are all zero, or too large to add up, are refused with code 5", function()
    local message, code = refusal(function() return 0 end)
    assert.same({ "window 1: the weights of loss are zero for all 6 supervised positions", 5 },
                { message, code })
    message, code = refusal(function() return 1e308 end)
    assert.same({ "window 1: the weights of loss add up to no finite number for all 6 " ..
                  "supervised positions", 5 }, { message, code })
  end)

  it("may be zero in places", function()
    local ranks = { { { { 1, 2 } } }, { { { 30 }, { 4, 5, 6 } } } }
    local unit = function(sequence) return sequence.tokens == 1 and 0 or 1 end
    assert.near(18 / 5, gradient(ranks, { objective = unit }), 1e-15)
  end)
end)

describe("a tensor that is kept from a window", function()
  it("is said to be released when it is used later", function()
    local batch_of = require "marea.batch"
    local kept = core.ones { 2 }
    batch_of.end_tensor(kept)
    for says, use in pairs {
      ["was released: batches and weights last until their window ends"] = kept.values,
      ["b must be a tensor, got tensor<released>"] = function() core.ones({ 2 }):add(kept) end,
    } do
      local good, raised = pcall(use, kept)
      assert.is_false(good)
      assert.truthy(tostring(raised):find(says, 1, true), tostring(raised))
    end
  end)
end)

describe("the loss that is reported", function()
  -- B32: S of rank 0 is 1 and 4, of rank 1 is 6 and 20; n is 1, 1 and 2, 4.
  local ranks = { { { { 1 } }, { { 4 } } }, { { { 2, 4 } }, { { 5, 5, 5, 5, { 1000 } } } } }

  it("is that of all supervised positions of the window, unweighted (B32)", function()
    for _, name in ipairs { "global_token", "mean_of_means", "per_sequence" } do
      for _, layout in ipairs { "packed", "padded" } do
        local config = { objective = name, layout = layout }
        local session = training.session(training.toy(ranks, {}, config))
        session.statistics = {}
        training.play(session)
        assert.near(31 / 8, session.statistics.loss_sum / 8, 1e-15)
      end
    end
  end)

  it("is no other objective's", function()
    assert.near(31 / 8, gradient(ranks), 1e-15)
    assert.near((2.5 + 26 / 6) / 2, gradient(ranks, { objective = objective.mean_of_means }), 1e-15)
  end)
end)
