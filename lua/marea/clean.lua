-- What of a root folder of runs need not be kept, and its removal.
--
-- The newest state that verifies stays: the newest such checkpoint of a run, and where a run has
-- none yet, the newest older run that was moved aside from it and has one. A run in use is left
-- alone, and so is whatever is a link or was written by another run. What is not named as marea
-- names it is never looked at.

local checkpoint = require "marea.checkpoint"
local core = require "marea.core"
local fault = require "marea.fault"
local inventory = require "marea.inventory"
local leftovers = require "marea.leftovers"

local clean = {}

---@class marea.Waste
---@field name string below the root
---@field path string
---@field kind "run"|"checkpoint"|"leftover"|"lock"
---@field reason string
---@field bytes integer

---@class marea.LeftAlone
---@field path string
---@field reason string

---@class marea.CleanOptions
---@field outputs string
---@field runs string[] names; none: all
---@field all? boolean whole runs, with the state that would stay
---@field yes? boolean remove what is found

---@class marea.Cleaning
---@field waste marea.Waste[] was removed, where options.yes asked for it
---@field left marea.LeftAlone[]

local function add(list, outputs, name, kind, reason)
  local path = outputs .. "/" .. name
  list[#list + 1] = { name = name, path = path, kind = kind, reason = reason,
                      bytes = inventory.bytes(path) }
end

local function leave(found, path, reason)
  table.insert(found.left, { path = path, reason = reason })
end

-- --- checkpoints --------------------------------------------------------------------------------

-- What is wrong with a checkpoint as one of the run, or nil. `look` is how closely it is looked at.
local function problem_of(run, item, look)
  local good, result = pcall(look, item.folder)
  if good then return result.run ~= run.record.id and "foreign" or nil end
  if select(2, fault.of(result)) ~= 3 then error(result, 0) end
  return "damaged"
end

-- The newest checkpoint of a run that verifies, or nil; every byte is read, once.
local function state_of(run)
  if run.state == nil then
    run.state = false
    local list = run.record and inventory.checkpoints(run.folder) or {}
    for i = #list, 1, -1 do
      if not list[i].aside and not problem_of(run, list[i], checkpoint.verify) then
        run.state = list[i]
        break
      end
    end
  end
  return run.state or nil
end

local function add_checkpoints(found, list, options, run)
  local state, root = state_of(run), run.folder .. "/checkpoints"
  if core.file.is_link(root) then return leave(found, root, "it is a link") end
  local items = inventory.checkpoints(run.folder)
  if not state then
    if #items > 0 then leave(found, root, "none of its checkpoints verifies") end
    return
  end
  for _, item in ipairs(items) do
    local problem = problem_of(run, item, checkpoint.manifest)
    local name = ("%s/checkpoints/%s"):format(run.name, item.name)
    local stranger = item.name ~= state.name and leftovers.stranger(item.folder)
    if stranger then
      leave(found, item.folder, ("it holds %s, which is not marea's"):format(stranger))
    elseif problem == "foreign" then
      leave(found, item.folder, "it was written by another run")
    elseif item.aside then
      add(list, options.outputs, name, "checkpoint", "a resume went on from an earlier one")
    elseif item.update < state.update then
      add(list, options.outputs, name, "checkpoint", "older than " .. state.name)
    elseif item.update > state.update then
      add(list, options.outputs, name, "checkpoint", "damaged")
    end
  end
end

-- --- runs ---------------------------------------------------------------------------------------

local function began(run) return run.record.began or run.record.started or "" end

-- For each name of a run: the run moved aside that stays, since nothing newer has a state.
local function last_resorts(runs)
  local current, aside, stays = {}, {}, {}
  for _, run in ipairs(runs) do
    if run.aside then
      local name = run.record.run
      aside[name] = aside[name] or {}
      table.insert(aside[name], run)
    elseif not run.is_link then
      current[run.name] = run
    end
  end
  for name, list in pairs(aside) do
    table.sort(list, function(a, b) return began(a) > began(b) end)
    if not (current[name] and state_of(current[name])) then
      for _, run in ipairs(list) do
        if not stays[name] and state_of(run) then stays[name] = run end
      end
    end
  end
  return stays
end

local function add_leftovers(list, outputs, run)
  for _, item in ipairs(leftovers.of(outputs, run)) do
    add(list, outputs, item.name, "leftover",
        ("left by process %d, which is gone"):format(item.pid))
  end
end

-- What of a run need not be kept.
local function examine(found, options, run, stays)
  local list = {}
  if options.all then
    add(list, options.outputs, run.name, "run", run.aside and "moved aside" or "--all")
  elseif run.aside and stays[run.record.run] == run then
    leave(found, run.folder, ("it has the newest state of %s"):format(run.record.run))
  elseif run.aside then
    add(list, options.outputs, run.name, "run", "an older run, moved aside")
  else
    if run.record then add_checkpoints(found, list, options, run) end
    add_leftovers(list, options.outputs, run)
  end
  return list
end

local function remove(outputs, list)
  for _, item in ipairs(list) do core.file.remove_folder(outputs, item.name) end
end

local function visit(found, options, run, stays)
  if run.is_link then return leave(found, run.folder, "it is a link") end
  if run.held_by then return leave(found, run.folder, "it is in use by " .. run.held_by) end
  if run.problem then return leave(found, run.folder, run.problem) end
  local lock <close> = options.yes and core.file.lock(run.folder) or nil
  if lock then inventory.look_again(run) end
  local list = examine(found, options, run, stays)
  if lock then remove(options.outputs, list) end
  table.move(list, 1, #list, #found.waste + 1, found.waste)
end

-- Somebody may take a run between the look at its lock and our own.
local function try_visit(found, options, run, stays)
  local good, problem = pcall(visit, found, options, run, stays)
  if good then return end
  local message, code = fault.of(problem)
  if code ~= 4 then error(problem, 0) end
  leave(found, run.folder, message)
end

-- The runs that were named, and the older ones that were moved aside from them.
local function choose(options, runs)
  if #options.runs == 0 then return runs end
  local chosen, list = {}, {}
  for _, word in ipairs(options.runs) do
    chosen[inventory.run(options.outputs, word).name] = true
  end
  for _, run in ipairs(runs) do
    if chosen[run.name] or run.aside and chosen[run.record.run] then list[#list + 1] = run end
  end
  return list
end

-- --- beside the runs ----------------------------------------------------------------------------

-- Taken and given back, the file of a lock is gone; one that somebody takes meanwhile stays.
local function remove_lock(outputs, name)
  core.file.lock(outputs .. "/" .. name:match("^%.(.+)%.lock$")):close()
end

local function clean_root(found, options)
  local outputs, list = options.outputs, {}
  for _, name in ipairs(leftovers.locks(outputs)) do
    add(list, outputs, name, "lock", "held by nobody")
    if options.yes then remove_lock(outputs, name) end
  end
  table.move(list, 1, #list, #found.waste + 1, found.waste)
end

--- Finds what need not be kept, and removes it where options.yes says so.
--- Errors: code 2 for a root that is a link and for runs that are not there; code 1 for the disk.
---@param options marea.CleanOptions
---@return marea.Cleaning found
function clean.run(options)
  inventory.check_root(options.outputs)
  local found, runs = { waste = {}, left = {} }, inventory.runs(options.outputs)
  local stays = options.all and {} or last_resorts(runs)
  for _, run in ipairs(choose(options, runs)) do try_visit(found, options, run, stays) end
  if #options.runs == 0 then clean_root(found, options) end
  return found
end

return clean
