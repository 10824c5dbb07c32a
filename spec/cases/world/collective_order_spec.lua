-- Public cases of collectives in order: no rank leaves out what the others wait for, and what one
-- meets alone all decide together.

local core = require "marea.core"
local fault = require "marea.fault"
local lfs = require "lfs"
local resume = require "marea.resume"
local together = require "marea.together"
local trainer_of = require "marea.trainer"
local marea_training = require "marea.training"
local world = require("marea.world").get()
local cases = dofile "spec/support/cases.lua"
local training = dofile "spec/support/training.lua"

local check = cases.check
local size, rank = world:size(), world:rank()

local function same_on_all(group, number)
  return training.equal_on_all(group, core.from({ number }, "f64"))
end

local function calls_since(group, before)
  local list = {}
  for kind, entry in pairs(group:ledger()) do
    list[#list + 1] = kind .. " " .. entry.calls - (before and before[kind].calls or 0)
  end
  table.sort(list)
  return table.concat(list, ", ")
end

-- By construction: a rank without items gets a microbatch of zero sequences, so the recipe's loop
-- runs there like elsewhere, and every operation takes extents of 0.
describe("B15: a rank with nothing in a microbatch", function()
  local full, one = { { 3, 3 } }, { { 1, 1 } }
  local ranks = { { full, one }, { {}, one }, { full, one } }
  local wrong = { { 1, "all ranks dropped the microbatch" }, { 2, "equal weights" } }

  it("takes part: the gradient is 1.8 on all ranks", function()
    cases.expect { right = 1.8, never = wrong, ranks = ranks }
    cases.expect { right = 14 / 6, never = { { 2.5, "the mean of the ranks that have items" },
                                             { 14 / 9, "the factor of those ranks" } },
                   ranks = { { full, one }, {}, { full } } }
  end)

  it("runs as many collectives and backwards as the others", function()
    local group = cases.group(3)
    if not group then return end
    local backwards = 0
    local session = cases.session(training.toy(ranks, {
      accumulate = function(replica, window)
        replica:zero_grad()
        for i, batch in ipairs(window) do
          local _ <close> = i < #window and replica:no_sync()
          replica:loss(batch, window:weights(batch)):backward()
          backwards = backwards + 1
        end
      end }), group)
    local before = group:ledger()
    check(1.8, training.run(session):get(1), wrong)
    local texts = together.texts(group, calls_since(group, before))
    for _, text in ipairs(texts) do assert.equal(texts[1], text) end
    check(2, backwards, { { 1, "the empty one was skipped" } })
  end)
end)

-- By construction: the plan says for all ranks which windows there are; a rank that has no more
-- items keeps its place in the mean over W.
describe("B43: a rank that runs out one step before the others", function()
  -- Items 1 to 7 dealt out in turn, one a microbatch.
  local function windows(ranks)
    local list = {}
    for first = 1, 7, ranks do
      local window = {}
      for r = 1, ranks do
        local x = first + r - 1
        window[r] = x <= 7 and { { { x } } } or {}
      end
      list[#list + 1] = window
    end
    return list
  end

  -- ranks, the right updates, and what the last one is with the factor of those still active
  for _, case in ipairs { { 2, { 1.5, 3.5, 5.5, 7 }, 3.5 }, { 3, { 2, 5, 7 }, 7 / 3 },
                          { 4, { 2.5, 6 }, 4.5 } } do
    local ranks, expected, wrong = table.unpack(case)
    it(("of %d: the updates are %s"):format(ranks, table.concat(expected, ", ")), function()
      local group = cases.group(ranks)
      if not group then return end
      local session = cases.session(training.toys(windows(ranks), {}, { lr = 1 }), group)
      local trainer, w = trainer_of.new(session), 1
      for update, right in ipairs(expected) do
        local result = trainer:advance()
        check(right, result.grad_norm, update == #expected and
              { { wrong, "the factor of the ranks that are still active" } } or {})
        w = w - right
        check(w, session.model:values():get(1), {})
        assert.equal(0, result.parameter_spread)
        assert.is_true(same_on_all(group, result.grad_norm))
      end
      local used = 0
      for _, count in ipairs(trainer.microbatches) do used = used + count end
      assert.same({ #expected, 7 }, { trainer.update, used })
    end)
  end

  it("and a plan that is too short for the run is refused before it begins", function()
    local message, code = cases.refusal(cases.session,
      training.toys(windows(2), {}, { updates = 5 }), cases.alone())
    assert.equal("plan: expected at least 5 steps (config.updates), got 4", message)
    assert.equal(2, code)
  end)
end)

-- By construction: a stop is a vote in the record that ranks share at each update; the loss that
-- decides is that of the whole split, the same bits on all ranks; rank 0 alone looks for
-- checkpoints.
describe("B27: what one rank sees", function()
  -- Three updates that leave w at 1, with validation losses of a block for each of two ranks.
  local function train(folder, losses, options, settings)
    local window, validation = {}, {}
    for r = 1, size do window[r] = { { { 0 } } } end
    for b, loss in ipairs(losses or {}) do
      for i = 1, 16 do validation[16 * (b - 1) + i] = { loss } end
    end
    settings = settings or {}
    settings.ranks, settings.updates = size, 3
    options.outputs, options.name = folder.path, "x"
    return marea_training.run(training.toys({ window, window, window },
                                            { validation = validation }, settings), options)
  end

  it("a: 0.49 and 0.53 are 0.51, and nobody stops below 0.5", function()
    local folder <close> = cases.folder()
    local result = train(folder, { 0.49, 0.53 }, {}, { evaluate_every = 1, stop_below = 0.5 })
    check(3, result.update, { { 1, "a rank stopped by its own loss" } })
    assert.same({ "complete", false }, { result.outcome, result.asked })
    assert.is_true(same_on_all(world, result.update))
  end)

  it("a: 0.53 and 0.45 are 0.49, and all stop", function()
    local folder <close> = cases.folder()
    local result = train(folder, { 0.53, 0.45 }, {}, { evaluate_every = 1, stop_below = 0.5 })
    check(1, result.update, { { 3, "nobody stopped" } })
    assert.equal("stopped", result.outcome)
    assert.truthy(result.reason:find("is below 0.5, config.stop_below", 1, true), result.reason)
    assert.truthy(result.checkpoint)
  end)

  it("b: a request to stop that one rank gets stops all after the same step", function()
    for who = 0, size - 1 do
      local folder <close> = cases.folder()
      local updates = 0
      local result = train(folder, nil, { stop_asked = function()
        updates = updates + 1
        return rank == who and updates == 2
      end })
      check(2, result.update, { { 3, "the request was lost" }, { 1, "it came early" } })
      assert.same({ "stopped", true, 2 }, { result.outcome, result.asked, updates })
      assert.is_true(same_on_all(world, result.update))
    end
  end)

  it("c: a checkpoint that one rank sees not: all go on, or all fail and name it", function()
    for _, blind in ipairs { size - 1, 0 } do
      local folder <close> = cases.folder()
      train(folder, nil, { until_update = 2 })
      together.on_root(world, function() core.file.make_folder(folder.path .. "/elsewhere") end)
      local here = lfs.currentdir()
      lfs.chdir(rank == blind and folder.path .. "/elsewhere" or folder.path)
      local good, found = pcall(resume.find, world, ".", "x", "latest")
      lfs.chdir(here)
      assert.is_true(same_on_all(world, good and 1 or 0))
      assert.equal(blind ~= 0, good)
      local text = good and found.unseen or fault.of(found)
      if good then assert.equal("./x/checkpoints/step-000002", found.folder) end
      local named = blind > 0 and ("rank %d, which cannot see it"):format(blind) or
        size > 1 and "rank 0, which reads for all, finds nothing to go on from, though rank" or
        "holds no run that was trained"
      assert.truthy(text:find(named, 1, true), text)
      assert.is_true(same_on_all(world, #text))
    end
  end)

  it("d: a config that is another on one rank: all fail, and name key, values and rank", function()
    if size == 1 then return end
    for _, key in ipairs { "stop", "save_every", "evaluate_every", "lr" } do
      local folder <close> = cases.folder()
      local good, problem = pcall(train, folder, nil, {}, { [key] = rank == size - 1 and 2 or 1 })
      local message, code = fault.of(problem)
      assert.same({ false, 6 }, { good, code }, message)
      assert.truthy(message:find(("config.%s is not the same on all ranks: 1 on rank 0, 2 on " ..
                                  "rank %d"):format(key, size - 1), 1, true), message)
    end
    local folder <close> = cases.folder()
    local good, problem = pcall(train, folder, nil, {}, { stop = rank < size - 1 and 1 or nil })
    assert.is_false(good)
    local message = fault.of(problem)
    assert.truthy(message:find("config.stop is not the same on all ranks: 1 on rank 0, none on",
                               1, true), message)
  end)
end)
