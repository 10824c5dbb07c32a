-- Requests to stop a run from outside: a file in its folder that names the process that is meant.
-- Rank 0 looks for it once an update. So whoever may write there can ask, from any host that shares
-- the folder, and what was meant for an earlier process stops no later one.

local core = require "marea.core"
local fault = require "marea.fault"
local json = require "marea.json"

local stop_request = {}

local function path_of(folder) return folder .. "/stop" end

-- Whether run.json says that a training is under way.
local function is_training(folder)
  local path = folder .. "/run.json"
  local record = core.file.exists(path) and json.decode(core.file.read(path))
  return type(record) == "table" and record.outcome == "running"
end

--- Asks the process that trains a run to save and stop.
--- Errors: code 2 where nobody trains it, code 1 for a disk that fails.
---@param folder string of the run
---@return string holder "process PID on HOST"
function stop_request.ask(folder)
  if not core.file.is_folder(folder) then
    fault.raise_at(2, "", "there is no run %s", folder)
  end
  local holder = core.file.lock_holder(folder)
  if not holder or not is_training(folder) then
    fault.raise_at(2, "", "nobody trains %s now", folder)
  end
  core.file.write(path_of(folder), holder .. "\n")
  return holder
end

--- Begins to watch for requests; for rank 0 while it holds the run's folder. One that is there
--- already was meant for another process, and goes.
---@param folder string of the run
---@return fun(): boolean is_asked whether this process was asked to stop
function stop_request.watch(folder)
  local path, asked = path_of(folder), false
  local wanted = (core.file.lock_holder(folder) or "") .. "\n"
  if core.file.exists(path) then core.file.remove(path) end
  return function()
    if not asked and core.file.exists(path) and core.file.read(path) == wanted then
      asked = true
      core.file.remove(path)
    end
    return asked
  end
end

return stop_request
