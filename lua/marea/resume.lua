-- Going on from a checkpoint. Rank 0 finds and reads it; the others get from it what it read, so a
-- file that one rank does not see cannot part them: all go on, or none.

local checkpoint = require "marea.checkpoint"
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

---@class marea.ResumeSource
---@field folder string
---@field own boolean whether it is a checkpoint of the run itself
---@field problems string[] what is wrong with newer checkpoints

--- Finds the checkpoint that `--resume` names. All ranks call it.
--- Errors: code 2 when there is none, code 3 when it is damaged.
---@param world marea.World
---@param outputs string root folder of runs
---@param name string of the run that is to go on
---@param choice string "latest" or a folder
---@return marea.ResumeSource source
function resume.find(world, outputs, name, choice)
  local run_folder = outputs .. "/" .. name
  return json.decode(together.on_root(world, function()
    local folder, problems = saves.resolve(outputs, choice, run_folder)
    local own = is_own(run_folder, checkpoint.manifest(folder))
    return json.encode { folder = folder, own = own, problems = json.array(problems) }
  end))
end

local function check_world(opened, world)
  if opened.state.world ~= world:size() then
    fault.raise_at(2, "", "%s was saved on %d rank%s, and this run has %d: resume on as many, " ..
                   "or begin anew", opened.folder, opened.state.world,
                   opened.state.world == 1 and "" or "s", world:size())
  end
end

-- What all ranks need to know of a checkpoint that rank 0 has restored.
local function read_on_root(trainer, folder, current, accepted)
  local session, opened = trainer.session, checkpoint.open(folder)
  local parameters <close> = opened.parameters
  local optimizer <close> = opened.optimizer
  check_world(opened, trainer.world)
  local lock = lock_of.continue(opened.state.lock, current, accepted)
  state.restore_parameters(session.model, parameters)
  state.restore_optimizer(session.model, session.optimizer, optimizer)
  trainer.history = opened.history
  local shared = { lock = lock }
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
  trainer.update = shared.update
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
