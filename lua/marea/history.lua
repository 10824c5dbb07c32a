-- The history of a run: one line of JSON per update, with what every rank saw. Two runs that
-- computed the same have the same history, byte for byte: it holds no time, host or path.

local core = require "marea.core"
local fault = require "marea.fault"
local form = require "marea.form"
local json = require "marea.json"

---@class marea.HistoryRecord
---@field update integer from 1
---@field tokens integer of all ranks
---@field loss_sums number[] of each rank
---@field draws integer[] of each rank's own stream
---@field factor number of lr, by the schedule
---@field skipped? boolean no rank stepped, since a loss or gradient was not finite

---@class marea.History
---@field lines string[] one per update, without newlines
local History = {}
History.__index = History

local history = {}

-- A sum that is not finite is null in a list.
local record_form = form.record { update = form.integer, loss_sums = form.list_of_anything,
                                  draws = form.list_of_anything }

--- A history without updates.
---@return marea.History
function history.new() return setmetatable({ lines = {} }, History) end

--- Reads the text of a history.
--- Errors, code 3: lines that are no updates, or are not numbered from 1 without gaps.
---@param text string
---@param path string for messages
---@return marea.History
function history.read(text, path)
  local self = history.new()
  for line in text:gmatch("([^\n]*)\n") do
    local number = #self.lines + 1
    local record = json.decode(line)
    if form.problem(record, record_form) or record.update ~= number then
      fault.raise_at(3, ("%s:%d"):format(path, number), "expected the record of update %d", number)
    end
    self.lines[number] = line
  end
  return self
end

--- Adds the record of the next update.
---@param record marea.HistoryRecord
function History:add(record) self.lines[#self.lines + 1] = json.encode(record) end

--- The record of an update.
---@param update integer from 1
---@return marea.HistoryRecord? record nil behind the last
function History:get(update) return self.lines[update] and json.decode(self.lines[update]) end

--- Number of updates.
---@return integer
function History:count() return #self.lines end

--- Supervised positions of all updates.
---@return integer
function History:tokens_seen()
  local tokens = 0
  for update = 1, #self.lines do tokens = tokens + self:get(update).tokens end
  return tokens
end

--- Number of updates in which no rank stepped.
---@return integer
function History:count_skipped()
  local count = 0
  for _, line in ipairs(self.lines) do
    if line:find('"skipped":true', 1, true) then count = count + 1 end
  end
  return count
end

--- All lines as one text.
---@return string
function History:text()
  if #self.lines == 0 then return "" end
  return table.concat(self.lines, "\n") .. "\n"
end

--- sha-256 of the text.
---@return string
function History:hash() return core.file.sha256(self:text()) end

return history
