-- Public cases of resuming on several ranks: what all learn of a save, and what is each rank's own.

local core = require "marea.core"
local history_of = require "marea.history"
local journal_of = require "marea.journal"
local json = require "marea.json"
local marea = require "marea"
local marea_training = require "marea.training"
local resume = require "marea.resume"
local run_of = require "marea.run"
local saves = require "marea.saves"
local together = require "marea.together"
local trainer_of = require "marea.trainer"
local Session = require "marea.session"
local cases = dofile "spec/support/cases.lua"
local training = dofile "spec/support/training.lua"

local check = cases.check

-- A lock is nothing that these cases look at.
local lock = (dofile "spec/support/small_checkpoint.lua").lock()

-- A trainer of a recipe on a group, with a run's folder.
local function begin(recipe, group, folder)
  local session = Session.open(recipe, { world = group }):build()
  local run = run_of.open { outputs = folder, name = "x", way = "any", world = group }
  return trainer_of.new(session, { history = history_of.new() }), run, { id = "spec", lock = lock }
end

-- Windows of one item a rank; all items are 0, so training changes nothing.
local function still(ranks, updates)
  local windows = {}
  for u = 1, updates do
    windows[u] = {}
    for r = 1, ranks do windows[u][r] = { { { 0 } } } end
  end
  return training.toys(windows)
end

local function number_of(folder) return math.tointeger(tonumber(folder:match("step%-(%d+)$"))) end

-- By construction: ranks vote before anything is written, rank 0 writes into a folder that gets its
-- name when it is whole, and there is no mark that could move: the newest whole checkpoint counts.
describe("B18: a save of which one rank's part fails, or is late", function()
  -- A run of four ranks with checkpoint 10, at update 20.
  local function at_20(group, folder)
    local trainer, run, identity = begin(still(4, 20), group, folder)
    trainer.journal = journal_of.open(run, 0)
    for update = 1, 20 do
      trainer:advance()
      trainer:end_update()
      if update == 10 then saves.save(run, trainer, identity) end
    end
    return trainer, run, identity
  end
  local function latest(run) return number_of((saves.latest(run.folder, "spec"))) end

  it("a: rank 2 cannot write: all four learn of it, and latest is 10", function()
    local group, folder <close> = cases.group(4), cases.folder()
    if not group then return end
    local trainer, run <close>, identity = at_20(group, folder.path)
    local on_two = group:rank() == 2
    if on_two then core.file.fail_at(1) end
    local message, code = cases.refusal(function()
      local good, problem = pcall(saves.save, run, trainer, identity)
      if on_two then group:barrier() end -- the others wait until this rank has spoken
      if not good then error(problem, 0) end
    end)
    core.file.fail_at(0)
    assert.equal(1, code)
    local expected = on_two and "rank-2.jsonl" or "rank 2 could not save"
    assert.truthy(message:find(expected, 1, true), message)
    check(10, latest(run), { { 20, "latest moved" } })
    assert.equal(1, #saves.list(run.folder))
    assert.is_false(core.file.exists(run.folder .. "/checkpoints/step-000020"))
    trainer.journal:close()
  end)

  it("b: rank 2 is slow: latest stays 10 until its part is there", function()
    local group, folder <close> = cases.group(4), cases.folder()
    if not group then return end
    local trainer, run <close>, identity = at_20(group, folder.path)
    local sync, before = trainer.journal.sync, nil
    function trainer.journal:sync()
      if group:rank() == 2 then
        os.execute "sleep 1"
        before = latest(run)
      end
      sync(self)
    end
    saves.save(run, trainer, identity)
    if group:rank() == 2 then check(10, before, { { 20, "latest did not wait" } }) end
    check(20, latest(run), { { 10, "it never moved" } })
    trainer.journal:close()
  end)
end)

-- By construction: a checkpoint holds every rank's own stream, and is resumed on as many ranks
-- (policy).
describe("B35: random states of three ranks that have drawn 5, 7 and 11", function()
  local drawn = { 5, 7, 11 }

  -- Draw number n, from 0, of each rank's stream.
  local function draws(numbers)
    local list = {}
    for r, n in ipairs(numbers) do
      local stream = trainer_of.new_stream(20, r - 1)
      for _ = 1, n do stream:next() end
      list[r] = stream:next()
    end
    return list
  end

  local function saved(group, folder)
    local trainer, run <close>, identity = begin(still(3, 6), group, folder)
    for _ = 1, 5 do trainer:advance() end -- each draws one
    for _ = 6, drawn[group:rank() + 1] do trainer.stream:next() end
    return saves.save(run, trainer, identity), trainer
  end

  it("go on with their own next draw, and the three differ", function()
    local group, folder <close> = cases.group(3), cases.folder()
    if not group then return end
    local checkpoint, unbroken = saved(group, folder.path)
    local again, run <close> = begin(still(3, 6), group, folder.path)
    resume.restore(again, checkpoint, lock)
    local right, of_rank_0 = draws(drawn), draws { 5, 5, 5 }
    for _, trainer in ipairs { again, unbroken } do
      trainer:advance()
      if group:rank() == 0 then
        local found = trainer.history:get(6).draws
        assert.same(right, found)
        for r = 2, 3 do
          assert.are_not.equal(of_rank_0[1], found[r])
          assert.are_not.equal(of_rank_0[r], found[r])
        end
      end
    end
    assert.is_true(right[1] ~= right[2] and right[2] ~= right[3] and right[1] ~= right[3])
    assert.equal(unbroken.stream:state(), again.stream:state())
    assert.equal("x", run.name)
  end)

  it("are not handed to another number of ranks", function()
    local three, folder <close> = cases.group(3), cases.folder()
    local path = three and saved(three, folder.path)
    path = together.on_root(require("marea.world").get(), function() return path or nil end)
    local group = path and cases.group(2)
    if not group then return end
    local again, _ <close> = begin(still(2, 6), group, folder.path)
    local state = again.stream:state()
    local message, code = cases.refusal(resume.restore, again, path, lock)
    assert.equal(2, code)
    assert.truthy(message:find("was saved on 3 ranks, and this run has 2", 1, true), message)
    assert.equal(state, again.stream:state())
  end)
end)

-- By construction: a position is the number of updates; microbatches and sequences of each rank are
-- counted from the plan beside it, never multiplied.
describe("B41: the position after update 5 of two ranks, microbatches of three, K = 4", function()
  -- Items dealt out in order, each with its number, from 0, as its loss.
  local function recipe()
    local windows, number = {}, 0
    for u = 1, 6 do
      windows[u] = { {}, {} }
      for m = 1, 4 do
        for r = 1, 2 do
          local microbatch = {}
          for s = 1, 3 do
            microbatch[s] = { number }
            number = number + 1
          end
          windows[u][r][m] = microbatch
        end
      end
    end
    return training.toys(windows, { optimizer = function(model)
      return marea.optim.SGD(model, { lr = 0 }) -- so a loss stays its item's number
    end })
  end

  it("is 20 microbatches on each rank, 120 samples in all, and sample 120 is next", function()
    local group, folder <close> = cases.group(2), cases.folder()
    if not group then return end
    local trainer, run <close>, identity = begin(recipe(), group, folder.path)
    for _ = 1, 5 do trainer:advance() end
    local path = saves.save(run, trainer, identity)
    run:close()
    local again, _ <close> = begin(recipe(), group, folder.path)
    resume.restore(again, path, lock)
    assert.equal(5, again.update)
    for r = 1, 2 do
      check(20, again.microbatches[r], { { 5, "in updates" }, { 60, "in samples" } })
    end
    check(120, again.sequences[1] + again.sequences[2], { { 30, "K forgotten" },
                                                          { 480, "K twice" } })
    local window, least = again.session:window(again.update + 1), math.huge
    for sequence in window:sequences() do least = math.min(least, sequence.id - 1) end
    check(120, least, { { 30, "K forgotten" }, { 480, "K twice" }, { 20, "in microbatches" } })
    local sum = 0
    for number = 120, 143 do sum = sum + number end
    check(sum, 24 * again:advance().loss_per_token, {})
    assert.same({ 24, 24 }, again.microbatches)
  end)

  it("is the same through the whole of training, on as many ranks as there are", function()
    local world, folder <close> = require("marea.world").get(), cases.folder()
    local windows = {}
    for u = 1, 4 do
      windows[u] = {}
      for r = 1, world:size() do windows[u][r] = { { { 0 }, { 0 } }, { { 0 } } } end
    end
    local function go(options)
      options.outputs, options.name = folder.path, "y"
      return marea_training.run(training.toys(windows), options)
    end
    go { until_update = 3 }
    local result = go { resume = "latest" }
    assert.equal(4, result.update)
    local state = json.decode(core.file.read(result.checkpoint .. "/state.json"))
    for r = 1, world:size() do
      check(8, state.microbatches[r], { { 2, "counted from the resume on" } })
      check(12, state.sequences[r], { { 3, "counted from the resume on" } })
    end
  end)
end)
