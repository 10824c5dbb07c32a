-- Plain text: a document a line, or documents of several lines with a separator between them.

local bytes = require "marea.corpus.bytes"
local documents = require "marea.corpus.documents"
local fault = require "marea.fault"
local options = require "marea.options"
local splits = require "marea.corpus.split"

local text = {}

local what = "corpus.text"

-- Whether a line stands between two documents.
local separators = {
  blank = function(line) return line:find("^%s*$") ~= nil end,
  ["%"] = function(line) return line == "%" end,
}

local function documents_by_line(content, path)
  local list = {}
  for number, line in documents.lines(content) do
    list[number] = documents.of_text(line, ("%s:%d"):format(path, number))
  end
  return list
end

-- Lines between separators, joined. Several blank lines are one separator; between two "%" there is
-- a document, if an empty one, but none behind a last "%".
local function documents_between(content, path, separator)
  local is_separator, list, lines, first = separators[separator], {}, {}, 1
  local function finish(number, wanted)
    if wanted then
      list[#list + 1] = documents.of_text(table.concat(lines, "\n"),
                                          ("%s:%d"):format(path, first))
    end
    lines, first = {}, number + 1
  end
  local last = 0
  for number, line in documents.lines(content) do
    last = number
    if is_separator(line) then
      finish(number, #lines > 0 or separator == "%")
    else
      lines[#lines + 1] = line
    end
  end
  finish(last, #lines > 0)
  return list
end

---@class marea.TextOptions
---@field path string beside the recipe, or from the working folder
---@field separator? "line"|"blank"|"%" what stands between documents (default "line")
---@field split? marea.Fractions (default 0.1 and 0.1)
---@field context? integer most bytes of a sequence
---@field long? "refuse"|"truncate"|"split" what becomes of longer documents (default "refuse")

--- Reads a file of plain text.
--- Errors, code 2, with file and line: empty documents, bad UTF-8, what documents.sequences
--- refuses; an unknown separator.
---@param given marea.TextOptions
---@return marea.Source source
function text.read(given)
  options.check(given, what, { "path", "separator", "split", "context", "long" })
  local separator = given.separator or "line"
  if separator ~= "line" and not separators[separator] then
    fault.raise(2, '%s: separator must be "line", "blank" or "%%", got %q', what,
                tostring(separator))
  end
  local content, path = documents.read(given.path, what)
  local list = separator == "line" and documents_by_line(content, path) or
    documents_between(content, path, separator)
  local split = given.split or splits.default
  if type(split) ~= "table" then
    fault.raise(2, "%s: split must be a table of fractions, got %s", what, type(split))
  end
  local sequences, notes = documents.sequences(
    list, { split = split, context = given.context, long = given.long }, what, path)
  notes.symbols = bytes.description
  return { sequences = sequences, vocabulary = bytes.vocabulary, begin = bytes.begin,
           pad = bytes.pad, notes = notes }
end

return text
