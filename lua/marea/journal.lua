-- What a run writes while it goes on, as lines of JSON: metrics.jsonl by rank 0 for all, and
-- rank-R.jsonl by each rank for itself. A run that goes on from update N keeps their lines up to N.

local core = require "marea.core"
local json = require "marea.json"

---@class marea.Journal
---@field metrics? marea.appender on rank 0
---@field rank marea.appender
---@field begun? table<string, any> the line of an update that is not over
local Journal = {}
Journal.__index = Journal

local journal = {}

-- Drops what lies behind update `last`, and a last line that a killed process left unfinished.
local function cut(path, last)
  if not core.file.exists(path) then return end
  local kept, text = {}, core.file.read(path)
  for line in text:gmatch("([^\n]*)\n") do
    local record = json.decode(line)
    if type(record) == "table" and math.type(record.update) == "integer" and
        record.update <= last then
      kept[#kept + 1] = line .. "\n"
    end
  end
  local left = table.concat(kept)
  if left ~= text then core.file.write(path, left) end
end

local function open(path, last)
  cut(path, last)
  return core.file.append(path)
end

--- Opens the logs of a run on every rank.
--- Errors: code 1 for a disk that fails, on the rank where it does.
---@param run marea.Run
---@param last integer the update up to which lines are kept; 0 keeps none
---@return marea.Journal
function journal.open(run, last)
  local self = setmetatable({}, Journal)
  core.file.make_folder(run.folder)
  if run:writes() then self.metrics = open(run:path("metrics.jsonl"), last) end
  self.rank = open(run:rank_log(), last)
  return self
end

--- Adds a line to the metrics; on rank 0 only, elsewhere nothing happens.
---@param record table<string, any> with `update`
function Journal:write_metrics(record)
  if self.metrics then self.metrics:write(json.encode(record)) end
end

--- Begins a line of this rank's own log. It is written when its update is over, or the log closed.
---@param record table<string, any> with `update`
function Journal:begin_rank(record)
  self:end_rank()
  self.begun = record
end

--- Ends the line that was begun, if there is one, and writes it.
---@param more? table<string, any> further fields
function Journal:end_rank(more)
  local record = self.begun
  if not record then return end
  self.begun = nil
  for key, value in pairs(more or {}) do record[key] = value end
  self.rank:write(json.encode(record))
end

--- Returns once everything written is on the disk.
function Journal:sync()
  if self.metrics then self.metrics:sync() end
  self.rank:sync()
end

--- Closes the logs. Also called when a <close> variable ends.
function Journal:close()
  self:end_rank()
  if self.metrics then self.metrics:close() end
  self.rank:close()
end

-- What ends a run is told, not that the log cannot say so.
function Journal:__close(problem)
  if problem ~= nil then pcall(self.end_rank, self) end
  self:close()
end

return journal
