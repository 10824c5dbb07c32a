-- One checkpoint: a folder that appears complete or not at all.
--
--   parameters.safetensors   the parameters by name
--   optimizer.safetensors    the optimizer's state, "m.NAME" and the like; its kind and steps
--   state.json               update, position, random states of every rank, lock, history's hash
--   history.jsonl            one line per update
--   manifest.json            run, update, and length and sha-256 of each file (of the tensor files
--                            also of each tensor); then its own sha-256
--
-- Nothing in it but the manifest's run depends on time, host or path. A folder is read only when
-- every file is as the manifest says.

local core = require "marea.core"
local fault = require "marea.fault"
local form = require "marea.form"
local history_of = require "marea.history"
local json = require "marea.json"
local lock_of = require "marea.lock"
local seal = require "marea.manifest"

local checkpoint = {}

local parts = { "parameters.safetensors", "optimizer.safetensors", "state.json", "history.jsonl" }
local manifest_name = "manifest.json"
local format = 1

local function damaged(path, message, ...)
  local raised = fault.new(3, ("%s is damaged: " .. message):format(path, ...))
  raised.file = path
  error(raised, 0)
end

-- --- writing ----------------------------------------------------------------------------------

local function sealed(record)
  record.sha256 = nil
  record.sha256 = core.file.sha256(json.encode(record))
  return json.encode(record, { indent = true }) .. "\n"
end

local function write_manifest(folder, run, update)
  local files = {}
  for _, name in ipairs(parts) do files[name] = seal.seal(folder .. "/" .. name) end
  core.file.write(folder .. "/" .. manifest_name,
                  sealed { format = format, run = run, update = update, files = files })
end

---@class marea.Contents
---@field run string the run's id
---@field parameters marea.named_tensor[]
---@field optimizer marea.named_tensor[]
---@field optimizer_metadata table<string, string>
---@field state marea.CheckpointState
---@field history marea.History

---@class marea.Manifest
---@field format integer
---@field run string
---@field update integer
---@field files table<string, {bytes: integer, sha256: string}>
---@field sha256 string of the manifest without this field

---@class marea.Checkpoint
---@field folder string
---@field manifest marea.Manifest
---@field state marea.CheckpointState
---@field history marea.History
---@field parameters marea.safetensors to be closed
---@field optimizer marea.safetensors to be closed

--- Writes a checkpoint; an older one of that name is replaced in one step.
--- Errors: code 1; then nothing was left behind, and what stood there still stands.
---@param folder string
---@param contents marea.Contents
function checkpoint.write(folder, contents)
  local staging <close> = core.file.begin_folder(folder)
  local inside = staging:path() .. "/"
  core.safetensors.write(inside .. "parameters.safetensors", contents.parameters,
                         { kind = "marea parameters" })
  core.safetensors.write(inside .. "optimizer.safetensors", contents.optimizer,
                         contents.optimizer_metadata)
  local text = contents.history:text()
  contents.state.history = core.file.sha256(text)
  core.file.write(inside .. "history.jsonl", text)
  json.write(inside .. "state.json", contents.state)
  write_manifest(staging:path(), contents.run, contents.state.update)
  staging:commit()
end

-- --- reading ----------------------------------------------------------------------------------

local manifest_form = form.record {
  run = form.text, update = form.at_least(0), files = form.map(seal.form),
}

--- The manifest of a checkpoint; its files are not looked at.
--- Errors, code 3: none there, or altered.
---@param folder string
---@return marea.Manifest manifest
function checkpoint.manifest(folder)
  local path = folder .. "/" .. manifest_name
  if not core.file.exists(path) then
    fault.raise_at(3, "", "%s is no checkpoint: it has no %s", folder, manifest_name)
  end
  if not core.file.bytes(path) then damaged(path, "it is no regular file") end
  local text = core.file.read(path)
  local record, problem = json.decode(text)
  if type(record) ~= "table" then damaged(path, "%s", problem or "it is no object") end
  local found = tostring(record.sha256)
  local good, expected = pcall(sealed, record)
  if not good then damaged(path, "it is not written as marea writes it") end
  if found ~= record.sha256 then
    damaged(path, "its own sha-256 should be %s, it says %s", record.sha256, found)
  end
  if text ~= expected then damaged(path, "it is not written as marea writes it") end
  if record.format ~= format then
    fault.raise_at(3, "", "%s has format %s, this marea reads %d", path, tostring(record.format),
                   format)
  end
  problem = form.problem(record, manifest_form)
  if problem then damaged(path, "%s", problem) end
  return record
end

--- Checks every byte of a checkpoint against its manifest.
--- Errors, code 3, naming the file, the tensor where it is a tensor file, what was expected and
--- what was found.
---@param folder string
---@return marea.Manifest manifest
function checkpoint.verify(folder)
  local manifest = checkpoint.manifest(folder)
  for _, name in ipairs(parts) do seal.check(folder .. "/" .. name, manifest.files[name]) end
  return manifest
end

local state_form = form.record {
  update = form.at_least(0), world = form.at_least(1), history = form.text, lock = lock_of.form,
  streams = form.list(form.text), microbatches = form.list(form.integer),
  sequences = form.list(form.integer),
}

-- What a state has wrong, or nil.
local function state_problem(state)
  local problem = form.problem(state, state_form)
  if problem then return problem end
  for _, name in ipairs { "streams", "microbatches", "sequences" } do
    if #state[name] ~= state.world then
      return ("%s: expected one for each of %d ranks, got %d"):format(name, state.world,
                                                                     #state[name])
    end
  end
end

local function read_state(folder, manifest)
  local path = folder .. "/state.json"
  local state, problem = json.decode(core.file.read(path))
  problem = problem or state_problem(state)
  if problem then damaged(path, "%s", problem) end
  if state.update ~= manifest.update then
    damaged(path, "expected update %d, found %d", manifest.update, state.update)
  end
  return state
end

--- Opens a checkpoint, after every byte of it was checked.
--- Errors, code 3: as checkpoint.verify; parts that do not belong together.
---@param folder string
---@return marea.Checkpoint opened
function checkpoint.open(folder)
  local manifest = checkpoint.verify(folder)
  local state = read_state(folder, manifest)
  local path = folder .. "/history.jsonl"
  local history = history_of.read(core.file.read(path), path)
  if history:count() ~= state.update or history:hash() ~= state.history then
    damaged(path, "expected the history of %d updates that state.json names, found %d",
            state.update, history:count())
  end
  return {
    folder = folder, manifest = manifest, state = state, history = history,
    parameters = core.safetensors.open(folder .. "/parameters.safetensors"),
    optimizer = core.safetensors.open(folder .. "/optimizer.safetensors"),
  }
end

return checkpoint
