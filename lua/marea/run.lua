-- Run folders: outputs/NAME, where NAME is the recipe's unless another is given. Rank 0 makes and
-- writes them, under a lock that keeps a second process out; other ranks only read.

local core = require "marea.core"
local fault = require "marea.fault"
local json = require "marea.json"
local options = require "marea.options"
local together = require "marea.together"

---@class marea.RunOptions
---@field name string
---@field world marea.World
---@field way "fresh"|"existing"|"any" fresh moves a trained run aside; existing must be there
---@field outputs? string folder of all runs (default "outputs")
---@field beside? boolean also while another process holds the folder, and without holding it: for
---  those who add a file of their own and change nothing (default false)

---@class marea.Run
---@field name string
---@field folder string
---@field moved_to string? where an older run went
local Run = {}
Run.__index = Run

local run = {}

--- The file that a run has once a fresh start moved it aside: {run = its name, to = the new one}.
run.aside_mark = "moved-aside.json"

-- What only a run that was trained has.
local marks_of_training = { "run.json", "metrics.jsonl", "checkpoints" }

local function check_name(name)
  if type(name) ~= "string" or not name:find("^%w[%w_.-]*$") then
    fault.raise_at(2, "", "a run's name becomes a folder: expected letters, digits, '_', '-' " ..
                   "and '.', got %q", tostring(name))
  end
end

-- outputs/NAME.1, or the first number that is free.
local function free_name(folder)
  local number = 1
  while core.file.exists(folder .. "." .. number) do number = number + 1 end
  return folder .. "." .. number
end

local function was_trained(folder)
  for _, mark in ipairs(marks_of_training) do
    if core.file.exists(folder .. "/" .. mark) then return true end
  end
  return false
end

-- Moves an older run aside, with a mark by which inventory.lua knows it again; returns where it
-- went, or nil when there was none.
local function make_room(folder)
  if not was_trained(folder) then return nil end
  local moved_to = free_name(folder)
  json.write(folder .. "/" .. run.aside_mark,
             { run = folder:match("[^/]*$"), to = moved_to:match("[^/]*$") })
  core.file.move(folder, moved_to)
  return moved_to
end

--- Opens a run's folder on all ranks, to write into it.
--- Errors, on all ranks alike: code 4 when another process holds the folder, code 2 for a name that
--- is no folder's or a run that is not there, code 1 for a disk that fails.
---@param given marea.RunOptions
---@return marea.Run
function run.open(given)
  options.check(given, "run.open", { "outputs", "name", "way", "world", "beside" })
  check_name(given.name)
  local outputs = given.outputs or "outputs"
  if outputs == "" then fault.raise_at(2, "", '--outputs must name a folder, got ""') end
  local self = setmetatable({ name = given.name, folder = outputs .. "/" .. given.name,
                              world = given.world }, Run)
  self.rank = given.world:rank()
  -- Nothing is written before all ranks have come this far.
  if given.world:size() > 1 then given.world:barrier() end
  self.moved_to = together.on_root(given.world, function()
    if given.way == "existing" and not core.file.is_folder(self.folder) then
      fault.raise_at(2, "", "there is no run %s", self.folder)
    end
    core.file.make_folder(outputs)
    self.lock = not given.beside and core.file.lock(self.folder) or nil
    local moved_to = given.way == "fresh" and make_room(self.folder) or nil
    core.file.make_folder(self.folder)
    return moved_to
  end)
  return self
end

--- What opening a run's folder anew would do; nothing is done. Errors: code 2 for a name that is no
--- folder's.
---@param outputs string
---@param name string
---@return {folder: string, moved_to?: string, held_by?: string} place moved_to: where an older run
---  would go; held_by: who uses the folder
function run.preview(outputs, name)
  check_name(name)
  local folder = outputs .. "/" .. name
  return { folder = folder, moved_to = was_trained(folder) and free_name(folder) or nil,
           held_by = core.file.lock_holder(folder) }
end

--- The path of something in the run's folder.
---@param name string such as "run.json"
---@return string path
function Run:path(name)
  return self.folder .. "/" .. name
end

--- Whether this rank writes.
---@return boolean
function Run:writes()
  return self.rank == 0
end

--- Whether the folder holds a run that was trained, and not only what other commands left.
---@return boolean
function Run:was_trained()
  return was_trained(self.folder)
end

--- Whether the run's folder holds something of that name.
---@param name string
---@return boolean
function Run:has(name)
  return core.file.exists(self:path(name))
end

--- The path of this rank's own log.
---@return string path
function Run:rank_log()
  return self:path(("rank-%d.jsonl"):format(self.rank))
end

--- Gives the folder free for other processes. Also called when a <close> variable ends.
function Run:close()
  if self.lock then self.lock:close() end
  self.lock = nil
end

Run.__close = Run.close

return run
