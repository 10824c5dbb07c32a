-- Saving on several ranks: all learn whether a checkpoint is there, whoever could not write; and a
-- resume gives each rank what was its own.

local core = require "marea.core"
local fault = require "marea.fault"
local history_of = require "marea.history"
local journal_of = require "marea.journal"
local recipe_of = require "marea.recipe"
local resume = require "marea.resume"
local run_of = require "marea.run"
local saves = require "marea.saves"
local together = require "marea.together"
local trainer_of = require "marea.trainer"
local training = require "marea.training"
local world_of = require "marea.world"
local lfs = require "lfs"
local cases = dofile "spec/support/cases.lua"
local scratch = dofile "spec/support/scratch.lua"

local world = world_of.get()
local size, rank = world:size(), world:rank()

local function begin(folder, ...)
  local recipe = recipe_of.require("spec/recipes/tiny.lua",
                                   { ("ranks=%d"):format(size), ... }, size)
  local session, prepared = training.session(recipe, world)
  local run = run_of.open { outputs = folder, name = "x", way = "any", world = world }
  local trainer = trainer_of.new(session, { history = history_of.new() })
  return trainer, run, { id = "spec", lock = prepared.lock }
end

local function number_on_all(value)
  local values = world:all_gather(core.from({ value }, "i64")):values()
  for _, other in ipairs(values) do assert.are.equal(values[1], other) end
  return value
end

describe("a save", function()
  it("that fails on rank 0 fails on all with its message, and the older one counts", function()
    local folder <close> = cases.folder()
    local trainer, run <close>, identity = begin(folder.path)
    trainer:advance()
    saves.save(run, trainer, identity)
    trainer:advance()
    if rank == 0 then core.file.fail_at(4) end
    local good, problem = pcall(saves.save, run, trainer, identity)
    core.file.fail_at(0)
    assert.is_false(good)
    local message, code = fault.of(problem)
    assert.are.equal(1, code)
    number_on_all(#message)
    local latest = together.on_root(world, function()
      return (saves.latest(run.folder, "spec"))
    end)
    assert.is_truthy(latest:find("step-000001", 1, true))
    assert.is_truthy(saves.save(run, trainer, identity):find("step-000002", 1, true))
  end)

  it("that finds the ranks' parameters apart is refused by all", function()
    local folder <close> = cases.folder()
    local trainer, run <close>, identity = begin(folder.path)
    trainer:advance()
    if rank == size - 1 and size > 1 then trainer.session.model:values():set_(1, 42) end
    local good, problem = pcall(saves.save, run, trainer, identity)
    assert.are.equal(size == 1, good)
    if size > 1 then
      local message, code = fault.of(problem)
      assert.are.equal(6, code)
      assert.is_truthy(message:find(("on rank %d"):format(size - 1), 1, true), message)
    end
    local count = together.on_root(world, function() return #saves.list(run.folder) .. "" end)
    assert.are.equal(size == 1 and "1" or "0", count)
  end)
end)

describe("a resume", function()
  it("gives each rank its own stream and all the rest of rank 0", function()
    local folder <close> = cases.folder()
    local trainer, run <close>, identity = begin(folder.path, "updates=6")
    for _ = 1, 3 do trainer:advance() end
    for _ = 1, 3 * rank do trainer.stream:next() end -- ranks may have drawn unequally
    local saved = saves.save(run, trainer, identity)
    run:close()
    local again, _ <close>, now = begin(folder.path, "updates=6")
    again.session.model:values():fill_(rank)
    resume.restore(again, saved, now.lock)
    assert.are.equal(trainer.stream:state(), again.stream:state())
    assert.are.equal(trainer.session.model:values():hash(), again.session.model:values():hash())
    assert.are.equal(3, again.session.optimizer:steps())
    for update = 4, 6 do
      local a, b = trainer:advance(), again:advance()
      assert.are.equal(update, b.update)
      assert.are.equal(a.loss_per_token, b.loss_per_token)
      assert.are.equal(a.grad_norm, b.grad_norm)
      assert.are.equal(a.bytes_sent, b.bytes_sent)
    end
    for name, flat in pairs(trainer.session.optimizer:state()) do
      assert.are.equal(flat:hash(), again.session.optimizer:state()[name]:hash())
    end
    assert.are.equal(trainer.session.model:values():hash(), again.session.model:values():hash())
    assert.are.same(trainer.sequences, again.sequences)
    if rank == 0 then assert.are.equal(trainer.history:hash(), again.history:hash()) end
  end)

  it("draws next what it would have drawn, whatever is set up or evaluated before", function()
    local folder <close> = cases.folder()
    local trainer, run <close>, identity = begin(folder.path, "updates=4")
    for _ = 1, 2 do trainer:advance() end
    local saved = saves.save(run, trainer, identity)
    local expected = trainer.stream:state()
    run:close()
    for _, evaluated in ipairs { false, true } do
      local again, _ <close>, now = begin(folder.path, "updates=4")
      resume.restore(again, saved, now.lock)
      if evaluated then require("marea.evaluate").split(again.session, "validation") end
      assert.are.equal(expected, again.stream:state())
    end
  end)

  it("is refused on all ranks alike when rank 0 finds no checkpoint", function()
    local folder <close> = cases.folder()
    local good, problem = pcall(resume.find, world, folder.path, "x", "latest")
    assert.is_false(good)
    local message, code = fault.of(problem)
    assert.are.equal(2, code)
    assert.is_truthy(message:find("holds no run that was trained", 1, true), message)
    number_on_all(#message)
  end)
end)

describe("a checkpoint that only some ranks see", function()
  -- Looks for a run by a path that leads to it on some ranks only, as on disks of their own.
  local function find(folder, sees)
    local trainer, run <close>, identity = begin(folder, "updates=2")
    trainer:advance()
    saves.save(run, trainer, identity)
    together.on_root(world, function()
      core.file.write(run:path("run.json"), '{"id": "spec"}')
      core.file.make_folder(folder .. "/elsewhere")
    end)
    local here = lfs.currentdir()
    lfs.chdir(sees and folder or folder .. "/elsewhere")
    local good, found = pcall(resume.find, world, ".", "x", "latest")
    lfs.chdir(here)
    return good, found
  end

  it("is the one that all go on from, if rank 0 does: the others are named", function()
    local folder <close> = cases.folder()
    local good, source = find(folder.path, rank == 0)
    assert.is_true(good, tostring(source))
    assert.are.equal("./x/checkpoints/step-000001", source.folder)
    assert.is_true(source.own)
    local others = size == 2 and "rank 1" or size == 3 and "ranks 1, 2" or "ranks 1, 2, 3"
    assert.are.equal(size > 1 and "rank 0 reads ./x/checkpoints/step-000001 for " .. others ..
                     ", which cannot see it" or nil, source.unseen)
  end)

  it("is refused by all if rank 0 does not, and the ranks that do are named", function()
    local folder <close> = cases.folder()
    local good, problem = find(folder.path, rank ~= 0)
    assert.is_false(good)
    local message, code = fault.of(problem)
    assert.are.equal(2, code)
    number_on_all(#message)
    if size == 1 then return end
    local expected = size == 2 and "though rank 1 sees it: " or "though ranks 1, 2"
    assert.is_truthy(message:find("rank 0, which reads for all, finds nothing to go on from, " ..
                                  expected, 1, true), message)
  end)
end)

describe("the logs of a run", function()
  it("are cut where it goes on, each rank's its own", function()
    local folder <close> = cases.folder()
    local run <close> = run_of.open { outputs = folder.path, name = "x", way = "any",
                                      world = world }
    do
      local journal <close> = journal_of.open(run, 0)
      for update = 1, 4 do
        journal:write_metrics { update = update }
        journal:begin_rank { update = update, rank = rank }
      end
    end
    local torn = assert(io.open(run:rank_log(), "a"))
    torn:write('{"update":5')
    torn:close()
    do
      local journal <close> = journal_of.open(run, 2)
      journal:begin_rank { update = 3, rank = 100 + rank }
    end
    assert.are.equal(('{"rank":%d,"update":1}\n{"rank":%d,"update":2}\n{"rank":%d,"update":3}\n')
                     :format(rank, rank, 100 + rank), scratch.read(run:rank_log()))
    world:barrier()
    if rank == 0 then
      assert.are.equal('{"update":1}\n{"update":2}\n', scratch.read(run:path("metrics.jsonl")))
    end
  end)
end)
