-- Documents that are longer than the context: refused, cut off, or cut into pieces.
--
-- A document is cut after its targets are settled, so every piece has the inputs and targets that
-- the whole has there: none is lost at a cut, and none comes from another document. A piece begins
-- with the symbol before it where the document begins with the mark.

local fault = require "marea.fault"
local options = require "marea.options"

local long = {}

local ways = { refuse = true, truncate = true, split = true }

local function slice(list, first, last) return table.move(list, first, last, 1, {}) end

-- The fields of a piece; `number` is that of the document in its file.
local function fields_of(document, number, piece, first, last, given)
  local fields = {}
  for name, value in pairs(document.fields or {}) do fields[name] = value end
  if given.long == "split" then
    if fields.document == nil then fields.document = number end
    fields.piece = piece
  end
  if given.prompts == "supervised" then
    fields.prompt_tokens = math.max(0, math.min(document.prompt or 0, last) - first + 1)
  end
  return fields
end

local function cut(document, number, context, given, add)
  local count, piece = #document.inputs, 0
  for first = 1, count, context do
    local last = math.min(first + context - 1, count)
    piece = piece + 1
    add { inputs = slice(document.inputs, first, last),
          targets = slice(document.targets, first, last), split = document.split,
          fields = fields_of(document, number, piece, first, last, given) }
    if given.long == "truncate" then return end
  end
end

local function check_options(given, what)
  if given.long ~= nil and not ways[given.long] then
    fault.raise(2, '%s: long must be "refuse", "truncate" or "split", got %s', what,
                tostring(given.long))
  end
  if given.context ~= nil then return options.integer(given.context, what .. ": context", 1) end
  if given.long then fault.raise(2, "%s: long = %q needs a context", what, given.long) end
  return math.maxinteger
end

local function note_of(given, documents, total, positions, pieces)
  if documents == 0 then return nil end
  local text = ("%d of %d documents are longer than %d"):format(documents, total, given.context)
  if given.long == "split" then return ("%s and are split into %d pieces"):format(text, pieces) end
  return ("%s and are cut off: %d positions are left out"):format(text, positions)
end

--- Makes sequences of documents, none of which is longer than the context.
--- Errors, code 2: a document that is longer, unless it may be cut; wrong options.
---@param list marea.Document[]
---@param given {context?: integer, long?: "refuse"|"truncate"|"split", prompts?: string}
---@param what string name of the calling function
---@return marea.RawSequence[] sequences
---@return string? note for the corpus card, where something was cut
function long.fit(list, given, what)
  local context = check_options(given, what)
  local sequences, documents, positions, pieces = {}, 0, 0, 0
  local function add(sequence) sequences[#sequences + 1] = sequence end
  for number, document in ipairs(list) do
    local count, before = #document.inputs, #sequences
    if count > context and (given.long or "refuse") == "refuse" then
      fault.raise_at(2, document.place, "a document of %d %s is longer than the context of %d",
                     count, document.unit, context)
    end
    cut(document, number, context, given, add)
    if count > context then
      documents, positions = documents + 1, positions + count - context
      pieces = pieces + #sequences - before
    end
  end
  return sequences, note_of(given, documents, #list, positions, pieces)
end

return long
