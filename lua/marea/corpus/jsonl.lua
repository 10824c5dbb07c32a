-- JSON lines: one object a line; what it is made of is told in rows.lua, its split in a field.

local documents = require "marea.corpus.documents"
local fault = require "marea.fault"
local json = require "marea.json"
local options = require "marea.options"
local rows = require "marea.corpus.rows"
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

-- The split of a row. Where none was asked for, the first row says whether rows have theirs in the
-- field "split" or all are to be drawn.
local function find_split(object, place, wanted, before)
  if type(wanted) == "table" then return nil end
  if wanted then return split_of(object, wanted, place) end
  if before and not before.split then
    if object.split == nil then return nil end
    fault.raise_at(2, place, 'the field "split" is given here, and not in the rows before')
  end
  if not before and object.split == nil then return nil end
  return split_of(object, "split", place)
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
---@field split? string|marea.Fractions a field that names it, or fractions (default: the field
---  "split" where rows have one, else 0.1 and 0.1)
---@field fields? string[] further fields to keep
---@field context? integer most positions of a sequence
---@field long? "refuse"|"truncate"|"split" what becomes of longer documents (default "refuse");
---  pieces get the fields `document`, a number, and `piece`, from 1
---@field prompts? "ignored"|"supervised" whether prompts count (default "ignored"); if they do,
---  sequences get the field `prompt_tokens`
---@field vocabulary? integer number of symbols, for rows of tokens
---@field begin? integer symbol before the first token of a row, which then has a position too
---@field pad? integer symbol that pads
---@field shifted? boolean labels are the targets of their positions already (default false)

local names = { "path", "field", "split", "fields", "context", "long", "prompts", "vocabulary",
                "begin", "pad", "shifted" }

local function check_options(given)
  options.check(given, what, names)
  if given.split ~= nil and type(given.split) ~= "string" and type(given.split) ~= "table" then
    fault.raise(2, "%s: split must be the name of a field or a table of fractions, got %s", what,
                type(given.split))
  end
  if given.prompts ~= nil and given.prompts ~= "ignored" and given.prompts ~= "supervised" then
    fault.raise(2, '%s: prompts must be "ignored" or "supervised", got %s', what,
                tostring(given.prompts))
  end
  local vocabulary = given.vocabulary and
    options.integer(given.vocabulary, what .. ": vocabulary", 1)
  for _, name in ipairs { "begin", "pad", "shifted" } do
    if given[name] ~= nil and not vocabulary then
      fault.raise(2, "%s: %s is for rows of tokens, which need the option vocabulary", what, name)
    end
  end
  for _, name in ipairs { "begin", "pad" } do
    local symbol = given[name] and options.integer(given[name], ("%s: %s"):format(what, name), 0)
    if symbol and symbol >= vocabulary then
      fault.raise(2, "%s: %s must be below the vocabulary of %d, got %d", what, name, vocabulary,
                  symbol)
    end
  end
end

--- Reads a file of JSON lines.
--- Errors, code 2, with file and line: bad UTF-8, bad JSON, missing fields, unknown splits, what
--- rows.read and documents.sequences refuse.
---@param given marea.JsonlOptions
---@return marea.Source source
function jsonl.read(given)
  check_options(given)
  local text, path = documents.read(given.path, what)
  local list, form = {}, nil
  for number, line in documents.lines(text) do
    local place = ("%s:%d"):format(path, number)
    local object = read_object(line, place)
    list[number], form = rows.read(object, given, place, form)
    list[number].split = find_split(object, place, given.split, list[number - 1])
    list[number].fields = fields_of(object, given.fields or {}, place)
  end
  local drawn = given.split == nil and list[1] and not list[1].split and split.default
  local sequences, notes = documents.sequences(list, {
    split = drawn or given.split, context = given.context, long = given.long,
    prompts = given.prompts }, what, path)
  local symbols, description = rows.symbols(given)
  notes.symbols = description
  return { sequences = sequences, vocabulary = symbols.vocabulary, begin = symbols.begin,
           pad = symbols.pad, notes = notes }
end

return jsonl
