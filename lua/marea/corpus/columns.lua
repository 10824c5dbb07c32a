-- Fields of sequences as columns: one value per sequence, all of one kind. Strings are stored as
-- numbers into a sorted list of the different ones.

local core = require "marea.core"
local fault = require "marea.fault"
local form = require "marea.form"

local columns = {}

-- What a row has of its own, or gets in a window; no field may take these names.
local reserved = { id = true, split = true, tokens = true, length = true, rank = true,
                   microbatch = true, masked = true }

local dtype_of = { string = "i32", boolean = "i32", integer = "i64", number = "f64" }

local function kind_of(value)
  return type(value) == "number" and math.type(value) == "integer" and "integer" or type(value)
end

local function field_names(sequences)
  local seen, names = {}, {}
  for _, sequence in ipairs(sequences) do
    for name in pairs(sequence.fields or {}) do
      if not seen[name] then
        if type(name) ~= "string" or reserved[name] then
          fault.raise(2, "corpus: a field cannot be called %q", tostring(name))
        end
        seen[name] = true
        names[#names + 1] = name
      end
    end
  end
  table.sort(names)
  return names
end

local function common_kind(sequences, name)
  local common
  for i, sequence in ipairs(sequences) do
    local kind = kind_of((sequence.fields or {})[name])
    if kind == "number" and sequence.fields[name] ~= sequence.fields[name] then
      fault.raise(2, "corpus: the field %q of sequence %d is not a number", name, i)
    elseif kind == "nil" then
      fault.raise(2, "corpus: sequence %d has no field %q, which others have", i, name)
    end
    if (kind == "integer" or kind == "number") and (common == "integer" or common == "number") then
      common = (kind == "number" or common == "number") and "number" or "integer"
    elseif common == nil and dtype_of[kind] then
      common = kind
    elseif kind ~= common then
      fault.raise(2, "corpus: the field %q of sequence %d is a %s; expected %s", name, i, kind,
                  common and "a " .. common .. " as before" or "a string, a number or a boolean")
    end
  end
  return common
end

local function different_strings(sequences, name)
  local codes, list = {}, {}
  for _, sequence in ipairs(sequences) do
    local value = sequence.fields[name]
    if not codes[value] then
      codes[value] = true
      list[#list + 1] = value
    end
  end
  table.sort(list)
  for i, value in ipairs(list) do codes[value] = i - 1 end
  return list, codes
end

---@class marea.ColumnDescription
---@field name string
---@field kind "string"|"boolean"|"integer"|"number"
---@field strings? string[] the different ones, sorted

---@class marea.Column: marea.ColumnDescription
---@field tensor marea.tensor [sequences]; strings by number, from 0

--- Makes columns of the fields of sequences, in the order of their names.
--- Errors, code 2: a field that some sequences lack, or whose values are of different kinds.
---@param sequences marea.RawSequence[]
---@return marea.Column[] list
function columns.from_sequences(sequences)
  local list = {}
  for _, name in ipairs(field_names(sequences)) do
    local kind = common_kind(sequences, name)
    local strings, codes
    if kind == "string" then strings, codes = different_strings(sequences, name) end
    local values = {}
    for i, sequence in ipairs(sequences) do
      local value = sequence.fields[name]
      if kind == "boolean" then value = value and 1 or 0 end
      values[i] = codes and codes[value] or value
    end
    list[#list + 1] = { name = name, kind = kind, strings = strings,
                        tensor = core.host.from(values, dtype_of[kind], { #values }) }
  end
  return list
end

--- The values of a column as Lua has them, one per sequence.
---@param column marea.Column
---@return any[]
function columns.values(column)
  local values = column.tensor:values()
  for i, value in ipairs(values) do
    if column.kind == "string" then
      values[i] = column.strings[value + 1]
    elseif column.kind == "boolean" then
      values[i] = value ~= 0
    end
  end
  return values
end

--- What a file says about its columns beside their tensors.
---@param list marea.Column[]
---@return marea.ColumnDescription[] description
function columns.describe(list)
  local description = {}
  for i, column in ipairs(list) do
    description[i] = { name = column.name, kind = column.kind, strings = column.strings }
  end
  return description
end

local column_form = form.record { name = form.text, kind = form.text,
                                  strings = form.optional(form.list(form.text)) }

--- The form of a description, as files have it.
---@type marea.Form
columns.form = form.list(function(value, path)
  local problem = column_form(value, path)
  if problem or value.kind ~= "string" or value.strings then return problem end
  return path .. ".strings: expected a list, got nothing"
end)

--- Columns as they were before columns.describe.
---@param description marea.ColumnDescription[]
---@param tensor_of fun(name: string): marea.tensor the tensor of a column
---@return marea.Column[] list
function columns.restore(description, tensor_of)
  local list = {}
  for i, column in ipairs(description) do
    list[i] = { name = column.name, kind = column.kind, strings = column.strings,
                tensor = tensor_of(column.name) }
  end
  return list
end

return columns
