-- JSON lines: one object a line, its text in one field, its split in another.

local documents = require "marea.corpus.documents"
local fault = require "marea.fault"
local json = require "marea.json"
local options = require "marea.options"
local split = require "marea.corpus.split"

local jsonl = {}

local what = "corpus.jsonl"

local function read_object(line, place)
  if line:find("^%s*$") then fault.raise_at(2, place, "an empty line; expected a JSON object") end
  documents.check_utf8(line, place)
  local object, problem = json.decode(line)
  if type(object) ~= "table" or not line:find("^%s*{") then
    fault.raise_at(2, place, "bad JSON: %s",
                   problem and problem:gsub(" at line 1, column", " at column") or
                   "expected an object")
  end
  return object
end

local function field_of(object, name, place)
  local value = object[name]
  if value == nil then fault.raise_at(2, place, "the field %q is missing", name) end
  return value
end

local function string_of(object, name, place)
  local value = field_of(object, name, place)
  if type(value) ~= "string" then
    fault.raise_at(2, place, "the field %q must be a string, got a %s", name, type(value))
  end
  return value
end

local function split_of(object, name, place)
  local value = string_of(object, name, place)
  if not split.code(value) then
    fault.raise_at(2, place, "unknown split %q; expected %s", value,
                   table.concat(split.names, ", "))
  end
  return value
end

local function fields_of(object, names, place)
  local fields = {}
  for _, name in ipairs(names) do
    local value = field_of(object, name, place)
    if type(value) == "table" then
      fault.raise_at(2, place, "the field %q must be a string, a number or a boolean", name)
    end
    fields[name] = value
  end
  return fields
end

---@class marea.JsonlOptions
---@field path string beside the recipe, or from the working folder
---@field field? string that holds the text (default "text")
---@field split? string|marea.Fractions a field that names it, or fractions (default "split")
---@field fields? string[] further fields to keep
---@field context? integer most bytes of a document

--- Reads a file of JSON lines.
--- Errors, code 2, with file and line: bad UTF-8, bad JSON, missing fields, unknown splits, and
--- what documents.sequences refuses.
---@param given marea.JsonlOptions
---@return marea.Source source
function jsonl.read(given)
  options.check(given, what, { "path", "field", "split", "fields", "context" })
  local text, path = documents.read(given.path, what)
  local split_field = given.split == nil and "split" or given.split
  if type(split_field) ~= "string" and type(split_field) ~= "table" then
    fault.raise(2, "%s: split must be the name of a field or a table of fractions, got %s", what,
                type(split_field))
  end
  local list = {}
  for number, line in documents.lines(text) do
    local place = ("%s:%d"):format(path, number)
    local object = read_object(line, place)
    list[number] = {
      place = place,
      text = string_of(object, given.field or "text", place),
      split = type(split_field) == "string" and split_of(object, split_field, place) or nil,
      fields = fields_of(object, given.fields or {}, place),
    }
  end
  return documents.sequences(list, given, what, path)
end

return jsonl
