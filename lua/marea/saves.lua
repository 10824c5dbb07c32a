-- The checkpoints of a run: RUN/checkpoints/step-000050 and so on. Ranks vote before anything is
-- written, rank 0 writes, and all learn whether it is there.

local checkpoint = require "marea.checkpoint"
local core = require "marea.core"
local fault = require "marea.fault"
local form = require "marea.form"
local json = require "marea.json"
local state = require "marea.state"
local together = require "marea.together"

local saves = {}

--- The folder of all checkpoints of a run.
---@param run_folder string
---@return string
function saves.folder(run_folder) return run_folder .. "/checkpoints" end

local function name_of(update) return ("step-%06d"):format(update) end

local function path_of(run_folder, update)
  return saves.folder(run_folder) .. "/" .. name_of(update)
end

--- The update that a checkpoint's folder is named after.
---@param name string without the folder that it is in
---@return integer? update nil for a name that is none of a checkpoint
function saves.update_of(name)
  local update = math.tointeger(tonumber(name:match("^step%-(%d+)$")))
  return update and name_of(update) == name and update or nil
end

--- The folders in a run that are named as checkpoints, whatever is in them, the oldest first.
---@param run_folder string
---@return {folder: string, update: integer}[] list
function saves.list(run_folder)
  local list, root = {}, saves.folder(run_folder)
  if not core.file.is_folder(root) then return list end
  for _, name in ipairs(core.file.list(root)) do
    local update = saves.update_of(name)
    if update then
      list[#list + 1] = { folder = root .. "/" .. name, update = update }
    end
  end
  table.sort(list, function(a, b) return a.update < b.update end)
  return list
end

--- The newest checkpoint of a run that verifies; for rank 0. What another run left in the folder
--- does not count.
--- Errors: code 2 when the run has none; code 3 when it has some, and all are damaged.
---@param run_folder string
---@param id string of the run
---@return string folder
---@return string[] problems what is wrong with newer ones
function saves.latest(run_folder, id)
  local problems, list = {}, saves.list(run_folder)
  for i = #list, 1, -1 do
    local good, result = pcall(checkpoint.verify, list[i].folder)
    if not good then
      local message, code = fault.of(result)
      if code ~= 3 then error(result, 0) end
      problems[#problems + 1] = message
    elseif result.run == id then
      return list[i].folder, problems
    end
  end
  if #problems > 0 then fault.raise_at(3, "", "%s", table.concat(problems, "; ")) end
  fault.raise_at(2, "", "the run %s has no checkpoint", run_folder)
end

-- --- saving -----------------------------------------------------------------------------------

-- Every rank's {ready, hash of its parameters, state of its stream}, in rank order.
local function gather_votes(trainer, ready)
  return together.gather(trainer.world, {
    ready = ready, hash = trainer.session.model:values():hash(), stream = trainer.stream:state() })
end

-- A rank that is not ready says why; the others hear of it where they wait for it.
local function check_ready(world, votes, problem)
  for r, vote in ipairs(votes) do
    if not vote.ready then
      if problem then error(problem, 0) end
      world:barrier()
      fault.raise_at(1, "", "rank %d could not save", r - 1)
    end
  end
end

local function check_equal(votes, update)
  for r, vote in ipairs(votes) do
    if vote.hash ~= votes[1].hash then
      fault.raise_at(6, "", "no checkpoint at update %d: the parameters are not the same on all " ..
                     "ranks (hash %s on rank 0, %s on rank %d): were they broadcast, and are " ..
                     "the gradients reduced?", update, votes[1].hash:sub(1, 12),
                     vote.hash:sub(1, 12), r - 1)
    end
  end
end

local function contents_of(trainer, votes, identity)
  local session, streams = trainer.session, {}
  for r, vote in ipairs(votes) do streams[r] = vote.stream end
  return {
    run = identity.id, history = trainer.history,
    parameters = state.parameters(session.model),
    optimizer = state.optimizer(session.model, session.optimizer),
    optimizer_metadata = state.optimizer_metadata(session.optimizer),
    state = {
      update = trainer.update, world = trainer.world:size(), streams = streams,
      microbatches = trainer.microbatches, sequences = trainer.sequences, lock = identity.lock,
    },
  }
end

-- Removes all but the newest `keep`, and never the one that was just written.
local function prune(run_folder, keep, written)
  local list = saves.list(run_folder)
  for i = 1, #list - keep do
    if list[i].folder ~= written then
      core.file.remove_folder(saves.folder(run_folder), list[i].folder:match("[^/]*$"))
    end
  end
end

--- Saves a checkpoint. All ranks call it after the same update.
--- Errors, on all ranks: code 1 when a rank could not write, code 6 when the ranks' parameters
--- differ. Then no checkpoint of this update is there, and older ones are as they were.
---@param run marea.Run
---@param trainer marea.Trainer
---@param identity {id: string, lock: marea.Lock}
---@return string folder
function saves.save(run, trainer, identity)
  local ready, problem = pcall(function()
    if trainer.journal then trainer.journal:sync() end
  end)
  local votes = gather_votes(trainer, ready)
  check_ready(trainer.world, votes, not ready and problem)
  check_equal(votes, trainer.update)
  return together.on_root(trainer.world, function()
    local folder = path_of(run.folder, trainer.update)
    checkpoint.write(folder, contents_of(trainer, votes, identity))
    prune(run.folder, trainer.config.keep, folder)
    return folder
  end)
end

-- What a killed process was writing; the run's lock is held, so nobody else is.
local function remove_unfinished(root)
  if not core.file.is_folder(root) then return end
  for _, name in ipairs(core.file.list(root)) do
    if name:find("^%.step%-%d+%.partial%-") then core.file.remove_folder(root, name) end
  end
end

--- Makes an update the newest one of a run that goes on from it; for rank 0. Checkpoints behind it
--- stay beside the others under names that are none of a checkpoint.
---@param run_folder string
---@param update integer
---@return string[] moved their new paths
function saves.rewind(run_folder, update)
  local moved = {}
  remove_unfinished(saves.folder(run_folder))
  for _, item in ipairs(saves.list(run_folder)) do
    if item.update > update then
      local number = 1
      while core.file.exists(("%s.%d"):format(item.folder, number)) do number = number + 1 end
      local to = ("%s.%d"):format(item.folder, number)
      core.file.move(item.folder, to)
      moved[#moved + 1] = to
    end
  end
  return moved
end

-- --- finding ----------------------------------------------------------------------------------

--- The identity that a run was given when it began, from its run.json; for rank 0.
--- Errors: code 2 where no run was trained, code 3 for a run.json that is none.
---@param run_folder string
---@return string id
function saves.id_of(run_folder)
  local path = run_folder .. "/run.json"
  if not core.file.exists(path) then
    fault.raise_at(2, "", "%s holds no run that was trained", run_folder)
  end
  local record, problem = json.decode(core.file.read(path))
  problem = problem or form.problem(record, form.record { id = form.text })
  if problem then fault.raise_at(3, "", "%s is damaged: %s", path, problem) end
  return record.id
end

--- The checkpoint that a word names; for rank 0: a checkpoint's folder, or the latest one of a run,
--- which is named by its folder or below the root folder. "latest" is that of the run `own`. Bytes
--- of a checkpoint that was named itself are not checked yet.
--- Errors: code 2 when it names nothing of this, and as saves.latest.
---@param outputs string root folder of runs
---@param word string
---@param own? string folder of the run that "latest" is of
---@return string folder
---@return string[] problems newer checkpoints of the run that are damaged
function saves.resolve(outputs, word, own)
  if own and word == "latest" then return saves.latest(own, saves.id_of(own)) end
  local path = word:gsub("(.)/+$", "%1")
  if core.file.exists(path .. "/manifest.json") then return path, {} end
  for _, folder in ipairs { path, outputs .. "/" .. path } do
    if core.file.exists(folder .. "/run.json") then
      return saves.latest(folder, saves.id_of(folder))
    end
  end
  if path:find("step%-%d+$") and core.file.is_folder(path) then
    checkpoint.manifest(path) -- says what is missing
  end
  fault.raise_at(2, "", "%s is neither a checkpoint nor a run", word)
end

return saves
