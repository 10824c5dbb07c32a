-- run.json: what a run is, where it ran, how far it came, how it ended. Rank 0 writes it; it is
-- there from the start, so what a killed run was is known as well.

local config = require "marea.config"
local core = require "marea.core"
local json = require "marea.json"
local together = require "marea.together"

---@class marea.RunRecord
---@field id string identity of the run
local Record = {}
Record.__index = Record

local run_record = {}

-- No two runs share it: moment, and an address that the system chose.
local function new_id()
  local parts = { core.utc(), tostring(core.seconds()), tostring({}), core.process.host() }
  return core.file.sha256(table.concat(parts, " ")):sub(1, 32)
end

local function distinct(texts)
  local list, seen = {}, {}
  for _, text in ipairs(texts) do
    if not seen[text] then list[#list + 1] = text end
    seen[text] = true
  end
  return list
end

--- Which recipe a run is of, for messages: " of recipes/tide.lua", or "" where it does not say.
---@param folder string of the run
---@return string text
function run_record.recipe_of(folder)
  local path = folder .. "/run.json"
  local record = core.file.exists(path) and json.decode(core.file.read(path))
  local recipe = type(record) == "table" and record.recipe
  return type(recipe) == "string" and " of " .. recipe or ""
end

-- The words of the command line that the config was made with.
local function overrides_of(recipe)
  local given = recipe.options.overrides or {}
  return json.array(type(given[1]) == "string" and given or {})
end

-- Runs on all ranks.
local function describe(session, recipe, run_name)
  local device = core.device()
  local way = session.driver.way
  return {
    reduction_way = way.name, reduction_problem = way.problem,
    version = require "marea.version", name = recipe.name, recipe = recipe.path, run = run_name,
    config = config.values(recipe.config), overrides = overrides_of(recipe),
    objective = recipe.config.objective,
    world = session.world:size(), board = session.world.group:board(),
    hosts = distinct(together.texts(session.world, core.process.host())),
    device = device.name, device_model = device.model ~= "" and device.model or nil,
    instruction_set = device.instruction_set, blas = device.blas, threads = device.threads,
    parameters = session.model:count(), init = session.init, started = core.utc(),
    outcome = "running",
  }
end

--- Writes run.json, on rank 0. Errors: code 1.
function Record:write()
  if not self.run:writes() then return end
  json.write(self.run:path("run.json"), self.values)
end

---@class marea.RecordSource
---@field own boolean whether it is a checkpoint of this run
---@field folder string
---@field update integer
---@field accepted string[] fields of the lock that may differ
---@field controls string[] what the resume gets wrong

--- Begins the record of a run that starts anew, or takes up that of a run that goes on. All ranks
--- call it.
---@param run marea.Run
---@param session marea.Session
---@param from? marea.RecordSource the checkpoint that it goes on from
---@return marea.RunRecord
function run_record.begin(run, session, from)
  local values = describe(session, session.recipe, run.name)
  local self = setmetatable({ run = run, values = values }, Record)
  together.on_root(run.world, function()
    local old = from and from.own and json.decode(core.file.read(run:path("run.json")))
    values.id = old and old.id or new_id()
    values.resumed = json.array(old and old.resumed or {})
    if old then values.began, values.init = old.began or old.started, old.init end
    values.update = from and from.update or 0
    if from then
      table.insert(values.resumed, {
        from = from.folder, update = from.update, at = values.started,
        accepted = json.array(from.accepted), controls = json.array(from.controls) })
    end
    self:write()
  end)
  self.id = values.id
  return self
end

--- Notes how far the run is.
---@param update integer
function Record:reach(update) self.values.update = update end

--- Notes in how many updates of the run no rank stepped.
---@param count? integer nil: in none
function Record:note_skipped(count) self.values.skipped = count end

--- Notes a save that went well, on disk too.
---@param folder string
function Record:note_save(folder)
  self.values.last_save = { update = self.values.update, folder = folder, good = true }
  self:write()
end

--- Notes the most bytes that a rank of this start has held. All ranks call it.
function Record:measure()
  local peak = core.host.from({ core.memory().peak }, "i64", { 1 })
  local peaks = self.run.world:all_gather(peak):values()
  self.values.peak_bytes = math.tointeger(math.max(table.unpack(peaks)))
end

--- Ends the record.
---@param outcome "complete"|"stopped"|"failed"
---@param message? string why
function Record:finish(outcome, message)
  self.values.outcome, self.values.message = outcome, message
  self.values.ended = core.utc()
  self:write()
end

-- Of a run that an error ends; a disk that cannot take this either keeps "running". The command's
-- message handler may have seen the error before, and made a table of it.
function Record:__close(problem)
  if problem == nil or self.values.ended then return end
  local message = type(problem) == "table" and problem.message or tostring(problem)
  pcall(self.finish, self, "failed", message)
end

return run_record
