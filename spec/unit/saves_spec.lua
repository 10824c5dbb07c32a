-- The checkpoints of a run: whole wherever a call fails, pruned, found, and taken out of the line.

local core = require "marea.core"
local checkpoint = require "marea.checkpoint"
local fault = require "marea.fault"
local history_of = require "marea.history"
local journal_of = require "marea.journal"
local recipe_of = require "marea.recipe"
local run_of = require "marea.run"
local saves = require "marea.saves"
local training = require "marea.training"
local trainer_of = require "marea.trainer"
local world_of = require "marea.world"
local scratch = dofile "spec/support/scratch.lua"
local small = dofile "spec/support/small_checkpoint.lua"

-- A trainer of the tiny recipe with a run's folder and logs.
local function begin(folder, overrides)
  local recipe = recipe_of.require("spec/recipes/tiny.lua", { "ranks=1", table.unpack(overrides) },
                                   1)
  local session, prepared = training.session(recipe, world_of.get())
  local run = run_of.open { outputs = folder, name = "x", way = "fresh", world = session.world }
  local trainer = trainer_of.new(session, { history = history_of.new(),
                                            journal = journal_of.open(run, 0) })
  return trainer, run, { id = "spec", lock = prepared.lock }
end

local function updates_of(run_folder)
  local updates = {}
  for i, item in ipairs(saves.list(run_folder)) do
    assert.are.equal(item.update, checkpoint.verify(item.folder).update)
    updates[i] = item.update
  end
  return updates
end

local function names(folder) return core.file.list(folder .. "/checkpoints") end

describe("saving", function()
  it("leaves old and new checkpoints whole, whichever call of the file layer fails", function()
    local folder <close> = scratch.folder()
    local trainer, run <close>, identity = begin(folder.path, {})
    trainer:advance()
    saves.save(run, trainer, identity)
    trainer:advance()
    local failures = 0
    repeat
      core.file.fail_at(failures + 1)
      local good, problem = pcall(saves.save, run, trainer, identity)
      core.file.fail_at(0)
      if not good then
        failures = failures + 1
        assert.are.equal(1, select(2, fault.of(problem)), tostring(problem))
        local updates = updates_of(run.folder)
        assert.are.equal(1, updates[1])
        assert.are.equal(#updates, #names(run.folder), "something was left behind")
      end
    until good
    assert.is_true(failures > 20, failures .. " calls failed")
    assert.are.same({ 1, 2 }, updates_of(run.folder))
    trainer.journal:close()
  end)

  it("writes the same bytes for the same state", function()
    local folder <close> = scratch.folder()
    local texts = {}
    for i = 1, 2 do
      local trainer, run <close>, identity = begin(folder.path .. "/" .. i, { "dropout=0.2" })
      identity.id = "run " .. i
      for _ = 1, 2 do trainer:advance() end
      local saved = saves.save(run, trainer, identity)
      for _, name in ipairs(core.file.list(saved)) do
        texts[name] = texts[name] or {}
        texts[name][i] = scratch.read(saved .. "/" .. name)
      end
      trainer.journal:close()
    end
    for name, pair in pairs(texts) do
      assert.are.equal(name ~= "manifest.json", pair[1] == pair[2], name)
    end
  end)

  it("keeps `keep` of them, the newest", function()
    local folder <close> = scratch.folder()
    local trainer, run <close>, identity = begin(folder.path, { "keep=1" })
    for _ = 1, 3 do
      trainer:advance()
      saves.save(run, trainer, identity)
    end
    assert.are.same({ 3 }, updates_of(run.folder))
    trainer.journal:close()
  end)
end)

describe("the latest checkpoint", function()
  local function expect_fault(code, text, ...)
    local good, problem = pcall(...)
    assert.is_false(good)
    local message, found = fault.of(problem)
    assert.are.equal(code, found, message)
    assert.is_truthy(message:find(text, 1, true), message)
  end

  it("is the newest of the run that verifies", function()
    local folder <close> = scratch.folder()
    local root = folder.path .. "/checkpoints/"
    expect_fault(2, "has no checkpoint", saves.latest, folder.path, "mine")
    small.write(root .. "step-000010", "mine", 10)
    small.write(root .. "step-000020", "mine", 20)
    small.write(root .. "step-000030", "other", 30)
    small.write(root .. "step-40", "mine", 40) -- not a name that marea gives
    assert.are.equal(root .. "step-000020", (saves.latest(folder.path, "mine")))
    local state = scratch.read(root .. "step-000020/state.json")
    scratch.write(root .. "step-000020/state.json", (state:gsub("1001 2", "1001 3")))
    local found, problems = saves.latest(folder.path, "mine")
    assert.are.equal(root .. "step-000010", found)
    assert.are.equal(1, #problems)
    assert.is_truthy(problems[1]:find("step-000020/state.json is damaged", 1, true), problems[1])
    os.remove(root .. "step-000010/history.jsonl")
    expect_fault(3, "step-000010/history.jsonl is damaged", saves.latest, folder.path, "mine")
  end)

  it("is an older one where a folder or a pipe stands for a file of the newest", function()
    local folder <close> = scratch.folder()
    for _, name in ipairs(small.files) do
      for _, make in ipairs { "mkdir", "mkfifo" } do
        local run = ("%s/%s-%s"):format(folder.path, make, name)
        for update = 1, 2 do
          small.write(("%s/checkpoints/step-%06d"):format(run, update), "x", update)
        end
        local path = run .. "/checkpoints/step-000002/" .. name
        assert(os.execute(("rm '%s' && %s '%s'"):format(path, make, path)))
        local found, problems = saves.latest(run, "x")
        assert.are.equal(run .. "/checkpoints/step-000001", found)
        assert.are.equal(1, #problems)
        assert.is_truthy(problems[1]:find(path .. " is damaged: ", 1, true), problems[1])
        assert.is_truthy(problems[1]:find("it is no regular file", 1, true), problems[1])
      end
    end
  end)

  it("never mixes two checkpoints: a file of another one is refused by name", function()
    local folder <close> = scratch.folder()
    local root = folder.path .. "/checkpoints/"
    for _, name in ipairs { "parameters.safetensors", "optimizer.safetensors", "state.json",
                            "history.jsonl" } do
      small.write(root .. "step-000010", "mine", 10)
      small.write(root .. "step-000020", "mine", 20)
      -- A part of other content stands for the file that a kill between two files leaves.
      local bytes = scratch.read(root .. "step-000010/" .. name)
      scratch.write(root .. "step-000020/" .. name, (bytes:gsub(".$", "\1")))
      expect_fault(3, "step-000020/" .. name, checkpoint.open, root .. "step-000020")
    end
  end)

  it("moves back when a run goes on from an older one", function()
    local folder <close> = scratch.folder()
    local root = folder.path .. "/checkpoints/"
    for update = 10, 30, 10 do
      small.write(("%sstep-%06d"):format(root, update), "mine", update)
    end
    core.file.make_folder(root .. ".step-000040.partial-12")
    assert.are.same({ root .. "step-000020.1", root .. "step-000030.1" },
                    saves.rewind(folder.path, 10))
    assert.are.same({ "step-000010", "step-000020.1", "step-000030.1" }, names(folder.path))
    assert.are.equal(root .. "step-000010", (saves.latest(folder.path, "mine")))
    small.write(root .. "step-000020", "mine", 20)
    assert.are.same({ root .. "step-000020.2" }, saves.rewind(folder.path, 10))
  end)

  it("is found by a run's name, its folder, or the checkpoint's", function()
    local folder <close> = scratch.folder()
    local run = folder.path .. "/tide"
    small.write(run .. "/checkpoints/step-000010", "mine", 10)
    scratch.write(run .. "/run.json", '{"id": "mine"}')
    local expected = run .. "/checkpoints/step-000010"
    for _, word in ipairs { "tide", run, run .. "/", expected, expected .. "/" } do
      assert.are.equal(expected, (saves.resolve(folder.path, word)))
    end
    assert.are.equal(expected, (saves.resolve("elsewhere", "latest", run)))
    expect_fault(2, "nix is neither a checkpoint nor a run", saves.resolve, folder.path, "nix")
    scratch.write(run .. "/run.json", '{"id": ')
    expect_fault(3, "run.json is damaged", saves.resolve, folder.path, "tide")
    os.remove(expected .. "/manifest.json")
    expect_fault(3, "is no checkpoint: it has no manifest.json", saves.resolve, folder.path,
                 expected)
  end)
end)
