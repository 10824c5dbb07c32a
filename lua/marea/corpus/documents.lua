-- Documents in files: what JSON lines and plain text have in common. A document is made of one line
-- or several; sequences are made of documents.

local bytes = require "marea.corpus.bytes"
local core = require "marea.core"
local fault = require "marea.fault"
local long = require "marea.corpus.long"
local split = require "marea.corpus.split"

local documents = {}

-- Where the caller's file lies: paths in a recipe are looked for beside the recipe first.
local function beside_caller(path)
  local caller = fault.where():match("^(.*):%d+: $")
  local folder = caller and caller:match("^(.*[/\\])")
  return folder and path:sub(1, 1) ~= "/" and folder .. path
end

-- The text of a file without the mark of UTF-8 that some editors put in front of it.
local function text_of(path)
  return (core.file.read(path):gsub("^\xEF\xBB\xBF", ""))
end

--- Reads a file that a recipe names, beside the recipe or from the working folder.
--- A byte order mark at its start is left out.
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
  if beside and core.file.exists(beside) then return text_of(beside), beside end
  if not core.file.exists(path) then
    fault.raise(2, "%s: there is no file %s%s", what, path,
                beside and ", nor " .. beside or "")
  end
  return text_of(path), path
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

--- A text as a document: every byte is supervised.
--- Errors, code 2: an empty text, bad UTF-8.
---@param text string
---@param place string "file:line"
---@return marea.Document document
function documents.of_text(text, place)
  if text == "" then fault.raise_at(2, place, "an empty document") end
  documents.check_utf8(text, place)
  local inputs, targets = bytes.encode(text)
  return { place = place, text = text, inputs = inputs, targets = targets, unit = "bytes" }
end

---@class marea.Document
---@field place string "file:line"
---@field text string what tells it from others: equal documents go into the same split
---@field inputs integer[]
---@field targets integer[]
---@field unit string what its positions are called, "bytes" or "positions"
---@field prompt? integer positions of its prompt, the first ones
---@field split? string
---@field fields? table<string, string|number|boolean>

---@class marea.DocumentsOptions
---@field context? integer most positions of a sequence
---@field long? "refuse"|"truncate"|"split" what becomes of longer documents (default "refuse")
---@field prompts? "ignored"|"supervised"
---@field split? string|marea.Fractions fractions for documents without a split of their own

--- Makes sequences of documents.
--- Errors, code 2: no documents, and what split.draw and long.fit refuse.
---@param list marea.Document[]
---@param given marea.DocumentsOptions
---@param what string name of the calling function
---@param path string
---@return marea.RawSequence[] sequences
---@return table notes for the corpus card
function documents.sequences(list, given, what, path)
  if #list == 0 then fault.raise_at(2, path, "%s: no documents", what) end
  if type(given.split) == "table" then
    local texts = {}
    for i, document in ipairs(list) do texts[i] = document.text end
    local drawn = split.draw(texts, given.split, what)
    for i, document in ipairs(list) do document.split = drawn[i] end
  end
  local sequences, note = long.fit(list, given, what)
  return sequences, { source = what, long = note }
end

return documents
