-- Documents as sequences of bytes: what JSON lines and plain text have in common. A document is
-- {text, place = "file:line", split = name or nil, fields = {name = value}}.

local bytes = require "marea.corpus.bytes"
local core = require "marea.core"
local fault = require "marea.fault"
local options = require "marea.options"
local split = require "marea.corpus.split"

local documents = {}

-- Where the caller's file lies: paths in a recipe are looked for beside the recipe first.
local function beside_caller(path)
  local caller = fault.where():match("^(.*):%d+: $")
  local folder = caller and caller:match("^(.*[/\\])")
  return folder and path:sub(1, 1) ~= "/" and folder .. path
end

--- Reads a file that a recipe names, beside the recipe or from the working folder.
--- Errors, code 2: no path, no such file.
---@param path any
---@param what string name of the calling function
---@return string text
---@return string path where it was found
function documents.read(path, what)
  if type(path) ~= "string" then
    fault.raise(2, "%s: path must be a string, got %s", what, type(path))
  end
  local beside = beside_caller(path)
  if beside and core.file.exists(beside) then return core.file.read(beside), beside end
  if not core.file.exists(path) then
    fault.raise(2, "%s: there is no file %s%s", what, path,
                beside and ", nor " .. beside or "")
  end
  return core.file.read(path), path
end

--- The lines of a text with their numbers; "\r\n" ends a line as "\n" does, and the last end needs
--- no line after it.
---@param text string
---@return fun(): integer?, string?
function documents.lines(text)
  local position, number = 1, 0
  return function()
    if position > #text then return nil end
    local stop = text:find("\n", position, true) or #text + 1
    local line = text:sub(position, stop - 1):gsub("\r$", "")
    position, number = stop + 1, number + 1
    return number, line
  end
end

--- Refuses a text that is no UTF-8, with the byte at which it stops being so.
---@param text string
---@param place string "file:line"
function documents.check_utf8(text, place)
  local ok, bad = utf8.len(text)
  if not ok then fault.raise_at(2, place, "bad UTF-8 at byte %d: 0x%02X", bad, text:byte(bad)) end
end

local function check_text(document, context)
  if document.text == "" then fault.raise_at(2, document.place, "an empty document") end
  documents.check_utf8(document.text, document.place)
  if context and #document.text > context then
    fault.raise_at(2, document.place, "a document of %d bytes is longer than the context of %d",
                   #document.text, context)
  end
end

---@class marea.Document
---@field text string
---@field place string "file:line"
---@field split? string
---@field fields? table<string, string|number|boolean>

--- Checks documents and makes sequences of them.
--- Errors, code 2, with file and line: an empty document, bad UTF-8, one longer than the context.
---@param list marea.Document[]
---@param given {context?: integer, split?: string|marea.Fractions} context: most bytes; fractions
---  for documents without a split of their own
---@param what string name of the calling function
---@param path string
---@return marea.Source source
function documents.sequences(list, given, what, path)
  if #list == 0 then fault.raise_at(2, path, "%s: no documents", what) end
  local context = given.context and options.integer(given.context, what .. ": context", 1)
  local texts = {}
  for i, document in ipairs(list) do
    check_text(document, context)
    texts[i] = document.text
  end
  local drawn = type(given.split) == "table" and split.draw(texts, given.split, what)
  local sequences = {}
  for i, document in ipairs(list) do
    local inputs, targets = bytes.encode(document.text)
    sequences[i] = { inputs = inputs, targets = targets, fields = document.fields,
                     split = drawn and drawn[i] or document.split }
  end
  return {
    sequences = sequences, vocabulary = bytes.vocabulary, begin = bytes.begin, pad = bytes.pad,
    notes = { source = what, symbols = "bytes 0 to 255, 256 begins a sequence, 257 pads" },
  }
end

return documents
