-- Stored JSON, read and checked.

local core = require "marea.core"
local fault = require "marea.fault"
local json = require "marea.json"

local stored = {}

--- Refuses a file, with code 3.
---@param path string
---@param format string what is wrong, as of string.format
---@param ... any
function stored.damaged(path, format, ...)
  fault.raise_at(3, "", "%s is damaged: %s", path, format:format(...))
end

--- Reads a file that is one JSON object.
--- Errors, code 3: no JSON, or fields that are missing or of another type.
---@param path string
---@param fields table<string, string> type of each field that must be there
---@return table<string, any> value
function stored.json(path, fields)
  local value, problem = json.decode(core.file.read(path))
  if type(value) ~= "table" then stored.damaged(path, "%s", problem or "no object") end
  for name, kind in pairs(fields) do
    if type(value[name]) ~= kind then stored.damaged(path, "it has no %s %s", kind, name) end
  end
  return value
end

--- Reads the lines of a log; a last one without its end is what a killed process left.
--- Errors, code 3: as stored.json, with the line.
---@param path string
---@param fields table<string, string> type of each field that every line must have
---@return table<string, any>[] list
function stored.lines(path, fields)
  local list = {}
  for line in core.file.read(path):gmatch("([^\n]*)\n") do
    local value = json.decode(line)
    if type(value) ~= "table" then stored.damaged(path, "line %d is no JSON", #list + 1) end
    for name, kind in pairs(fields) do
      if type(value[name]) ~= kind then
        stored.damaged(path, "line %d has no %s %s", #list + 1, kind, name)
      end
    end
    list[#list + 1] = value
  end
  return list
end

return stored
