-- Root folders of runs as runs leave them, made without a run.

local core = require "marea.core"
local json = require "marea.json"
local small = dofile "spec/support/small_checkpoint.lua"

local stored = {}

--- Writes a run that was trained; one whose record has another name was moved aside.
---@param outputs string
---@param name string
---@param given? table run = the name in its record; id; outcome; updates = of its checkpoints;
---  foreign = updates of checkpoints that another run wrote; started; renamed = it
---  was not marea that moved it
---@return string folder
function stored.run(outputs, name, given)
  given = given or {}
  local folder, id = outputs .. "/" .. name, given.id or "id of " .. name
  local updates = given.updates or { 2, 4 }
  core.file.make_folder(folder)
  core.file.write(folder .. "/run.json", json.encode {
    id = id, name = "tide", run = given.run or name, recipe = "recipes/tide.lua", world = 2,
    config = { updates = 8 }, outcome = given.outcome or "complete",
    update = updates[#updates] or 0,
    started = given.started or "2026-01-02T03:04:05Z", ended = "2026-01-02T03:05:06Z" })
  if given.run and not given.renamed then
    core.file.write(folder .. "/moved-aside.json", json.encode { run = given.run, to = name })
  end
  local lines = core.file.append(folder .. "/metrics.jsonl")
  for update = 1, updates[#updates] or 0 do
    lines:write(json.encode { update = update, lr = 0.1, loss_per_token = 2 / update })
  end
  lines:write(json.encode { update = updates[#updates] or 0, split = "validation", loss = 9 })
  lines:close()
  for _, update in ipairs(updates) do
    small.write(("%s/checkpoints/step-%06d"):format(folder, update), id, update)
  end
  for _, update in ipairs(given.foreign or {}) do
    small.write(("%s/checkpoints/step-%06d"):format(folder, update), "somebody else", update)
  end
  return folder
end

--- Changes one byte near the end of a file.
---@param path string
function stored.damage(path)
  local stream <close> = assert(io.open(path, "r+b"))
  stream:seek("end", -2)
  local byte = stream:read(1)
  stream:seek("end", -2)
  stream:write(string.char(byte:byte() ~ 1))
end

return stored
