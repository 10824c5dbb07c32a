-- What killed processes left below a root folder of runs: files and checkpoints that were not
-- finished, and locks. A name alone proves nothing: only what lies where marea writes it, is named
-- as marea names it and holds what marea puts there is listed; anything else is somebody's own.

local core = require "marea.core"
local run_of = require "marea.run"
local saves = require "marea.saves"

local leftovers = {}

---@class marea.Leftover
---@field name string below the root
---@field pid integer of the process that left it

-- The files that marea's commands write into a run's folder as a whole.
local run_files = {}
for _, name in ipairs {
  "run.json", "metrics.jsonl", "lock.json", "plan.json", "corpus-card.json", "corpus.safetensors",
  "evaluate.json", "parity.json", "reference.safetensors", "weigh.json", "exercise.json",
  "doctor.json", "bench.json", "accumulation.json", "report.html", "stop", run_of.aside_mark,
} do run_files[name] = true end

local checkpoint_files = { ["manifest.json"] = true, ["parameters.safetensors"] = true,
                           ["optimizer.safetensors"] = true, ["state.json"] = true,
                           ["history.jsonl"] = true }

-- Of a hidden name: what it was to become or had been, and the process that gave it. Nil for a
-- name that is not built so (base/path.c, base/staging.c).
local function parts_of(name)
  local stem, id = name:match("^%.(.+)%.partial%-(%d+)$")
  if not stem then stem, id = name:match("^%.(.+)%.partial%-(%d+)%-%d+$") end
  if not stem then stem, id = name:match("^%.(.+)%.old%-(%d+)$") end
  return stem, math.tointeger(tonumber(id))
end

local function is_file(path) return not core.file.is_link(path) and core.file.bytes(path) ~= nil end

--- The first thing in a checkpoint's folder that no checkpoint has, or nil.
---@param folder string
---@return string? name
function leftovers.stranger(folder)
  for _, name in ipairs(core.file.list(folder)) do
    local own = checkpoint_files[name] or checkpoint_files[parts_of(name) or ""]
    if not own or not is_file(folder .. "/" .. name) then return name end
  end
end

local function is_run_file(path, stem)
  return run_files[stem] and is_file(path)
end

local function is_checkpoint(path, stem)
  return saves.update_of(stem) and not core.file.is_link(path) and core.file.is_folder(path) and
    not leftovers.stranger(path)
end

local function add(outputs, below, is_ours, list)
  local folder = outputs .. "/" .. below
  if core.file.is_link(folder) or not core.file.is_folder(folder) then return end
  for _, name in ipairs(core.file.list(folder)) do
    local stem, id = parts_of(name)
    if id and id > 0 and id < 1 << 31 and is_ours(folder .. "/" .. name, stem) and
        not core.process.is_running(id) then
      list[#list + 1] = { name = below .. "/" .. name, pid = id }
    end
  end
end

--- What killed processes left in a run: unfinished files and folders, and old ones that were to go.
--- Those of processes that run, on this machine, are none.
---@param outputs string
---@param run marea.StoredRun
---@return marea.Leftover[] list
function leftovers.of(outputs, run)
  local list = {}
  if not run.is_link then
    add(outputs, run.name, is_run_file, list)
    add(outputs, run.name .. "/checkpoints", is_checkpoint, list)
  end
  return list
end

--- Locks of folders that nobody holds any more.
---@param outputs string
---@return string[] names such as ".minimum.lock"
function leftovers.locks(outputs)
  local names = {}
  if not core.file.is_folder(outputs) then return names end
  for _, name in ipairs(core.file.list(outputs)) do
    local of, path = name:match("^%.(%w[%w_.-]*)%.lock$"), outputs .. "/" .. name
    if of and is_file(path) and core.file.read(path):find("^process %d+ on %S+\n$") and
        not core.file.lock_holder(outputs .. "/" .. of) then
      names[#names + 1] = name
    end
  end
  return names
end

return leftovers
