-- What lies in a root folder of runs: the runs and their checkpoints.
-- Nothing is changed here, no checkpoint is opened, and no link is followed.

local core = require "marea.core"
local fault = require "marea.fault"
local form = require "marea.form"
local json = require "marea.json"
local run_of = require "marea.run"
local saves = require "marea.saves"

local inventory = {}

local record_form = form.record {
  id = form.text, run = form.optional(form.text), recipe = form.optional(form.text),
  outcome = form.text, started = form.text, ended = form.optional(form.text),
  began = form.optional(form.text), message = form.optional(form.text),
  update = form.integer, world = form.integer, config = form.record { updates = form.integer },
}

-- What marea's commands leave in a folder; one without any of this is not a run's.
local marks = { "run.json", "metrics.jsonl", "checkpoints", "lock.json", "plan.json",
                "evaluate.json", "parity.json", "reference.safetensors", "weigh.json",
                "exercise.json", "doctor.json" }

local tail_bytes = 64 * 1024 -- of a log, to find its last lines in

---@class marea.StoredRun
---@field name string
---@field folder string
---@field held_by? string "process PID on HOST" that uses it
---@field is_link boolean then nothing more is known of it
---@field aside boolean an older run that a fresh start moved aside
---@field record? table its run.json; nil when it was not trained
---@field problem? string what is wrong with run.json
---@field state? marea.StoredCheckpoint|false for clean.lua: the newest that verifies

---@class marea.StoredCheckpoint
---@field name string "step-000050", or "step-000050.1"
---@field folder string
---@field update integer
---@field aside boolean a resume went on from an earlier one, so it no longer counts

local function is_run(folder)
  for _, mark in ipairs(marks) do
    if core.file.exists(folder .. "/" .. mark) then return true end
  end
  return false
end

-- run.json as a table, or nil and what is wrong with it (nil when there is none).
local function read_record(folder)
  local path = folder .. "/run.json"
  if not core.file.exists(path) then return nil end
  local readable, text = pcall(core.file.read, path)
  if not readable then return nil, (fault.of(text)) end
  local record, problem = json.decode(text)
  problem = problem or form.problem(record, record_form)
  if not problem then return record end
  return nil, ("%s is damaged: %s"):format(path, problem)
end

-- A fresh start moves NAME to NAME.1: its record still says NAME, and its mark both. A folder that
-- somebody else gave a name has no such mark, or one that says another name.
local function is_aside(folder, name, record)
  local stem, path = name:match("^(.+)%.%d+$"), folder .. "/" .. run_of.aside_mark
  if not stem or not record or record.run ~= stem or not core.file.bytes(path) then return false end
  local mark = json.decode(core.file.read(path))
  return type(mark) == "table" and mark.run == stem and mark.to == name
end

local function describe(outputs, name)
  local folder = outputs .. "/" .. name
  local run = { name = name, folder = folder, is_link = core.file.is_link(folder), aside = false }
  if run.is_link then return run end
  run.record, run.problem = read_record(folder)
  run.aside = is_aside(folder, name, run.record)
  run.held_by = core.file.lock_holder(folder)
  return run
end

--- Reads what a run says of itself anew; what was found out about it is forgotten.
---@param run marea.StoredRun is changed
function inventory.look_again(run)
  run.record, run.problem = read_record(run.folder)
  run.aside, run.state = is_aside(run.folder, run.name, run.record), nil
end

local function by_natural_order(a, b)
  local stem_a, number_a = a.name:match("^(.-)%.?(%d*)$")
  local stem_b, number_b = b.name:match("^(.-)%.?(%d*)$")
  if stem_a ~= stem_b then return stem_a < stem_b end
  if #number_a ~= #number_b then return #number_a < #number_b end
  return number_a < number_b
end

--- Refuses, with code 2, a root that is a link: nothing is followed out of the folder that was
--- named.
---@param outputs string
function inventory.check_root(outputs)
  if core.file.is_link((outputs:gsub("(.)/+$", "%1"))) then
    fault.raise_at(2, "", "%s is a link; name the folder itself with --outputs", outputs)
  end
end

--- The runs in a root folder, by name; NAME.2 stands before NAME.10.
---@param outputs string
---@return marea.StoredRun[] runs none where there is no such folder
function inventory.runs(outputs)
  local runs = {}
  if not core.file.is_folder(outputs) then return runs end
  for _, name in ipairs(core.file.list(outputs)) do
    local folder = outputs .. "/" .. name
    if name:sub(1, 1) ~= "." and core.file.is_folder(folder) and is_run(folder) then
      runs[#runs + 1] = describe(outputs, name)
    end
  end
  table.sort(runs, by_natural_order)
  return runs
end

--- The run of a name, or of the folder that a path names.
--- Errors: code 2, with the nearest name, when there is none.
---@param outputs string
---@param word string
---@return marea.StoredRun run
function inventory.run(outputs, word)
  local name = word:gsub("(.)/+$", "%1")
  if name:sub(1, #outputs + 1) == outputs .. "/" then name = name:sub(#outputs + 2) end
  local names = {}
  for _, run in ipairs(inventory.runs(outputs)) do
    if run.name == name then return run end
    names[#names + 1] = run.name
  end
  fault.raise_at(2, "", "there is no run '%s' in %s%s", name, outputs,
                 require("marea.nearest").hint(name, names))
end

--- The checkpoints of a run, whatever is in them, the oldest first; also those that no longer
--- count.
---@param folder string of the run
---@return marea.StoredCheckpoint[] list
function inventory.checkpoints(folder)
  local root, list = folder .. "/checkpoints", {}
  if core.file.is_link(root) or not core.file.is_folder(root) then return list end
  for _, name in ipairs(core.file.list(root)) do
    local stem, aside = name:gsub("%.%d+$", "")
    local update = saves.update_of(stem)
    local folder_of_it = root .. "/" .. name
    if update and not core.file.is_link(folder_of_it) and core.file.is_folder(folder_of_it) then
      list[#list + 1] = { name = name, folder = folder_of_it, aside = aside > 0,
                          update = update }
    end
  end
  table.sort(list, function(a, b)
    if a.update ~= b.update then return a.update < b.update end
    return a.name < b.name
  end)
  return list
end

--- Bytes of all files in a folder or of one file; a link counts nothing.
---@param path string
---@return integer bytes
function inventory.bytes(path)
  if core.file.is_link(path) then return 0 end
  if not core.file.is_folder(path) then
    return core.file.bytes(path) or 0
  end
  local sum = 0
  for _, name in ipairs(core.file.list(path)) do
    sum = sum + inventory.bytes(path .. "/" .. name)
  end
  return sum
end

local line_form = form.record { update = form.integer, lr = form.number,
                                loss_per_token = form.optional(form.number) }

--- The last update that a run's log knows, and its loss.
---@param folder string of the run
---@return integer? update
---@return number? loss a token
function inventory.last_update(folder)
  local path = folder .. "/metrics.jsonl"
  local stream <close> = core.file.bytes(path) and io.open(path, "rb") or nil
  if not stream then return nil end
  local size = stream:seek("end")
  stream:seek("set", math.max(0, size - tail_bytes))
  local lines = {}
  for line in stream:read("a"):gmatch("([^\n]*)\n") do lines[#lines + 1] = line end
  for i = #lines, 1, -1 do
    local record = json.decode(lines[i])
    if not form.problem(record, line_form) then
      return record.update, record.loss_per_token
    end
  end
end

return inventory
