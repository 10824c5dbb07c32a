-- What one rank meets alone, all ranks decide together: they stop, skip, refuse or go on after the
-- same update.

local core = require "marea.core"
local json = require "marea.json"
local launch = require "marea.launch"
local saves = require "marea.saves"
local scratch = dofile "spec/support/scratch.lua"
local tiny = dofile "spec/support/tiny.lua"

local function shows(text, ...)
  for _, part in ipairs { ... } do
    assert.is_truthy(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
  end
end

local function record_of(run) return json.decode(scratch.read(run .. "/run.json")) end

-- The updates of a run's three logs, which must be alike; validations do not count.
local function updates_of(run)
  local counts = {}
  for i, name in ipairs { "metrics.jsonl", "rank-0.jsonl", "rank-1.jsonl" } do
    counts[i] = 0
    for line in scratch.read(run .. "/" .. name):gmatch("[^\n]+") do
      if not json.decode(line).split then counts[i] = counts[i] + 1 end
    end
  end
  assert.same({ counts[1], counts[1], counts[1] }, counts)
  return counts[1]
end

describe("`marea stop`", function()
  -- Runs on two ranks until it has a checkpoint; returns its process.
  local function start(folder)
    local words = { "train", tiny.recipe, "--outputs", folder, "--run", "x", "--continuous",
                    "updates=4000", "save_every=20" }
    local process = launch.start({ ranks = 2, threads = 1, input = "/dev/null",
                                   output = folder .. "/out", errors = folder .. "/err" }, words)
    for _ = 1, 300 do
      if #saves.list(folder .. "/x") > 0 then return process end
      assert(not process:ended(), scratch.read(folder .. "/err"))
      os.execute "sleep 0.1"
    end
    error("no checkpoint came: " .. scratch.read(folder .. "/err"))
  end

  it("saves and stops both ranks after the same update, code 7, and the run goes on", function()
    local folder <close> = scratch.folder()
    local process <close> = start(folder.path)
    local run = folder.path .. "/x"
    local code, output, errors = tiny.run(folder.path, nil, { "stop", "x" })
    assert.equal(0, code, errors)
    shows(output, "asked process ", " to save " .. run .. " after its update and to stop")
    local kind, number = process:wait(30)
    assert.equal(7, launch.exit_code(kind, number))
    shows(scratch.read(folder.path .. "/out"), "stopped on request")
    local record, update = record_of(run), updates_of(run)
    assert.same({ "stopped", "stopped on request", update, update },
                { record.outcome, record.message, record.update, record.last_save.update })
    assert.is_false(core.file.exists(run .. "/stop"))
    code, output, errors = tiny.run(folder.path, nil, { "stop", run })
    assert.equal(2, code, output)
    shows(errors, "nobody trains " .. run .. " now")
    local last = tostring(update + 2)
    tiny.must_train(folder.path, 2, "x", "updates=4000", "--resume", "latest", "--until", last)
    tiny.must_train(folder.path, 2, "once", "updates=4000", "--until", last)
    assert.equal(0, (tiny.compare(folder.path, "once", "x")))
  end)
end)

describe("early stopping", function()
  it("ends a run, saved, where the loss of the whole split is below the limit", function()
    local folder <close> = scratch.folder()
    local output = tiny.must_train(folder.path, 2, "x", "--continuous", "evaluate_every=2",
                                   "stop_below=1.5")
    shows(output, "at update 4 of 8", "is below 1.5, config.stop_below")
    local run = folder.path .. "/x"
    local losses = {}
    for line in scratch.read(run .. "/metrics.jsonl"):gmatch("[^\n]+") do
      local item = json.decode(line)
      if item.split then losses[#losses + 1] = item.loss end
    end
    assert.equal(2, #losses)
    assert.is_true(losses[1] >= 1.5 and losses[2] < 1.5)
    assert.same({ 4, "stopped", 4 }, { updates_of(run), record_of(run).outcome,
                                       record_of(run).last_save.update })
    -- It is no part of the lock: what was stopped early goes on, and is the run in one piece.
    tiny.must_train(folder.path, 2, "x", "--continuous", "evaluate_every=2", "--resume", "latest")
    tiny.must_train(folder.path, 2, "once", "--continuous")
    assert.equal(0, (tiny.compare(folder.path, "once", "x")))
  end)
end)

describe("a gradient that one rank spoils", function()
  local function train(folder, name, ...)
    return tiny.must_train(folder, 2, name, "nonfinite=skip", "bad_rank=1", "poison_at=3", ...)
  end

  it("is skipped by both, counted and written down, and a resume goes on alike", function()
    local folder <close> = scratch.folder()
    local output, errors = train(folder.path, "x", "--continuous", "save_every=1", "keep=8")
    shows(output, "1 of 8 updates were skipped")
    assert.truthy(errors:find("\n +3/8 +skipped: the gradient norm, on rank 0, is not a number\n"))
    assert.is_nil(errors:find("nan", 1, true))
    local run = folder.path .. "/x"
    assert.same({ 8, 1 }, { updates_of(run), record_of(run).skipped })
    local items = {}
    for i, line in ipairs(tiny.timeless_lines(run .. "/metrics.jsonl")) do
      items[i] = json.decode(line)
      assert.equal(i == 3, items[i].skipped ~= nil)
      assert.equal(0, items[i].parameter_spread)
    end
    assert.is_nil(items[3].grad_norm)
    assert.is_false(items[3].finite)
    local function part(update, name)
      return scratch.read(("%s/checkpoints/step-%06d/%s"):format(run, update, name))
    end
    for _, name in ipairs { "parameters.safetensors", "optimizer.safetensors" } do
      assert.equal(part(2, name), part(3, name))
      assert.are_not.equal(part(3, name), part(4, name))
    end
    train(folder.path, "parts")
    train(folder.path, "parts", "--resume", "latest")
    assert.equal(0, (tiny.compare(folder.path, "x", "parts")))
    assert.equal(1, record_of(folder.path .. "/parts").skipped)
  end)
end)

-- A recipe whose plan has fewer steps than updates, on every rank or on one.
local short = [[
local marea = require "marea"
return marea.recipe {
  name = "short",
  config = { updates = 4, ranks = 2, batch_size_per_rank = 1, short_rank = -1 },
  corpus = function()
    local list = {}
    for i = 1, 6 do list[i] = { inputs = { 0 }, targets = { 0 }, split = "train" } end
    return marea.corpus.from { sequences = list, vocabulary = 1 }
  end,
  model = function()
    return marea.nn.Transformer { vocabulary = 1, context = 1, width = 4, hidden = 4, heads = 1,
                                  layers = 1 }
  end,
  optimizer = function(parameters) return marea.optim.SGD(parameters, { lr = 0.1 }) end,
  plan = function(_, c)
    local steps = { { { { 1 } }, { { 2 } } }, { { { 3 } }, { { 4 } } }, { { { 5 } }, { { 6 } } } }
    local rank = marea.world():rank()
    if c.short_rank >= 0 and rank ~= c.short_rank then steps[4] = { { { 1 } }, { { 2 } } } end
    return steps
  end,
}
]]

describe("running out of data", function()
  for _, case in ipairs { { "on all ranks", "short_rank=-1" }, { "on rank 1", "short_rank=1" } } do
    it(case[1] .. " is refused before training, by all, naming both numbers", function()
      local folder <close> = scratch.folder()
      scratch.write(folder.path .. "/short.lua", short)
      local code, _, errors = tiny.run(folder.path, 2, { "train", folder.path .. "/short.lua",
                                                         case[2] })
      assert.equal(2, code, errors)
      shows(errors, "short.lua:15: plan: expected at least 4 steps (config.updates), got 3")
      assert.equal(1, select(2, errors:gsub("expected at least", "")), errors)
      assert.is_false(core.file.exists(folder.path .. "/short"))
    end)
  end
end)
