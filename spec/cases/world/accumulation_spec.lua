-- Public cases of accumulation: windows that are short, clipping, no_sync, the number of
-- microbatches of a global batch.

local config = require "marea.config"
local core = require "marea.core"
local marea = require "marea"
local plan_of = require "marea.plan"
local trainer_of = require "marea.trainer"
local cases = dofile "spec/support/cases.lua"
local loops = dofile "spec/support/loops.lua"
local training = dofile "spec/support/training.lua"

local check = cases.check

-- A toy of as many items as are given, each a sequence of its own, that a sampler plans.
local function sampled(items, settings, last)
  local microbatches = {}
  for i, x in ipairs(items) do microbatches[i] = { { x } } end
  settings.batch_size_per_rank = settings.batch_size_per_rank or 1
  return training.toy({ microbatches }, {
    plan = function(rows, c) return marea.sampler.shuffled(rows, c, { last = last }) end,
  }, settings)
end

local function repeated(x, count)
  local list = {}
  for i = 1, count do list[i] = x end
  return list
end

-- Gradient and number of microbatches, of all ranks, of each update.
local function updates_of(recipe, on)
  local session = cases.session(recipe, on)
  local trainer, gradients, sizes = trainer_of.new(session), {}, {}
  for update = 1, recipe.config.updates do
    gradients[update] = trainer:advance().grad_norm
    sizes[update] = 0
    for _, microbatches in ipairs(session.plan[update]) do
      sizes[update] = sizes[update] + #microbatches
    end
  end
  return gradients, sizes, trainer
end

local function check_all(right, found, never)
  assert.equal(#right, #found)
  for i, expected in ipairs(right) do check(expected, found[i], never) end
end

-- By construction: a window divides by what it holds, and windows never reach into the next epoch.
describe("B13: the last window of an epoch is short", function()
  it("a: ten microbatches in fours make updates of 3, 3, 3", function()
    local found, sizes = updates_of(sampled(repeated(3, 10), { accumulation = 4, updates = 3 }),
                                    cases.alone())
    check_all({ 3, 3, 3 }, found, { { 1.5, "divided by the full K" } })
    assert.same({ 4, 4, 2 }, sizes)
  end)

  it("b: three microbatches make one update of 3", function()
    local found, sizes, trainer = updates_of(
      sampled(repeated(3, 3), { accumulation = 4, updates = 1 }), cases.alone())
    check_all({ 3 }, found, { { 2.25, "divided by the full K" }, { 0, "no update" } })
    assert.same({ 3 }, sizes)
    assert.equal(1, trainer.session.optimizer:steps())
  end)

  it("c: two epochs of seven make updates of 3, 3, 3, 3, in windows of 4, 3, 4, 3", function()
    local found, sizes, trainer = updates_of(
      sampled(repeated(3, 7), { accumulation = 4, updates = 4 }), cases.alone())
    check_all({ 3, 3, 3, 3 }, found, { { 5.25, "the rest of an epoch leaked into the next" },
                                       { 2.25, "divided by the full K" } })
    assert.same({ 4, 3, 4, 3 }, sizes)
    assert.same({ 14 }, trainer.microbatches)
  end)

  it("on two ranks the items that are left go to both, or to one", function()
    local group = cases.group(2)
    if not group then return end
    for left = 1, 7 do
      local found, sizes = updates_of(
        sampled(repeated(3, 8 + left), { ranks = 2, accumulation = 4, updates = 2 }), group)
      check_all({ 3, 3 }, found, { { 1.5, "the mean with a rank that has none" } })
      assert.same({ 8, left }, sizes)
    end
  end)

  it("last = 'drop' leaves it out, and says what does not fill one window", function()
    local found, sizes = updates_of(
      sampled(repeated(3, 10), { accumulation = 4, updates = 4 }, "drop"), cases.alone())
    check_all({ 3, 3, 3, 3 }, found, { { 1.5, "divided by the full K" } })
    assert.same({ 4, 4, 4, 4 }, sizes)
    local message, code = cases.refusal(cases.session,
      sampled(repeated(3, 3), { accumulation = 4, updates = 1 }, "drop"), cases.alone())
    assert.equal(2, code)
    assert.truthy(message:find("do not fill one window", 1, true), message)
  end)
end)

-- Two parameters (w1, w2); a sequence's loss is its point . w.
local Plane = marea.nn.class "spec.Plane"

function Plane:init(points)
  self.points = points
  self:parameter("w", { 1, 2 }, { value = 1 })
end

function Plane:forward(batch)
  local rows = {}
  for _, id in ipairs(batch.ids:values()) do
    table.move(self.points[id + 1], 1, 2, #rows + 1, rows)
  end
  return core.from(rows, "f64", { #rows // 2, 2 }):linear(self.w):reshape { #rows // 2 }
end

-- By construction: accumulate ends before the norm is taken, and it is clipped once, in the step.
describe("B33: clipping", function()
  -- The gradient that an update steps with, and the norm that it reports.
  local function clipped(points, counts, limit, on)
    local sequences = {}
    for i = 1, #points do
      sequences[i] = { inputs = { i - 1 }, targets = { 0 }, split = "train" }
    end
    local session = cases.session(training.recipe({
      corpus = marea.corpus.from { sequences = sequences, vocabulary = #points },
      steps = training.dealt(counts), model = function() return Plane(points) end,
      loss = function(model, batch) return model(batch) end,
    }, { dtype = "f64", clip_norm = limit, lr = 1 }), on)
    local norm = trainer_of.new(session):advance().grad_norm
    local values = session.model.w:values()
    return { 1 - values[1], 1 - values[2] }, norm -- lr is 1
  end
  local close = 1e-6 -- the clip adds this much to the norm that it divides by

  it("a: of the window, not of each microbatch: (0.6, 0.8)", function()
    local gradient, norm = clipped({ { 6, 0 }, { 0, 8 } }, { { 1, 1 } }, 1, cases.alone())
    check(5, norm, { { 7, "norms of microbatches" } })
    check(0.6, gradient[1], { { 0.242536, "each microbatch clipped" } }, close)
    check(0.8, gradient[2], { { 0.970143, "each microbatch clipped" } }, close)
  end)

  it("b: after the ranks are reduced: (0.6, 0.8), norm 2.5", function()
    local group = cases.group(2)
    if not group then return end
    local gradient, norm = clipped({ { 3, 0 }, { 0, 4 } }, { { 1 }, { 1 } }, 1, group)
    check(2.5, norm, { { 3, "rank 0's own norm" }, { 4, "rank 1's own norm" } })
    check(0.6, gradient[1], { { 0.5, "clipped before the reduction" } }, close)
    check(0.8, gradient[2], { { 0.5, "clipped before the reduction" } }, close)
  end)

  it("c: reports 10 and applies the scale: (3, 4)", function()
    local gradient, norm = clipped({ { 6, 8 } }, { { 1 } }, 5, cases.alone())
    check(10, norm, { { 5, "the norm after clipping" } })
    check(3, gradient[1], { { 6, "the scale was never applied" } }, 10 * close)
    check(4, gradient[2], { { 8, "the scale was never applied" } }, 10 * close)
  end)
end)

-- By a refusal: a backward belongs into the scope of its forward, a window is reduced once, and a
-- step needs gradients that were reduced.
describe("B34: where no_sync is put", function()
  local ranks = { { { { 1 } }, { { 2 } }, { { 3 } } }, { { { 5 } }, { { 7 } }, { { 9 } } } }
  local wrong = { { 9, "summed again each time" }, { 2, "rank 0 was never reduced" },
                  { 7, "rank 1 was never reduced" } }

  local function session_of(accumulate)
    local group = cases.group(2)
    return group and cases.session(training.toy(ranks, { accumulate = accumulate }), group), group
  end

  it("round forward and backward: 4.5 with one reduction a window", function()
    cases.expect { right = 4.5, never = wrong, ranks = ranks, given = { accumulate = loops.right } }
    local session, group = session_of(loops.right)
    if not session then return end
    local before = group:ledger().all_reduce.calls
    check(4.5, training.run(session):get(1), wrong)
    check(1, group:ledger().all_reduce.calls - before, { { 3, "a reduction each time" } })
  end)

  -- Each loop puts the scope elsewhere; `says` is what it is told.
  local function placed(forward, backward)
    return function(replica, window)
      replica:zero_grad()
      for i, batch in ipairs(window) do
        local loss
        do
          local _ <close> = forward(i, #window) and replica:no_sync()
          loss = replica:loss(batch, window:weights(batch))
        end
        local _ <close> = backward(i, #window) and replica:no_sync()
        loss:backward()
      end
    end
  end
  local function always() return true end
  local function never() return false end
  local function not_last(i, count) return i < count end

  for _, case in ipairs {
    { "round the backward only", placed(never, not_last),
      "the forward of this loss ran outside no_sync and its backward runs inside" },
    { "round the forward only", placed(not_last, never),
      "the forward of this loss ran inside no_sync and its backward runs outside" },
    { "round each of them, in scopes of their own", placed(not_last, not_last),
      "the forward of this loss ran inside no_sync and its backward runs inside another" },
    { "nowhere", placed(never, never), "already reduced" },
    { "round the last one too", function(replica, window)
      replica:zero_grad()
      local _ <close> = always() and replica:no_sync()
      for _, batch in ipairs(window) do
        replica:loss(batch, window:weights(batch)):backward()
      end
    end, "gradients that were never reduced over the ranks" },
  } do
    local name, accumulate, says = table.unpack(case)
    it(name .. ": refused, and nobody steps", function()
      local session = session_of(accumulate)
      if not session then return end
      local trainer = trainer_of.new(session)
      local message, code = cases.refusal(trainer.advance, trainer)
      assert.equal(1, code)
      assert.truthy(message:find(says, 1, true), message)
      check(1, session.model:values():get(1), {})
    end)
  end
end)

-- By construction: K is derived from the sequences of a window over all ranks, and nothing is
-- rounded (policy).
describe("B49: microbatches of a global batch", function()
  local function resolved(...)
    return config.resolve { overrides = { ... }, world_size = 4 }
  end

  it("16 sequences in twos on four ranks are K = 2", function()
    check(2, resolved("global_batch_size=16", "batch_size_per_rank=2").accumulation,
          { { 4, "the ranks of one node" }, { 8, "no ranks at all" } })
    local plan = marea.sampler.shuffled(
      training.sequences(60):rows("train"),
      (resolved("global_batch_size=16", "batch_size_per_rank=2", "updates=3")))
    for step = 1, 3 do
      local sequences = 0
      for rank = 0, 3 do
        for _, ids in ipairs(plan_of.microbatches(plan, step, rank)) do
          sequences = sequences + #ids
        end
      end
      check(16, sequences, { { 32, "twice what was asked" } })
    end
  end)

  it("a plan of one's own that holds more in a window is refused, naming the step", function()
    local windows = { { { { { 1 }, { 2 } } } }, { { { { 3 }, { 4 } }, { { 5 } } } } }
    local message, code = cases.refusal(cases.session,
      training.toys(windows, {}, { global_batch_size = 2, batch_size_per_rank = 2 }),
      cases.alone())
    assert.equal("plan: step 2: expected at most 2 sequences (config.global_batch_size), got 3",
                 message)
    assert.equal(2, code)
  end)

  it("three ranks, or 15 sequences, are refused before anything is made", function()
    for _, words in ipairs { { "global_batch_size=16", "ranks=3" }, { "global_batch_size=15" } } do
      local message, code = cases.refusal(resolved, "batch_size_per_rank=2",
                                          table.unpack(words))
      assert.equal(2, code)
      assert.truthy(message:find("config.global_batch_size must be a multiple of ranks x " ..
                                 "batch_size_per_rank = ", 1, true), message)
    end
  end)
end)
