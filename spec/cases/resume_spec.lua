-- Public cases of resuming, by one process: what comes next is what would have come.

local evaluate = require "marea.evaluate"
local history_of = require "marea.history"
local json = require "marea.json"
local marea = require "marea"
local marea_training = require "marea.training"
local resume = require "marea.resume"
local run_of = require "marea.run"
local saves = require "marea.saves"
local trainer_of = require "marea.trainer"
local cases = dofile "spec/support/cases.lua"
local scratch = dofile "spec/support/scratch.lua"
local small = dofile "spec/support/small_checkpoint.lua"
local training = dofile "spec/support/training.lua"

local check = cases.check

-- An optimizer that leaves w at 1, so a loss stays what its items say.
local function still(model) return marea.optim.SGD(model, { lr = 0 }) end

-- A trainer of a recipe, with a run's folder.
local function begin(recipe, folder)
  local session = cases.session(recipe, cases.alone())
  local run = run_of.open { outputs = folder, name = "x", way = "any", world = session.world }
  return trainer_of.new(session, { history = history_of.new() }), run
end

local function save(run, trainer)
  return saves.save(run, trainer, { id = "spec", lock = small.lock() })
end

local function resumed(recipe, folder, from)
  local trainer, run = begin(recipe, folder)
  resume.restore(trainer, from, small.lock())
  return trainer, run
end

-- Windows of one item each.
local function one_by_one(items, given)
  local windows = {}
  for i, x in ipairs(items) do windows[i] = { { { { x } } } } end
  return training.toys(windows, given)
end

-- By construction: a stream's position is in the checkpoint, it is restored last, and nothing else
-- draws from it.
describe("B08: a rank that has drawn 10 numbers", function()
  for _, evaluates in ipairs { false, true } do
    it(("draws number 10 next, evaluation %s"):format(evaluates and "on" or "off"), function()
      local folder <close> = scratch.folder()
      local function recipe()
        return one_by_one({ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, { validation = { { 1 } } })
      end
      local trainer, run <close> = begin(recipe(), folder.path)
      for _ = 1, 10 do trainer:advance() end
      local saved = save(run, trainer)
      run:close()
      local again, _ <close> = resumed(recipe(), folder.path, saved)
      if evaluates then evaluate.split(again.session, "validation") end
      again.session:window(11) -- and its batches
      local stream, numbers = trainer_of.new_stream(20, 0), {}
      for n = 0, 11 do numbers[n] = stream:next() end
      again:advance()
      check(numbers[10], again.history:get(11).draws[1],
            { { numbers[0], "re-seeded" }, { numbers[11], "set-up took one" } })
    end)
  end
end)

-- By construction: the position is the number of updates that were made; what was read for later
-- ones is no part of it.
describe("B09: three items were trained on, and four more were read ahead", function()
  it("the next one after the resume is number 3, and the history lists 0, 1, 2", function()
    local folder <close> = scratch.folder()
    local items = { 0, 1, 2, 3, 4, 5, 6, 7, 8 }
    local trainer, run <close> = begin(one_by_one(items, { optimizer = still }), folder.path)
    for _ = 1, 3 do trainer:advance() end
    for update = 4, 7 do trainer.session:window(update) end
    local saved = save(run, trainer)
    run:close()
    local again, _ <close> = resumed(one_by_one(items, { optimizer = still }), folder.path, saved)
    check(3, again:advance().loss_per_token, { { 7, "the reader's position" }, { 0, "anew" } })
    local listed = {}
    for update = 1, 4 do listed[update] = again.history:get(update).loss_sums[1] end
    assert.same({ 0, 1, 2, 3 }, listed)
    assert.same({ 4 }, again.sequences)
  end)
end)

-- The gradient norms of a run's updates.
local function norms_of(folder, name)
  local norms = {}
  for line in scratch.read(("%s/%s/metrics.jsonl"):format(folder, name)):gmatch("[^\n]+") do
    norms[#norms + 1] = json.decode(line).grad_norm
  end
  return norms
end

-- By construction: a window's microbatches and its divisor come from the plan, at any update.
describe("B13 d: resumed at microbatch 4 of an epoch", function()
  for _, case in ipairs { { 11, { 4, 4, 3 } }, { 12, { 4, 4, 4 } } } do
    local count, sizes = table.unpack(case)
    it(("of %d, in fours: the updates that follow are 12 and 12"):format(count), function()
      local folder <close> = scratch.folder()
      local microbatches = {}
      for i = 1, count do microbatches[i] = { { 12 } } end
      local function go(options)
        options.outputs, options.name = folder.path, "x"
        return marea_training.run(training.toy({ microbatches }, {
          plan = marea.sampler.shuffled,
        }, { updates = 3, accumulation = 4, batch_size_per_rank = 1 }), options)
      end
      go { until_update = 1 }
      local first = json.decode(scratch.read(folder.path ..
        "/x/checkpoints/step-000001/state.json"))
      assert.same({ 4 }, first.microbatches)
      go { resume = "latest" }
      local norms = norms_of(folder.path, "x")
      assert.equal(3, #norms)
      for update = 2, 3 do
        check(12, norms[update], { { 16, "the divisor of the last window for both" },
                                   { 9, "the full K" }, { 1 / 0, "a division by zero" } })
      end
      local plan = json.decode(scratch.read(folder.path .. "/x/plan.json")).steps
      assert.same(sizes, { #plan[1][1], #plan[2][1], #plan[3][1] })
    end)
  end
end)

-- By construction: all epochs are in the plan, which does not depend on where a run begins.
describe("B22: stopped after one batch of the second epoch", function()
  it("the next batch is that epoch's second", function()
    local folder <close> = scratch.folder()
    local items = {}
    for i = 1, 6 do items[i] = { 2 ^ i } end
    local function go(options)
      options.outputs, options.name = folder.path, "x"
      return marea_training.run(training.toy({ { items } }, {
        plan = marea.sampler.shuffled, optimizer = still,
      }, { updates = 6, batch_size_per_rank = 2 }), options)
    end
    go { until_update = 4 }
    local result = go { resume = "latest" }
    local steps = json.decode(scratch.read(folder.path .. "/x/plan.json")).steps
    local sums = {} -- which ids a window has: each sum is made of one pair only
    for step, window in ipairs(steps) do
      sums[step] = 2 ^ window[1][1][1] + 2 ^ window[1][1][2]
    end
    local history = scratch.read(result.checkpoint .. "/history.jsonl")
    local update = 0
    for line in history:gmatch("[^\n]+") do
      update = update + 1
      local never = update < 5 and {} or
        { { sums[update - 3], "the first epoch's order" }, { sums[update - 1], "begun anew" },
          { sums[update - 4], "all begun anew" } }
      check(sums[update], json.decode(line).loss_sums[1], never)
    end
    assert.equal(6, update)
    assert.equal(126, sums[4] + sums[5] + sums[6]) -- every item once
  end)
end)

-- By construction: moments and step counter are one state, in the run's own dtype.
describe("B40: Adam after the gradients 1, 3, 2", function()
  local function recipe()
    return one_by_one({ 1, 3, 2, 4 }, { optimizer = function(model)
      return marea.optim.AdamW(model, { lr = 0.1, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8,
                                        decay = 0 })
    end })
  end

  it("goes on by 0.095094, to the bits of the unbroken run", function()
    local folder <close> = scratch.folder()
    local trainer, run <close> = begin(recipe(), folder.path)
    trainer.session.model:values():fill_(0)
    for _ = 1, 3 do trainer:advance() end
    local optimizer = trainer.session.optimizer
    check(0.551, optimizer:state().m:get(1), {})
    check(0.013989001, optimizer:state().v:get(1), {})
    local before = trainer.session.model:values():get(1)
    check(-0.285887, before, {}, 5e-7)
    local saved = save(run, trainer)
    run:close()
    local again, _ <close> = resumed(recipe(), folder.path, saved)
    assert.equal(3, again.session.optimizer:steps())
    again:advance()
    check(0.095094, before - again.session.model:values():get(1),
          { { 0.163636, "counter reset" }, { 0.042457, "first moment lost" },
            { 0.100000, "all lost" } }, 5e-7)
    trainer:advance()
    assert.equal(trainer.session.model:values():hash(), again.session.model:values():hash())
    for name, state in pairs(optimizer:state()) do
      assert.equal(state:hash(), again.session.optimizer:state()[name]:hash())
    end
  end)
end)
