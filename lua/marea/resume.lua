-- Going on from a checkpoint. Rank 0 finds and reads it; the others get from it what it read, so a
-- file that one rank does not see cannot part them: all go on, or none.

local checkpoint = require "marea.checkpoint"
local core = require "marea.core"
local fault = require "marea.fault"
local json = require "marea.json"
local lock_of = require "marea.lock"
local saves = require "marea.saves"
local state = require "marea.state"
local together = require "marea.together"
local trainer_of = require "marea.trainer"

local resume = {}

local function is_own(run_folder, manifest)
  local good, id = pcall(saves.id_of, run_folder)
  return good and id == manifest.run
end

-- Whether each rank says so. All ranks call it.
local function answers(world, mine)
  return world:all_gather(core.host.from({ mine and 1 or 0 }, "i64")):values()
end

-- The ranks that gave an answer, in words; nil when none did.
local function ranks_with(list, answer)
  local ranks = {}
  for r, given in ipairs(list) do
    if given == answer then ranks[#ranks + 1] = tostring(r - 1) end
  end
  if #ranks == 0 then return nil end
  return (#ranks == 1 and "rank " or "ranks ") .. table.concat(ranks, ", ")
end

-- Rank 0 found nothing to go on from. Where others see what it does not, all say which.
local function raise_not_found(world, paths, problem)
  local message, code = fault.of(problem)
  if code ~= 2 or world:size() == 1 then error(problem, 0) end
  local sees = answers(world, core.file.exists(paths[1]) or core.file.exists(paths[2]))
  local others = ranks_with(sees, 1)
  if sees[1] == 1 or not others then error(problem, 0) end
  fault.raise_at(code, "", "rank 0, which reads for all, finds nothing to go on from, though %s " ..
                 "see%s it: %s", others, others:find(",", 1, true) and "" or "s", message)
end

---@class marea.ResumeSource
---@field folder string
---@field own boolean whether it is a checkpoint of the run itself
---@field problems string[] what is wrong with newer checkpoints
---@field unseen? string which ranks do not see it, in words

--- Finds the checkpoint that `--resume` names. All ranks call it; rank 0 looks, and the others go
--- by what it finds.
--- Errors, on all ranks: code 2 when there is none, code 3 when it is damaged.
---@param world marea.World
---@param outputs string root folder of runs
---@param name string of the run that is to go on
---@param choice string "latest" or a folder
---@return marea.ResumeSource source
function resume.find(world, outputs, name, choice)
  local run_folder = outputs .. "/" .. name
  local good, found = pcall(together.on_root, world, function()
    local folder, problems = saves.resolve(outputs, choice, run_folder)
    local own = is_own(run_folder, checkpoint.manifest(folder))
    return json.encode { folder = folder, own = own, problems = json.array(problems) }
  end)
  if not good then
    local paths = choice == "latest" and { run_folder .. "/run.json", run_folder .. "/run.json" } or
      { choice, outputs .. "/" .. choice }
    raise_not_found(world, paths, found)
  end
  local source = json.decode(found)
  local unseen = ranks_with(answers(world, core.file.exists(source.folder)), 0)
  if unseen then
    source.unseen = ("rank 0 reads %s for %s, which cannot see it"):format(source.folder, unseen)
  end
  return source
end

local function check_world(opened, world)
  if opened.state.world ~= world:size() then
    fault.raise_at(2, "", "%s was saved on %d rank%s, and this run has %d: resume on as many, " ..
                   "or begin anew", opened.folder, opened.state.world,
                   opened.state.world == 1 and "" or "s", world:size())
  end
end

-- Updates are no part of the lock, but a schedule may depend on them: what it gave the updates that
-- were done is what it must still give them.
local function schedule_differences(trainer, history)
  for update = 1, history:count() do
    local factor, now = history:get(update).factor, trainer.factor(update)
    if factor and factor ~= now then
      return { { field = "schedule", a = ("%.9g times lr at update %d"):format(factor, update),
                 b = ("%.9g"):format(now) } }
    end
  end
  return {}
end

-- What all ranks need to know of a checkpoint that rank 0 has restored.
local function read_on_root(trainer, folder, current, accepted)
  local session, opened = trainer.session, checkpoint.open(folder)
  local parameters <close> = opened.parameters
  local optimizer <close> = opened.optimizer
  check_world(opened, trainer.world)
  local lock = lock_of.continue(opened.state.lock, current, accepted,
                                schedule_differences(trainer, opened.history))
  state.restore_parameters(session.model, parameters)
  state.restore_optimizer(session.model, session.optimizer, optimizer)
  trainer.history = opened.history
  local shared = { lock = lock, tokens_seen = opened.history:tokens_seen() }
  for _, key in ipairs { "update", "microbatches", "sequences", "streams" } do
    shared[key] = opened.state[key]
  end
  return json.encode(shared)
end

--- Puts a trainer, at its beginning, into the state of a checkpoint. All ranks call it.
--- Errors, on all ranks: code 3 for damage, for tensors that do not fit the model, and for
--- differences of the lock that are not accepted; code 2 for another number of ranks.
---@param trainer marea.Trainer
---@param folder string
---@param current marea.Lock of the recipe as it is now
---@param accepted? string[] fields of the lock that may differ
---@param controls? string[] what to get wrong: "reseed-streams": the ranks' streams begin anew;
---  "restart-updates": dropout counts updates from 0 again
---@return marea.Lock lock the current lock, with all that was ever accepted
function resume.restore(trainer, folder, current, accepted, controls)
  local shared = json.decode(together.on_root(trainer.world, function()
    return read_on_root(trainer, folder, current, accepted)
  end))
  state.broadcast(trainer.world, trainer.session.model, trainer.session.optimizer)
  trainer.update, trainer.tokens_seen = shared.update, shared.tokens_seen
  trainer.microbatches, trainer.sequences = shared.microbatches, shared.sequences
  trainer.stream:restore(shared.streams[trainer.rank + 1])
  for _, control in ipairs(controls or {}) do
    if control == "reseed-streams" then
      trainer.stream = trainer_of.new_stream(trainer.config.seed, trainer.rank)
    elseif control == "restart-updates" then
      trainer.draws_from = shared.update
    end
  end
  return shared.lock
end

return resume
