-- Faults: the error values that marea raises. A fault is a table {message =, code =} whose
-- metatable is registered as "marea.fault", on both sides of the language border: the C binding
-- looks up (or makes) the same registry entry, so whoever comes first, there is one metatable.
-- "marea.library" beside it says which sources belong to the library.
--
-- A message begins with the line that its reader can change: the innermost stack level whose
-- source is a Lua file outside this library ("recipes/minimum.lua:12: ...").

local fault = {}

local registry = debug.getregistry()
local meta = registry["marea.fault"] or {}
meta.__name = "marea.fault"
meta.__tostring = function(self) return self.message end
registry["marea.fault"] = meta

-- "…/lua/marea/" from "@…/lua/marea/fault.lua", and "…/lua/marea.lua" beside it.
local here = debug.getinfo(1, "S").source
local library_folder = here:match("^(@.*[/\\])fault%.lua$") or "@"
local library_file = library_folder:sub(1, -2) .. ".lua"

registry["marea.library"] = registry["marea.library"] or library_folder

local function belongs_to_library(source)
  return source:sub(1, #library_folder) == library_folder or source == library_file
end

--- Where the caller's caller stands outside the library, as "file:line: ", or "" when no level of
--- the stack does (a command that fails before any recipe runs).
---@return string prefix
function fault.where()
  local level = 2
  while true do
    local info = debug.getinfo(level, "Sl")
    if not info then return "" end
    if info.source:sub(1, 1) == "@" and info.currentline > 0 and
        not belongs_to_library(info.source) then
      return ("%s:%d: "):format(info.source:sub(2), info.currentline)
    end
    level = level + 1
  end
end

--- Makes a fault without raising it and without a line in front.
---@param code integer exit code of the program, 1 to 7
---@param message string
---@return marea.Fault fault
function fault.new(code, message)
  return setmetatable({ message = message, code = code }, meta)
end

--- Raises a fault; its message gets the first line outside the library in front.
---@param code integer exit code of the program, 1 to 7
---@param format string as of string.format
---@param ... any
function fault.raise(code, format, ...)
  error(fault.new(code, fault.where() .. format:format(...)), 0)
end

--- Raises a fault whose place is known better than the stack knows it.
---@param code integer exit code of the program, 1 to 7
---@param place string "file:line", or "" for none
---@param format string as of string.format
---@param ... any
function fault.raise_at(code, place, format, ...)
  local prefix = place ~= "" and place .. ": " or ""
  error(fault.new(code, prefix .. format:format(...)), 0)
end

--- Whether a value is a fault.
---@param value any
---@return boolean
function fault.is(value)
  return type(value) == "table" and debug.getmetatable(value) == meta
end

local function text_of(value)
  local meta_of_value = debug.getmetatable(value)
  if type(value) == "string" or type(value) == "number" or
      meta_of_value and meta_of_value.__tostring then
    return tostring(value)
  end
  return value == nil and "an error without a message" or
    ("an error whose value is a %s and no text"):format(type(value))
end

--- Message and exit code of any error value. An error that is no fault, such as a string that a
--- recipe raised, keeps its own text and has code 1.
---@param value any what pcall returned after false
---@return string message
---@return integer code
function fault.of(value)
  if fault.is(value) then return value.message, value.code end
  return text_of(value), 1
end

-- Whether a text begins with "file:line: " of a file outside the library.
local function has_line(text)
  local file, level = text:match("^([^\n]-):%d+: "), 2
  while true do
    local info = debug.getinfo(level, "S")
    if not info then return file ~= nil end
    if info.short_src == file then return not belongs_to_library(info.source) end
    level = level + 1
  end
end

--- Makes a fault of whatever was raised, for xpcall: faults stay as they are; any other error has
--- code 1, and gets the first line outside the library in front unless its text begins with one.
---@param value any
---@return marea.Fault fault
function fault.seize(value)
  if fault.is(value) then return value end
  local text = text_of(value)
  return fault.new(1, (has_line(text) and "" or fault.where()) .. text)
end

return fault
