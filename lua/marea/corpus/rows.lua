-- Rows of JSON lines: what of an object is read, and which of its positions are supervised.
--
--     {"text": "..."}                           every byte
--     {"text": "...", "spans": [[from, to]]}    bytes from, counted from 0, to to, not included
--     {"prompt": "...", "completion": "..."}    the bytes of the completion
--     {"tokens": [...], "labels": [...]}        labels[i] is the label of tokens[i], or -100
--     {"tokens": [...], "spans": [[from, to]]}  as for text, in tokens
--     {"tokens": [...]}                         every token
--
-- The shift by one happens here and nowhere else: position t of a sequence sees what stands before
-- symbol t and has symbol t as its target. A first token with nothing before it has no position.

local bytes = require "marea.corpus.bytes"
local documents = require "marea.corpus.documents"
local fault = require "marea.fault"

local rows = {}

local ignored = -100

local function refuse(place, format, ...) fault.raise_at(2, place, format, ...) end

local function member(object, name, kind, place)
  local value = object[name]
  if value == nil then refuse(place, "the field %q is missing", name) end
  if type(value) ~= kind then
    refuse(place, "the field %q must be a %s, got a %s", name,
           kind == "table" and "list" or kind, type(value))
  end
  return value
end

local function integer(value) return type(value) == "number" and math.tointeger(value) end

local function check_spans(spans, count, place)
  local last = 0
  for i, span in ipairs(spans) do
    local from, to = 0, 0
    if type(span) == "table" and #span == 2 then
      from, to = integer(span[1]), integer(span[2])
    end
    if not (from and to and from >= 0 and from < to and to <= count) then
      refuse(place, "span %d must be [from, to] with 0 <= from < to <= %d", i, count)
    end
    if from < last then
      refuse(place, "span %d begins at %d, before the end of the one before it, %d", i, from, last)
    end
    last = to
  end
end

-- Only what the spans of a row hold counts. targets[i] is symbol i - 1 of it.
local function keep_spans_(targets, object, place)
  local spans, s = member(object, "spans", "table", place), 1
  check_spans(spans, #targets, place)
  for i = 1, #targets do
    while spans[s] and spans[s][2] < i do s = s + 1 end
    if not (spans[s] and spans[s][1] < i) then targets[i] = ignored end
  end
end

-- --- bytes --------------------------------------------------------------------------------------

local function read_text(object, given, place)
  local document = documents.of_text(member(object, given.field or "text", "string", place), place)
  if object.spans ~= nil then keep_spans_(document.targets, object, place) end
  return document
end

local function read_prompt(object, given, place)
  local prompt = member(object, "prompt", "string", place)
  local completion = member(object, "completion", "string", place)
  if completion == "" then refuse(place, "an empty completion") end
  documents.check_utf8(prompt, place)
  documents.check_utf8(completion, place)
  local document = documents.of_text(prompt .. completion, place)
  document.prompt = #prompt
  if given.prompts ~= "supervised" then
    for position = 1, #prompt do document.targets[position] = ignored end
  end
  return document
end

-- --- tokens -------------------------------------------------------------------------------------

local function check_ids_(list, name, highest, place)
  for i, value in ipairs(list) do
    local id = integer(value)
    if not id or (id < 0 or id > highest) and not (name == "labels" and id == ignored) then
      refuse(place, "%s[%d] must be an id from 0 to %d%s, got %s", name, i, highest,
             name == "labels" and " or -100" or "", tostring(value))
    end
    list[i] = id
  end
end

-- Labels that are not those of their own tokens were most likely shifted already: another shift
-- would teach the token after next.
local function check_labels(tokens, labels, place)
  for i, label in ipairs(labels) do
    if label ~= ignored and label ~= tokens[i] then
      refuse(place, "labels[%d] is %d where tokens[%d] is %d: a label is that of its own token, " ..
             "or -100, and the corpus shifts once; labels that are targets already need " ..
             "shifted = true", i, label, i, tokens[i])
    end
  end
end

local function read_labels(object, tokens, given, place)
  local labels = member(object, "labels", "table", place)
  if #labels ~= #tokens then
    refuse(place, "%d labels for %d tokens", #labels, #tokens)
  end
  check_ids_(labels, "labels", given.vocabulary - 1, place)
  if not given.shifted then check_labels(tokens, labels, place) end
  return labels
end

-- Inputs and targets of a row of tokens: the one shift.
local function shift(tokens, labels, begin)
  if begin then
    return table.move(tokens, 1, #tokens - 1, 2, #tokens > 0 and { begin } or {}), labels
  end
  return table.move(tokens, 1, #tokens - 1, 1, {}), table.move(labels, 2, #labels, 1, {})
end

local function read_tokens(object, given, place)
  local tokens = member(object, "tokens", "table", place)
  check_ids_(tokens, "tokens", given.vocabulary - 1, place)
  local labels = object.labels ~= nil and read_labels(object, tokens, given, place) or
    table.move(tokens, 1, #tokens, 1, {})
  if object.spans ~= nil then keep_spans_(labels, object, place) end
  local inputs, targets = tokens, labels
  if not given.shifted then inputs, targets = shift(tokens, labels, given.begin) end
  if #inputs == 0 then
    refuse(place, "%s has no position to predict at", #tokens == 0 and "a row without tokens" or
           "a row of one token and no begin symbol")
  end
  return { place = place, inputs = inputs, targets = targets, unit = "positions",
           text = table.concat(tokens, " ") }
end

-- --- forms --------------------------------------------------------------------------------------

local readers = { text = read_text, completion = read_prompt, tokens = read_tokens }
local order = { "text", "completion", "tokens" }

-- Which member of a row is read: the one that an option asks for, or the only one that is there.
local function source_of(object, given, place)
  if given.vocabulary then return "tokens" end
  if given.field then return "text" end
  local found
  for _, name in ipairs(order) do
    if object[name] ~= nil then
      if found then
        refuse(place, "the row has both %q and %q; say field = %q, or vocabulary for tokens, to " ..
               "read one of them", found, name, "text")
      end
      found = name
    end
  end
  if found == "tokens" then refuse(place, "rows of tokens need the option vocabulary") end
  if found or object.prompt == nil then return found or "text" end
  return "completion"
end

local function form_of(object, source, place)
  local with
  for _, name in ipairs { "spans", "labels" } do
    if object[name] ~= nil then
      if with then refuse(place, "the row has both %q and %q", with, name) end
      with = name
    end
  end
  if source == "completion" then
    if with then refuse(place, "the row has %q beside its completion", with) end
    return "prompt and completion"
  end
  return source .. (with and " and " .. with or "")
end

--- Reads one object as a document. All objects of a file have the same form.
--- Errors, code 2, with the place: missing or mistyped members, several forms at once, another form
--- than before, spans and labels that do not fit.
---@param object table
---@param given marea.JsonlOptions
---@param place string "file:line"
---@param before? string form of the rows before
---@return marea.Document document
---@return string form
function rows.read(object, given, place, before)
  local source = source_of(object, given, place)
  local form = form_of(object, source, place)
  local document = readers[source](object, given, place)
  if before and form ~= before then
    refuse(place, "a row of %s behind rows of %s: all have the same form", form, before)
  end
  return document, form
end

--- The symbols of rows, and what the card says of them.
---@param given marea.JsonlOptions
---@return {vocabulary: integer, begin?: integer, pad?: integer} symbols
---@return string description
function rows.symbols(given)
  if not given.vocabulary then return bytes, bytes.description end
  return { vocabulary = given.vocabulary, begin = given.begin, pad = given.pad },
         ("tokens 0 to %d"):format(given.vocabulary - 1)
end

return rows
