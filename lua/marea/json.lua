-- JSON through dkjson, with what the artefacts of a run need on top: floats that keep every bit,
-- keys in sorted order (so equal values give equal text, which hashes rely on), and null beside
-- "finite": false for a number that JSON cannot hold.
--
-- dkjson does the encoding. It gets a copy of the value in which each float is a small table with
-- dkjson's own `__tojson` hook, and each object carries its sorted keys.

local core = require "marea.core"
local dkjson = require "dkjson"
local fault = require "marea.fault"

local json = {}

local array_meta = { __jsontype = "array" }
local text_meta = { __tojson = function(self) return self.text end }

--- Marks a table so that it is written as an array even when it is empty (the default for `{}`).
---@param value table
---@return table value the same table
function json.array(value)
  return setmetatable(value, array_meta)
end

--- Shortest decimal text that reads back as the same number; integers exactly.
---@param number number finite
---@return string text
function json.number(number)
  if math.type(number) == "integer" then return tostring(number) end
  if number == 0 then return 1 / number < 0 and "-0.0" or "0" end
  for digits = 15, 17 do
    local text = ("%." .. digits .. "g"):format(number):gsub(",", ".")
    if digits == 17 or tonumber(text) == number then return text end
  end
end

-- Bytes that are no UTF-8 become U+FFFD: a file with them would be no JSON.
local function clean_text(text)
  local _, bad = utf8.len(text)
  if not bad then return text end
  local parts, first = {}, 1
  while bad do
    parts[#parts + 1] = text:sub(first, bad - 1)
    parts[#parts + 1] = "\u{FFFD}"
    first = bad + 1
    _, bad = utf8.len(text, first)
  end
  parts[#parts + 1] = text:sub(first)
  return table.concat(parts)
end

-- "object", or "array" and its length, or nil for a table that is neither.
local function classify(value)
  local entries, names, last = 0, 0, 0
  for key in pairs(value) do
    entries = entries + 1
    if type(key) == "string" then
      names = names + 1
    elseif math.type(key) == "integer" and key > last then
      last = key
    end
  end
  if entries == 0 then
    local meta = getmetatable(value)
    return type(meta) == "table" and meta.__jsontype or "array", 0
  end
  if names == entries then return "object" end
  if last == entries then return "array", entries end
end

local prepare

local function prepare_array(value, count, path)
  local copy, finite = setmetatable({}, array_meta), true
  for i = 1, count do
    local item, item_finite = prepare(value[i], path .. "[" .. i .. "]")
    copy[i], finite = item, finite and item_finite
  end
  return copy, finite
end

local function prepare_object(value, path)
  local keys, copy, finite = {}, {}, true
  for key, item in pairs(value) do
    local item_finite
    copy[key], item_finite = prepare(item, path .. "." .. key)
    -- dkjson takes a table whose only key is a number "n" for an array; a wrapped one it does not.
    if key == "n" and type(copy[key]) == "number" then
      copy[key] = setmetatable({ text = json.number(copy[key]) }, text_meta)
    end
    keys[#keys + 1], finite = key, finite and item_finite
  end
  if not finite then
    if copy.finite == nil then keys[#keys + 1] = "finite" end
    copy.finite = false
  end
  table.sort(keys)
  return setmetatable(copy, { __jsontype = "object", __jsonorder = keys }), true
end

-- The copy that dkjson encodes, and whether all numbers outside inner objects were finite.
function prepare(value, path)
  local kind = type(value)
  if kind == "number" then
    local finite = value == value and value ~= math.huge and value ~= -math.huge
    if not finite then return dkjson.null, false end
    if math.type(value) == "integer" then return value, true end
    return setmetatable({ text = json.number(value) }, text_meta), true
  elseif kind == "string" then
    return clean_text(value), true
  elseif kind == "boolean" or value == dkjson.null then
    return value, true
  elseif kind ~= "table" then
    fault.raise(1, "json: %s is a %s, which JSON cannot hold", path, kind)
  end
  local kind_of_table, count = classify(value)
  if kind_of_table == "object" then return prepare_object(value, path) end
  if kind_of_table == "array" then return prepare_array(value, count, path) end
  fault.raise(1, "json: %s is neither a list without holes nor an object with names", path)
end

--- Encodes a value: tables with keys 1..n as arrays, tables with names as objects with sorted
--- names. A non-finite number becomes null, and the object around it gets "finite": false.
--- Errors: code 1 for functions, holes and mixed keys.
---@param value any
---@param options? {indent: boolean} indent: over several lines
---@return string text without a newline at the end
function json.encode(value, options)
  local copy = prepare(value, "value")
  return (dkjson.encode(copy, { indent = options and options.indent or false }))
end

--- Writes a value to a file, indented; as a whole or not at all. Errors: as json.encode; code 1.
---@param path string
---@param value any
function json.write(path, value)
  core.file.write(path, json.encode(value, { indent = true }) .. "\n")
end

local deepest = 200 -- lists and objects within each other
local too_deep = ("lists and objects within each other more than %d deep"):format(deepest)

-- dkjson reads leniently; what it made of a text must still be objects with names and plain lists.
-- Returns what is wrong.
local function shape_problem(value, depth)
  if type(value) ~= "table" then return nil end
  if depth == deepest then return too_deep end
  local meta = getmetatable(value)
  local wanted = meta and meta.__jsontype == "object" and "string" or "number"
  for key, item in pairs(value) do
    if type(key) ~= wanted then return "an object or list that is badly formed" end
    local problem = shape_problem(item, depth + 1)
    if problem then return problem end
  end
end

--- Decodes one JSON value. null becomes nil. Returns nil and a message that says where on errors:
--- callers add the file and raise, since only they know what the text was.
---@param text string
---@return any value
---@return string? problem "… at line L, column C" when the text is no JSON
function json.decode(text)
  local good, value, after, problem = pcall(dkjson.decode, text, 1, nil)
  if not good then return nil, too_deep end -- it recurses until Lua's stack is full
  problem = problem or shape_problem(value, 0)
  if problem then return nil, problem end
  local rest = text:find("%S", after)
  if rest then
    local _, newlines = text:sub(1, rest):gsub("\n", "")
    return nil, ("more text after the value at line %d"):format(newlines + 1)
  end
  return value
end

return json
