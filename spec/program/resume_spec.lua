-- Stop and resume, as a user does it: equal to a run in one piece to the last bit, and refused or
-- seen where it would not be.

local core = require "marea.core"
local json = require "marea.json"
local scratch = dofile "spec/support/scratch.lua"
local tiny = dofile "spec/support/tiny.lua"

local parts = { "lock", "parameters", "optimizer", "position", "history", "random states" }

local function shows(text, ...)
  for _, part in ipairs { ... } do
    assert.is_truthy(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
  end
end

local function same_logs(folder, a, b, ranks)
  assert.are.same(tiny.timeless_lines(folder .. "/" .. a .. "/metrics.jsonl"),
                  tiny.timeless_lines(folder .. "/" .. b .. "/metrics.jsonl"))
  for rank = 0, (ranks or 1) - 1 do
    local log = ("/rank-%d.jsonl"):format(rank)
    assert.are.same(tiny.timeless_lines(folder .. "/" .. a .. log),
                    tiny.timeless_lines(folder .. "/" .. b .. log))
  end
end

local function same_files(a, b)
  for _, name in ipairs { "parameters.safetensors", "optimizer.safetensors", "state.json",
                          "history.jsonl" } do
    assert.are.equal(scratch.read(a .. "/" .. name), scratch.read(b .. "/" .. name), name)
  end
end

describe("a run that stops and goes on", function()
  for _, case in ipairs { { ranks = 2, words = {} },
                          { ranks = nil, words = { "kind=SGD", "evaluate_every=3" } },
                          { ranks = 3, words = { "kind=SGD", "dropout=0", "save_every=3" } } } do
    it(("equals one piece on %d ranks (%s)"):format(case.ranks or 1,
                                                    table.concat(case.words, " ")), function()
      local folder <close> = scratch.folder()
      local words = case.words
      tiny.must_train(folder.path, case.ranks, "once", "--continuous", table.unpack(words))
      tiny.must_train(folder.path, case.ranks, "parts", table.unpack(words))
      assert.are.equal(4, #tiny.timeless_lines(folder.path .. "/parts/rank-0.jsonl"))
      tiny.must_train(folder.path, case.ranks, "parts", "--resume", "latest", table.unpack(words))
      local code, report = tiny.compare(folder.path, "once", "parts")
      for _, part in ipairs(parts) do
        assert.is_true(report[part].equal, part .. ": " .. tostring(report[part].first))
      end
      assert.are.equal(0, code)
      assert.are.equal(2565, report.parameters.values)
      same_files(folder.path .. "/once/checkpoints/step-000008",
                 folder.path .. "/parts/checkpoints/step-000008")
      same_logs(folder.path, "once", "parts", case.ranks)
    end)
  end

  it("keeps each rank's own stream, and the three differ", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, 3, "x")
    local state = json.decode(scratch.read(folder.path .. "/x/checkpoints/step-000004/state.json"))
    assert.are.equal(3, #state.streams)
    local last = {}
    for line in scratch.read(folder.path .. "/x/metrics.jsonl"):gmatch("[^\n]+") do
      last = json.decode(line)
    end
    assert.are.equal(4, last.update)
    for a = 1, 3 do
      for b = a + 1, 3 do assert.are_not.equal(state.streams[a], state.streams[b]) end
    end
    local history = scratch.read(folder.path .. "/x/checkpoints/step-000004/history.jsonl")
    local draws = json.decode(history:match("[^\n]+")).draws
    assert.are.equal(3, #draws)
    assert.is_true(draws[1] ~= draws[2] and draws[2] ~= draws[3] and draws[1] ~= draws[3])
  end)

  it("is seen to differ when a control gets the resume wrong", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, 2, "once", "--continuous")
    local function differing(name, ...)
      tiny.must_train(folder.path, 2, name)
      tiny.must_train(folder.path, 2, name, "--resume", "latest", ...)
      local code, report = tiny.compare(folder.path, "once", name)
      assert.are.equal(3, code)
      return report
    end
    local reseeded = differing("reseeded", "--control", "reseed-streams")
    assert.is_false(reseeded.history.equal)
    shows(reseeded.history.first, "update 5, draws, rank 0")
    assert.is_false(reseeded["random states"].equal)
    assert.are.equal("the stream of rank 0: at draw 8 and at draw 4",
                     reseeded["random states"].first)
    assert.is_true(reseeded.parameters.equal) -- dropout does not draw from the ranks' streams
    local both = differing("both", "--control", "reseed-streams", "--control", "restart-updates")
    assert.is_false(both.parameters.equal)
    assert.is_true(both.parameters.max_abs > 1e-6)
    shows(both.history.first, "update 5, loss_sums, rank 0")
    local record = json.decode(scratch.read(folder.path .. "/both/run.json"))
    assert.are.same({ "reseed-streams", "restart-updates" }, record.resumed[1].controls)
  end)

  it("goes to --until, and says when there is nothing left to do", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, nil, "x", "--until", "2")
    tiny.must_train(folder.path, nil, "x", "--resume", "latest") -- to stop, which lies ahead
    tiny.must_train(folder.path, nil, "x", "--resume", "latest")
    local output = tiny.must_train(folder.path, nil, "x", "--resume", "latest")
    shows(output, "is already at update 8 of 8; nothing was done")
    local run = folder.path .. "/x"
    local before = core.file.list(run)
    local record, metrics = scratch.read(run .. "/run.json"), scratch.read(run .. "/metrics.jsonl")
    shows(tiny.must_train(folder.path, nil, "x", "--resume", "latest", "updates=6", "stop=none"),
          "is already at update 8 of 6; nothing was done")
    assert.are.same(before, core.file.list(run))
    assert.are.equal(record, scratch.read(run .. "/run.json"))
    assert.are.equal(metrics, scratch.read(run .. "/metrics.jsonl"))
    -- A checkpoint of another run that has nothing left moves nothing aside either.
    tiny.must_train(folder.path, nil, "y", "--until", "2")
    tiny.must_train(folder.path, nil, "y", "--resume", run .. "/checkpoints/step-000008")
    assert.is_falsy(core.file.exists(folder.path .. "/y.1"))
    local updates = {}
    for i, line in ipairs(tiny.timeless_lines(folder.path .. "/x/metrics.jsonl")) do
      updates[i] = json.decode(line).update
    end
    assert.are.same({ 1, 2, 3, 4, 5, 6, 7, 8 }, updates)
    local code, _, errors = tiny.train(folder.path, nil, "x", "--until", "9", "--resume", "latest")
    assert.are.equal(2, code)
    shows(errors, "--until 9 is behind the last update, 8")
  end)

  it("goes on under more updates than it was planned for", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, nil, "once", "--continuous", "updates=10")
    tiny.must_train(folder.path, nil, "parts", "--continuous", "updates=6")
    tiny.must_train(folder.path, nil, "parts", "--resume", "latest", "updates=10")
    assert.are.equal(0, (tiny.compare(folder.path, "once", "parts")))
  end)

  it("goes on from a folder that is not the newest, and the newer ones no longer count", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, nil, "x", "save_every=2", "--continuous")
    local root = folder.path .. "/x/checkpoints"
    local _, errors = tiny.must_train(folder.path, nil, "x", "--until", "5", "--resume",
                                      root .. "/step-000004/")
    shows(errors, "checkpoints behind update 4 were renamed: " .. root .. "/step-000006.1")
    assert.are.equal(5, #tiny.timeless_lines(folder.path .. "/x/metrics.jsonl"))
    tiny.must_train(folder.path, nil, "once", "--until", "5")
    assert.are.equal(0, (tiny.compare(folder.path, "once", "x")))
  end)

  it("goes on as a new run from another run's checkpoint", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, nil, "old")
    tiny.must_train(folder.path, nil, "new", "--resume",
                    folder.path .. "/old/checkpoints/step-000004")
    tiny.must_train(folder.path, nil, "old", "--resume", "latest")
    assert.are.equal(0, (tiny.compare(folder.path, "old", "new")))
    assert.are.equal(4, #tiny.timeless_lines(folder.path .. "/new/metrics.jsonl"))
  end)
end)

describe("a resume", function()
  it("is refused under another lock, naming field and both values, until it is accepted", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, nil, "x")
    local code, _, errors = tiny.train(folder.path, nil, "x", "lr=0.01", "--resume", "latest")
    assert.are.equal(3, code)
    shows(errors, "config.lr: 0.02 then, 0.01 now")
    code, _, errors = tiny.train(folder.path, nil, "x", "seed=8", "--resume", "latest",
                                 "--accept", "config.seed")
    assert.are.equal(3, code)
    shows(errors, "plan: ")
    code, _, errors = tiny.train(folder.path, nil, "x", "--resume", "latest", "--accept",
                                 "config.rl")
    assert.are.equal(2, code)
    shows(errors, "a lock has no field \"config.rl\"; did you mean \"config.lr\"?")
    tiny.must_train(folder.path, nil, "x", "lr=0.01", "--resume", "latest", "--accept", "config.lr")
    local state = json.decode(scratch.read(folder.path .. "/x/checkpoints/step-000008/state.json"))
    assert.are.same({ "config.lr" }, state.lock.accepted)
    assert.are.equal(0.01, state.lock.config.values.lr)
    local record = json.decode(scratch.read(folder.path .. "/x/run.json"))
    assert.are.same({ "config.lr" }, record.resumed[1].accepted)
  end)

  it("is refused where the schedule gave past updates another lr", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, nil, "x")
    local code, _, errors = tiny.train(folder.path, nil, "x", "warmup=2", "--resume", "latest",
                                       "--accept", "config.warmup")
    assert.are.equal(3, code)
    shows(errors, "schedule: 0.333333333 times lr at update 1 then, 0.5 now")
    tiny.must_train(folder.path, nil, "x", "warmup=2", "--resume", "latest",
                    "--accept", "config.warmup", "--accept", "schedule")
    local state = json.decode(scratch.read(folder.path .. "/x/checkpoints/step-000008/state.json"))
    assert.are.same({ "config.warmup", "schedule" }, state.lock.accepted)
  end)

  it("is refused on another number of ranks, with both numbers", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, nil, "x")
    local code, _, errors = tiny.train(folder.path, 2, "x", "--resume", "latest")
    assert.are.equal(2, code)
    shows(errors, "was saved on 1 rank, and this run has 2")
    assert.are.equal(1, select(2, errors:gsub("was saved on", "")), "said once")
  end)

  it("needs a checkpoint, and its options need it", function()
    local folder <close> = scratch.folder()
    local cases = {
      { { "--resume", "latest" }, "/x holds no run that was trained" },
      { { "--resume", folder.path }, "is neither a checkpoint nor a run" },
      { { "--accept", "config.lr" }, "--accept needs --resume" },
      { { "--control", "reseed-streams" }, "--control needs --resume" },
      { { "--until", "0" }, "--until must be an update of 1 or more, not 0" },
      { { "--until", "3", "--continuous" }, "give either --until or --continuous" },
    }
    for _, case in ipairs(cases) do
      local code, _, errors = tiny.train(folder.path, nil, "x", table.unpack(case[1]))
      assert.are.equal(2, code, errors)
      shows(errors, case[2])
    end
  end)

  it("passes over a damaged checkpoint to the newest good one, and refuses one by name", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, nil, "x", "save_every=2")
    local bad = folder.path .. "/x/checkpoints/step-000004/parameters.safetensors"
    local bytes = scratch.read(bad)
    scratch.write(bad, bytes:sub(1, -2) .. string.char(bytes:byte(-1) ~ 1))
    local code, _, errors = tiny.train(folder.path, nil, "x", "--resume",
                                       folder.path .. "/x/checkpoints/step-000004")
    assert.are.equal(3, code)
    shows(errors, bad .. " is damaged: expected sha-256 ", ", found ")
    local _, said = tiny.must_train(folder.path, nil, "x", "--resume", "latest", "--until", "3")
    shows(said, "passed over: " .. bad, "at update 2")
  end)

  it("does not take what an older run left for its own", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, nil, "old", "--until", "6")
    tiny.must_train(folder.path, nil, "x", "--until", "2")
    scratch.shell(("cp -r %s/old/checkpoints/step-000006 %s/x/checkpoints/"):format(folder.path,
                                                                                   folder.path))
    local _, said = tiny.must_train(folder.path, nil, "x", "--resume", "latest", "--until", "3")
    shows(said, "step-000002 at update 2")
  end)
end)
