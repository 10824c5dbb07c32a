-- Looks at a file and says which function of marea.corpus reads it, and with what options: for
-- recipes that are to begin with a text of one's own.

local core = require "marea.core"
local documents = require "marea.corpus.documents"
local fault = require "marea.fault"
local json = require "marea.json"
local split = require "marea.corpus.split"

local guess = {}

local most_bytes = 64 -- of a value that is worth keeping beside each sequence

-- Names that a sequence has by itself, or that rows.lua reads.
local taken = {}
for _, name in ipairs { "id", "split", "tokens", "length", "rank", "microbatch", "document",
                        "piece", "prompt_tokens", "spans", "labels", "prompt", "completion" } do
  taken[name] = true
end

local function refuse(place, format, ...) fault.raise_at(2, place, format, ...) end

local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

-- The text of a file, in which a document can be read.
local function read(path)
  if core.file.is_folder(path) then refuse("", "%s is a folder; expected a file of text", path) end
  if not core.file.exists(path) then refuse("", "there is no file %s", path) end
  local content = core.file.read(path)
  local good, bad = utf8.len(content)
  bad = good and content:find("\0", 1, true) or bad
  if bad then
    refuse("", "%s is no text: byte %d is 0x%02X; expected UTF-8, as JSON lines or plain text",
           path, bad, content:byte(bad))
  end
  if not content:find("%S") then refuse("", "%s is empty; expected some text", path) end
  return content
end

local function object_of(line)
  local value, problem = json.decode(line)
  if type(value) == "table" and line:find("^%s*{") then return value end
  return nil, problem or "expected an object"
end

local function rows_of(content, path)
  local list = {}
  for number, line in documents.lines(content) do
    local object, problem = object_of(line)
    if not object then refuse(("%s:%d"):format(path, number), "bad JSON: %s", problem) end
    list[number] = object
  end
  return list
end

-- The fields that all rows have, each with one type and short values.
local function common_fields(rows, text_field)
  local names = {}
  for _, name in ipairs(sorted_keys(rows[1])) do
    local kind, common = type(rows[1][name]), not taken[name] and name ~= text_field
    for _, row in ipairs(rows) do
      common = common and type(row[name]) == kind and kind ~= "table" and
        #tostring(row[name]) <= most_bytes
    end
    if common then names[#names + 1] = name end
  end
  return names
end

-- The field that holds the text: "text", else the string that is longest in the first row.
local function text_field_of(row, path)
  if type(row.text) == "string" then return "text" end
  local found
  for _, name in ipairs(sorted_keys(row)) do
    local value = row[name]
    if type(value) == "string" and name ~= "split" and (not found or #value > #row[found]) then
      found = name
    end
  end
  if found then return found end
  refuse(path .. ":1", "no field holds a text; the row has %s%s",
         table.concat(sorted_keys(row), ", "),
         row.tokens and ": rows of tokens need corpus.jsonl { vocabulary = n }" or "")
end

local function longest_of(rows, ...)
  local longest = 0
  for _, row in ipairs(rows) do
    local bytes = 0
    for _, name in ipairs { ... } do
      bytes = bytes + (type(row[name]) == "string" and #row[name] or 0)
    end
    longest = math.max(longest, bytes)
  end
  return longest
end

local function quoted_list(names)
  local list = {}
  for i, name in ipairs(names) do list[i] = ("%q"):format(name) end
  return "{ " .. table.concat(list, ", ") .. " }"
end

local function of_rows(content, path)
  local rows = rows_of(content, path)
  local options, longest = {}
  if rows[1].prompt ~= nil and rows[1].completion ~= nil then
    longest = longest_of(rows, "prompt", "completion")
  else
    local field = text_field_of(rows[1], path)
    options[1], longest = ("field = %q"):format(field), longest_of(rows, field)
  end
  if split.code(rows[1].split) then options[#options + 1] = 'split = "split"' end
  local fields = common_fields(rows, options[1] and options[1]:match('"(.*)"'))
  if #fields > 0 then options[#options + 1] = "fields = " .. quoted_list(fields) end
  return { source = "jsonl", options = options, longest = longest, fields = fields }
end

local function of_text(content)
  local longest, separator = 0, "line"
  for _, line in documents.lines(content) do
    longest = math.max(longest, #line)
    if not line:find("%S") then separator = "blank" end
  end
  if separator == "blank" then longest = #content end
  return { source = "text", options = { ('separator = "%s"'):format(separator) },
           longest = longest, fields = {} }
end

---@class marea.Guess
---@field source "jsonl"|"text" function of marea.corpus
---@field options string[] "key = value" as Lua, but the path
---@field longest integer bytes of the longest document, at most
---@field fields string[] that its sequences have

--- Which function of marea.corpus reads a file: corpus.jsonl for JSON objects a line, else
--- corpus.text.
--- Errors, code 2: no such file, a folder, what is no text, JSON lines without a text.
---@param path string
---@return marea.Guess guess
function guess.of(path)
  local content = read(path)
  if path:find("%.jsonl?$") or object_of(content:match("^[^\n]*")) then
    return of_rows(content, path)
  end
  return of_text(content)
end

return guess
