-- Parity on the ranks of this world refutes loops that are wrong, and says by how much and where.

local core = require "marea.core"
local marea = require "marea"
local parity = require "marea.parity"
local numeric = dofile "spec/support/numeric.lua"
local loops = dofile "spec/support/loops.lua"
local training = dofile "spec/support/training.lua"

local world = require("marea.world").get()
local size = world:size()

-- Five microbatches on every rank, longer ones on higher ranks.
local function plan()
  local counts = {}
  for r = 1, size do counts[r] = { 1, 2, 1, r, 1 } end
  return training.dealt(counts)
end

-- The report on a loop, on rank 0.
local function report_of(accumulate, overrides, given)
  local whole = { steps = plan(), accumulate = accumulate }
  for key, value in pairs(given or {}) do whole[key] = value end
  return parity.run(training.small(whole, overrides))
end

local function assert_refuted(report)
  if not report then return end
  assert.is_true(report.f64.failing > 0)
  assert.is_false(report.pass)
end

local function assert_factor(report, value, name)
  assert_refuted(report)
  if not report then return end
  assert.near(value, report.factor.value, 1e-9 * value)
  assert.equal(name, report.factor.name)
end

describe("parity refutes a loop that", function()
  it("divides once more by the number of microbatches, and names the factor", function()
    assert_factor(report_of(loops.divides_again), 1 / 5, "1/accumulation (5 microbatches)")
  end)

  it("leaves out the factor W, and names it", function()
    if size == 1 then return pending "one rank has no factor" end
    local name = ("1/W (W = %d)"):format(size)
    assert_factor(report_of(loops.no_factor), 1 / size, name)
    assert_factor(report_of(function(replica, window)
      window.factor = window.factor * window.ranks
      loops.right(replica, window)
    end), size, ("W (W = %d)"):format(size))
  end)

  it("does both, and a factor that has two names is given both", function()
    if size == 1 then return pending "one rank has no factor" end
    local counts = {}
    for r = 1, size do counts[r] = {} end
    for _, list in ipairs(counts) do
      for m = 1, size do list[m] = m end -- as many microbatches as ranks
    end
    assert_factor(report_of(loops.no_factor, {}, { steps = training.dealt(counts) }), 1 / size,
                  ("1/W (W = %d) or 1/accumulation (%d microbatches)"):format(size, size))
  end)

  it("averages over tokens where sequences were declared", function()
    local report = report_of(loops.by_token, { objective = "per_sequence" })
    assert_refuted(report)
    if report then assert.is_nil(report.factor) end
    report = report_of(loops.by_token)
    if report then assert.is_true(report.f64.failing == 0) end
  end)

  it("counts positions that have no target: one factor without a name", function()
    local report = report_of(loops.by_rows)
    assert_refuted(report)
    if not report then return end
    assert.is_nil(report.factor.name)
    assert.is_true(report.factor.value < 1)
  end)

  it("averages each microbatch, or each rank, by itself", function()
    for _, own in ipairs { "batch", "rank" } do
      assert_refuted(report_of(function(replica, window)
        replica:zero_grad()
        for i, batch in ipairs(window) do
          local _ <close> = i < #window and replica:no_sync()
          local weights = window:weights(batch)
          local tokens = own == "batch" and batch.tokens * #window or window.my_tokens
          weights:scale_(window.denominators[1] / window.factor / tokens)
          replica:loss(batch, weights):backward()
        end
      end, {}, { steps = size == 1 and training.dealt { { 1, 3, 2 } } or nil }))
      if size == 1 then break end -- a rank's mean is the mean
    end
  end)

  it("miscounts one of 20,000 tokens: f32 cannot see it, f64 does", function()
    if size ~= 2 then return pending "needs two ranks" end
    local stream, list = core.stream(3, 1), {}
    for i = 1, 1250 do
      list[i] = { inputs = {}, targets = {}, split = "train" }
      for j = 1, 16 do
        list[i].inputs[j], list[i].targets[j] = stream:integer(7) - 1, stream:integer(7) - 1
      end
    end
    local corpus = marea.corpus.from { sequences = list, vocabulary = 7 }
    local counts = { { 400, 200 }, { 650 } }
    local right = report_of(loops.right, {}, { corpus = corpus, steps = training.dealt(counts) })
    local wrong = report_of(loops.miscounts, {},
                            { corpus = corpus, steps = training.dealt(counts) })
    if not right then return end
    assert.same({ 20000, 0, 0 }, { right.window.tokens, right.f32.failing, right.f64.failing })
    assert.equal(0, wrong.f32.failing)
    assert_factor(wrong, 20000 / 20001)
    assert.is_true(wrong.f64.failing > 1000)
  end)

  it("moves one component by 2e-6 where the reference is 0: found, with its name", function()
    -- no sequence is as long as the context, so the last positions have no gradient
    local report = report_of(loops.moved("position.weight", 16 * 15 + 3, 2e-6))
    assert_refuted(report)
    if not report then return end
    for _, dtype in ipairs { "f32", "f64" } do
      assert.equal(1, report[dtype].failing)
      assert.equal("position.weight", report[dtype].worst.parameter)
      assert.equal(16 * 15 + 3, report[dtype].worst.index)
      assert.near(2e-6, report[dtype].worst.values[1], 1e-12)
      assert.equal(0, report[dtype].worst.values[2])
      assert.near(2e-6, report[dtype].max_abs, 1e-12)
    end
    assert.is_nil(report.factor)
  end)

  it("leaves another gradient on one rank than on the others", function()
    if size == 1 then return pending "one rank is all" end
    local report = report_of(loops.moved("embedding.weight", 5, 1e-13, size - 1))
    if not report then return end
    assert.same({ 0, 0 }, { report.f32.failing, report.f64.failing })
    assert.is_false(report.equal_on_all_ranks)
    assert.is_false(report.pass)
  end)

  it("makes something that is no number: refused by all ranks alike", function()
    local message, code = numeric.refusal(report_of, loops.moved("embedding.weight", 5, 0 / 0))
    assert.equal(5, code)
    assert.is_truthy(message:find("window 1: the gradient is not finite", 1, true), message)
  end)

  it("averages each rank's own mean, and names the objective that it computes", function()
    if size == 1 then return pending "one rank's own mean is the mean" end
    local function own_means(replica, window)
      replica:zero_grad()
      for i, batch in ipairs(window) do
        local _ <close> = i < #window and replica:no_sync()
        local losses = marea.nn.cross_entropy(replica(batch), batch.targets)
        replica.reducer:attach(losses:sum():scale(1 / window.my_tokens)):backward()
      end
    end
    local report = report_of(own_means)
    assert_refuted(report)
    if not report then return end
    assert.equal("mean_of_means", report.equals.objective)
    assert.equal(1, report.equals.factor)
    assert.is_false(report.uses_weights)
    for _, control in ipairs(report.controls) do
      if control.weighting then
        assert.is_false(control.told_apart)
        assert.equal("the loop does not take its weights from window:weights", control.reason)
      end
    end
  end)
end)

describe("parity refutes what is right for one window only:", function()
  local function other_window()
    local counts = {}
    for r = 1, size do counts[r] = { 2, r } end
    return training.dealt(counts)[1]
  end

  local function assert_unsteady(report)
    if not report then return end
    assert.same({ 0, 0 }, { report.f32.failing, report.f64.failing })
    assert.is_false(report.pass)
    return report.steady
  end

  it("a loop that keeps the first window's count", function()
    local first
    local report = report_of(function(replica, window)
      first = first or window.denominators[1]
      replica:zero_grad()
      for i, batch in ipairs(window) do
        local _ <close> = i < #window and replica:no_sync()
        local weights = window:weights(batch):scale_(window.denominators[1] / first)
        replica:loss(batch, weights):backward()
      end
    end, {}, { steps = { plan()[1], other_window() } })
    local steady = assert_unsteady(report)
    if steady then
      assert.is_true(steady.repeats)
      assert.equal(2, steady.next.step)
      assert.is_true(steady.next.failing > 0)
    end
  end)

  it("a loop that counts its calls", function()
    local calls = 0
    local report = report_of(function(replica, window)
      calls = calls + 1
      replica:zero_grad()
      for i, batch in ipairs(window) do
        local _ <close> = i < #window and replica:no_sync()
        local loss = replica:loss(batch, window:weights(batch))
        loss:scale(calls > 2 and 0.5 or 1):backward()
      end
    end)
    local steady = assert_unsteady(report)
    if steady then assert.is_false(steady.repeats) end
  end)

  it("losses that are averaged in their microbatch", function()
    local report = report_of(nil, {}, { loss = function(model, batch)
      local losses = marea.nn.cross_entropy(model(batch), batch.targets)
      return losses:scale(1 / math.max(1, batch.tokens))
    end })
    local steady = assert_unsteady(report)
    if steady then assert.equal("number", type(steady.depends_on_microbatch)) end
  end)

  it("and refuses a loop that changes parameters", function()
    local message, code = numeric.refusal(report_of, function(replica, window)
      replica:zero_grad()
      for i, batch in ipairs(window) do
        local _ <close> = i < #window and replica:no_sync()
        replica:loss(batch, window:weights(batch)):backward()
      end
      replica:values():add_scaled_(0.5, replica:gradients())
    end)
    assert.equal(1, code)
    assert.is_truthy(message:find("accumulate changed the model's parameters", 1, true), message)
  end)
end)

describe("parity refutes a loop by hand that", function()
  local function by_hand(without, optimizer)
    return report_of(loops.by_hand(world, without), {}, {
      replicate = false,
      optimizer = optimizer or function(model, c)
        world:broadcast(model:values(), 0)
        return marea.optim.SGD(model, { lr = c.lr })
      end,
    })
  end

  it("forgets zero_grad", function() assert_refuted(by_hand { zero_grad = true }) end)

  it("hides from a control: what could not be broken was not proved", function()
    local report = report_of(function(model, window)
      model.unit:zero_grad() -- where no control reaches
      loops.by_hand(world, { zero_grad = true })(model, window)
    end, {}, { replicate = false, optimizer = function(model, c)
      world:broadcast(model:values(), 0)
      return marea.optim.SGD(model, { lr = c.lr })
    end })
    if not report then return end
    assert.same({ 0, 0 }, { report.f32.failing, report.f64.failing })
    for _, entry in ipairs(report.controls) do
      assert.equal(entry.told_apart and entry.name ~= "forgotten_zero_grad", entry.detected)
    end
    assert.is_false(report.controls_pass)
    assert.is_false(report.pass)
  end)

  it("does not divide by W", function()
    if size == 1 then return pending "one rank divides by 1" end
    assert_factor(by_hand { scale = true }, size, ("W (W = %d)"):format(size))
  end)

  it("does not broadcast the parameters: the ranks began with different ones", function()
    if size == 1 then return pending "one rank has nobody to send to" end
    local report = by_hand({}, function(model, c) return marea.optim.SGD(model, { lr = c.lr }) end)
    assert_refuted(report)
    if report then assert.is_false(report.begun_equal) end
  end)

  it("never reduces: it is stopped, with the number", function()
    if size == 1 then return pending "one rank has nothing to reduce" end
    local message, code = numeric.refusal(function() by_hand { all_reduce = true } end)
    assert.same({ "accumulate reduced the gradients of the model over the ranks 0 times; a " ..
                  "window is reduced once (all_reduce of model:gradients())", 1 },
                { message, code })
  end)
end)

-- B51: 1e8 and 1 on even ranks, -1e8 and 1 on odd ones, each a microbatch of its own.
describe("rounding", function()
  local function b51(accumulate)
    local ranks = {}
    for r = 1, size do ranks[r] = { { { r % 2 == 1 and 1e8 or -1e8 } }, { { 1 } } } end
    return parity.run(training.toy(ranks, { accumulate = accumulate }))
  end

  it("that f64 shows to be nothing else is excused (B51)", function()
    if size % 2 == 1 then return pending "an even number of ranks cancels" end
    local report = b51()
    if not report then return end
    assert.is_true(report.f32.max_abs >= 0.1)
    assert.same({ 0, 1, 0, 0 }, { report.f32.failing, report.f32.rounding, report.f64.failing,
                                  report.f64.rounding })
  end)

  it("is no excuse for a loop that is wrong (B51)", function()
    if size % 2 == 1 then return pending "an even number of ranks cancels" end
    for _, broken in ipairs { loops.no_factor, loops.divides_again, loops.miscounts } do
      local report = b51(broken)
      assert_refuted(report)
      if report then assert.equal(0, report.f32.rounding) end
    end
  end)
end)
