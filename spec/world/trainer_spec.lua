-- The loop of training on every number of ranks: what it reports is of all ranks, what one rank
-- sees all see, and one record is shared per update.

local core = require "marea.core"
local fault = require "marea.fault"
local history_of = require "marea.history"
local recipe_of = require "marea.recipe"
local Session = require "marea.session"
local trainer_of = require "marea.trainer"
local world_of = require "marea.world"
local training = dofile "spec/support/training.lua"

local world = world_of.get()
local size, rank = world:size(), world:rank()

local function tiny(overrides)
  local words = { ("ranks=%d"):format(size), table.unpack(overrides or {}) }
  return recipe_of.require("spec/recipes/tiny.lua", words, size)
end

local function trainer_for(recipe, build, group)
  local session = Session.open(recipe, { world = group or world }):build(build)
  return trainer_of.new(session, { history = history_of.new() })
end

describe("an update", function()
  it("reports the loss over all ranks and microbatches", function()
    -- Losses 1, 4 on even ranks; 6 in two, 20 in four tokens on odd ones.
    local short, long = { { { 1 } }, { { 4 } } }, { { { 2, 4 } }, { { 5, 5, 5, 5 } } }
    local ranks, sum, tokens = {}, 0, 0
    for r = 1, size do
      ranks[r] = r % 2 == 1 and short or long
      sum, tokens = sum + (r % 2 == 1 and 5 or 26), tokens + (r % 2 == 1 and 2 or 6)
    end
    local trainer = trainer_for(training.toy(ranks))
    local result = trainer:advance()
    assert.are.equal(sum / tokens, result.loss_per_token)
    if size == 2 then assert.are.equal(3.875, result.loss_per_token) end
    assert.are.equal(tokens, result.tokens)
    assert.are.equal(2, result.rank_tokens[1])
    assert.are.equal(2 * size, result.sequences)
    assert.are.equal(sum / tokens, result.grad_norm) -- the toy's gradient is its loss
  end)

  it("reports the norm before clipping, and clips once", function()
    local ranks = {}
    for r = 1, size do ranks[r] = { { { 8 } } } end
    local trainer = trainer_for(training.toy(ranks, nil, { clip_norm = 2, lr = 0.5 }))
    local result = trainer:advance()
    assert.are.equal(8, result.grad_norm)
    local w = trainer.session.model:values():get(1)
    assert.is_true(math.abs(w - (1 - 0.5 * 2)) < 1e-6, tostring(w))
  end)

  it("counts its position in microbatches and sequences, rank by rank", function()
    local trainer = trainer_for(tiny { "updates=5", "accumulation=2", "batch_size_per_rank=3" })
    local expected = {}
    for r = 1, size do expected[r] = { 0, 0 } end
    for update = 1, 5 do
      trainer:advance()
      for r, microbatches in ipairs(trainer.session.plan[update]) do
        expected[r][1] = expected[r][1] + #microbatches
        for _, ids in ipairs(microbatches) do expected[r][2] = expected[r][2] + #ids end
      end
    end
    assert.are.equal(5, trainer.update)
    for r = 1, size do
      assert.are.same(expected[r], { trainer.microbatches[r], trainer.sequences[r] })
    end
    if size == 2 then -- 48 sequences: four windows of 12, and a new epoch
      assert.are.same({ 10, 10 }, trainer.microbatches)
      assert.are.same({ 30, 30 }, trainer.sequences)
    end
  end)

  it("draws one number from each rank's own stream", function()
    local trainer = trainer_for(tiny())
    for _ = 1, 3 do trainer:advance() end
    local seen = {}
    for r = 0, size - 1 do
      local stream = trainer_of.new_stream(7, r)
      for _ = 1, 3 do seen[#seen + 1] = stream:next() end
      if r == rank then assert.are.equal(stream:state(), trainer.stream:state()) end
    end
    if rank == 0 then
      for update = 1, 3 do
        local draws = trainer.history:get(update).draws
        for r = 1, size do assert.are.equal(seen[(r - 1) * 3 + update], draws[r]) end
      end
    end
  end)

  it("shares one count, one reduction a bucket, and one record", function()
    local trainer = trainer_for(tiny(), { bucket_bytes = 4096 })
    trainer:advance()
    local before = world:ledger()
    local result = trainer:advance()
    local after, bytes = world:ledger(), 0
    for kind, entry in pairs(after) do
      local calls = entry.calls - before[kind].calls
      if kind == "all_gather" then
        assert.are.equal(size == 1 and 1 or 2, calls) -- one rank has nobody to count with
      elseif kind == "all_reduce" then
        assert.is_true(calls >= 1 and calls <= 10, calls .. " reductions")
      else
        assert.are.equal(0, calls, kind)
      end
      bytes = bytes + entry.bytes - before[kind].bytes
    end
    assert.are.equal(bytes, result.bytes_sent)
  end)

  it("shows a spread of parameters where the broadcast was left out", function()
    local equal = trainer_for(tiny(), { seed = 100 + rank })
    assert.are.equal(0, equal:advance().parameter_spread)
    local apart = trainer_for(tiny(), { seed = 100 + rank, broadcast = false })
    local spread = apart:advance().parameter_spread
    assert.are.equal(size > 1, spread > 0)
  end)

  it("stops all ranks before the step when one rank's loss is not finite", function()
    for _, bad in ipairs { 1 / 0, 0 / 0 } do
      local ranks = {}
      for r = 1, size do ranks[r] = { { { r == size and bad or 1 } } } end
      local trainer = trainer_for(training.toy(ranks))
      local good, problem = pcall(trainer.advance, trainer)
      assert.is_false(good)
      local message, code = fault.of(problem)
      assert.are.equal(5, code, message)
      local expected = ("update 1: the loss of rank %d is "):format(size - 1)
      assert.is_truthy(message:find(expected, 1, true), message)
      assert.are.equal(1, trainer.session.model:values():get(1))
      assert.are.equal(0, trainer.update)
      local codes = world:all_gather(core.from({ #message }, "i64")):values()
      for _, other in ipairs(codes) do assert.are.equal(#message, other) end
    end
  end)

  it("is skipped by all ranks when one rank's loss is not finite, if the recipe says so", function()
    for _, bad in ipairs { 1 / 0, 0 / 0 } do
      local ranks, good = {}, {}
      for r = 1, size do
        ranks[r], good[r] = { { { r == size and bad or 1 } } }, { { { 3 } } }
      end
      local trainer = trainer_for(training.toy(ranks, nil, { nonfinite = "skip", lr = 0.5 }))
      trainer.session.plan[2] = trainer.session.plan[1]
      for update = 1, 2 do
        local result = trainer:advance()
        assert.are.equal(update, result.update)
        assert.is_truthy(result.skipped:find(("the loss of rank %d is "):format(size - 1), 1, true))
        assert.are.equal(1, trainer.session.model:values():get(1))
        assert.are.equal(0, trainer.session.optimizer:steps())
        assert.are.equal(0, result.parameter_spread)
      end
      assert.are.equal(rank == 0 and 2 or 0, trainer.history:count_skipped())
      local fine = trainer_for(training.toy(good, nil, { nonfinite = "skip", lr = 0.5 }))
      assert.is_nil(fine:advance().skipped)
      assert.are.equal(-0.5, fine.session.model:values():get(1))
    end
  end)

  it("tells all ranks that one was asked to stop", function()
    local trainer = trainer_for(tiny())
    local _, stop = trainer:advance()
    assert.is_false(stop)
    trainer.stop_asked = rank == size - 1
    _, stop = trainer:advance()
    assert.is_true(stop)
  end)

  it("steps with the schedule's factor, once per update", function()
    local trainer = trainer_for(tiny { "warmup=4", "lr=0.1", "accumulation=3" })
    for update = 1, 6 do
      assert.are.equal(0.1 * math.min(1, update / 4), trainer:advance().lr)
    end
    assert.are.equal(6, trainer.session.optimizer:steps())
  end)
end)
