-- Corpora: sequences of symbols with a split and fields each. Ids count from 1 over the whole
-- corpus, training first, then validation, then test; none is in two splits.
--
-- A corpus that was made in memory and one that was opened from a file answer alike, with the same
-- hash, which is of the content, whatever its path or age.

local batch = require "marea.batch"
local card = require "marea.corpus.card"
local fault = require "marea.fault"
local form = require "marea.form"
local json = require "marea.json"
local options = require "marea.options"
local sequences = require "marea.corpus.sequences"

---@class marea.parts.corpus
local corpus = {}

---@class marea.Corpus
---@field size integer number of sequences
---@field vocabulary integer number of symbols
---@field begin? integer the symbol that begins a sequence
---@field pad? integer the symbol that pads
---@field notes? table of its source, for the card
---@field card marea.Card made when it is first asked for, which reads the whole corpus
local methods = {}
local meta = { __name = "marea.corpus" }

-- `card` is made when it is first asked for: it reads the whole corpus.
function meta.__index(self, key)
  if key == "card" then
    local record = card.of(self)
    rawset(self, "card", record)
    return record
  end
  return methods[key]
end

local function new(held, symbols, notes)
  local rows = sequences.rows(held)
  return setmetatable({
    size = #rows, vocabulary = symbols.vocabulary, begin = symbols.begin, pad = symbols.pad,
    notes = notes, held = held, source = held.source, all_rows = rows, by_split = {},
  }, meta)
end

--- Makes a corpus of sequences, for sources that have no function here. Targets of -100 do not
--- count. Errors, code 2: ids outside the vocabulary, lists that do not match, unknown splits,
--- fields that are not the same in all sequences.
---@param source marea.Source
---@return marea.Corpus corpus
function corpus.from(source)
  options.check(source, "corpus.from", { "sequences", "vocabulary", "begin", "pad", "notes" })
  local vocabulary = options.integer(source.vocabulary, "corpus.from: vocabulary", 1)
  if type(source.sequences) ~= "table" or #source.sequences == 0 then
    fault.raise(2, "corpus.from expects a list of sequences with at least one")
  end
  local symbols = { vocabulary = vocabulary, begin = source.begin, pad = source.pad }
  return new(sequences.hold(source.sequences, vocabulary), symbols, source.notes)
end

--- Draws sequences of a chain over four symbols; see corpus/symbols.lua. Errors, code 2: options.
---@param given marea.SymbolsOptions
---@return marea.Corpus corpus
function corpus.symbols(given)
  return corpus.from(require("marea.corpus.symbols").draw(given))
end

--- Reads JSON lines as bytes; see corpus/jsonl.lua. Errors, code 2, with file and line.
---@param given marea.JsonlOptions
---@return marea.Corpus corpus
function corpus.jsonl(given)
  return corpus.from(require("marea.corpus.jsonl").read(given))
end

--- Reads plain text as bytes; see corpus/text.lua. Errors, code 2, with file and line.
---@param given marea.TextOptions
---@return marea.Corpus corpus
function corpus.text(given)
  return corpus.from(require("marea.corpus.text").read(given))
end

--- Reads text as symbols, joined end to end and cut into sequences of one length; see
--- corpus/joined.lua. Errors, code 2.
---@param given marea.JoinedOptions
---@return marea.Corpus corpus
function corpus.joined(given)
  return corpus.from(require("marea.corpus.joined").read(given))
end

local symbols_form = form.record { vocabulary = form.at_least(1),
                                   begin = form.optional(form.at_least(0)),
                                   pad = form.optional(form.at_least(0)) }

--- Opens a corpus that corpus:write wrote.
--- Errors: code 1 for a file that cannot be read, code 3 for one that is damaged, altered or
--- foreign.
---@param path string
---@return marea.Corpus corpus
function corpus.open(path)
  local held, metadata = sequences.read(path)
  local symbols, problem = json.decode(metadata.symbols or "")
  problem = problem or form.problem(symbols, symbols_form)
  if problem then fault.raise_at(3, path, "the corpus's symbols are damaged: %s", problem) end
  local notes = json.decode(metadata.notes or "null")
  if notes ~= nil and type(notes) ~= "table" then
    fault.raise_at(3, path, "the corpus's notes are damaged")
  end
  local opened = new(held, symbols, notes)
  if opened:hash() ~= metadata.hash then
    fault.raise_at(3, path, "the corpus was altered: expected hash %s, got %s",
                   tostring(metadata.hash), opened:hash())
  end
  return opened
end

--- Whether a value is a corpus.
---@param value any
---@return boolean
function corpus.is(value)
  return type(value) == "table" and getmetatable(value) == meta
end

local function symbols_of(self)
  return { vocabulary = self.vocabulary, begin = self.begin, pad = self.pad }
end

--- The row of a sequence: {id, split, tokens = supervised positions, length = inputs, fields ...}.
--- Errors, code 2: an id that the corpus does not have.
---@param id integer
---@return marea.Sequence row shared; not to be changed
function methods:sequence(id)
  local row = self.all_rows[id]
  if not row then
    fault.raise(2, "expected a sequence id from 1 to %d, got %s", self.size, tostring(id))
  end
  return row
end

--- The rows of a split, or of all, in the order of ids. Errors, code 2: no such split.
---@param split? "train"|"validation"|"test"
---@return marea.Sequence[] rows shared; not to be changed
function methods:rows(split)
  if not split then return self.all_rows end
  if not self.by_split[split] then
    if not require("marea.corpus.split").code(split) then
      fault.raise(2, "expected a split, train, validation or test, got %q", tostring(split))
    end
    local rows = {}
    for _, row in ipairs(self.all_rows) do
      if row.split == split then rows[#rows + 1] = row end
    end
    self.by_split[split] = rows
  end
  return self.by_split[split]
end

-- A whole corpus is read this way, so the tensors are not left to the collector.
local function read_one(self, id, name)
  local made = self:gather { id }
  local values = made[name]:values()
  batch.release(made)
  return values
end

--- The inputs of a sequence. Errors, code 2: an id that the corpus does not have.
---@param id integer
---@return integer[] ids from 0
function methods:inputs(id)
  return read_one(self, id, "ids")
end

--- The targets of a sequence; -100 where a position does not count. Errors as inputs.
---@param id integer
---@return integer[] ids from 0, or -100
function methods:targets(id)
  return read_one(self, id, "targets")
end

--- The tensors of a microbatch, sequences end to end. Errors, code 2: an id that the corpus does
--- not have.
---@param ids integer[] sequence ids; none give tensors of zero rows
---@return marea.gathered made
function methods:gather(ids)
  for _, id in ipairs(ids) do methods.sequence(self, id) end
  return self.source:gather(ids)
end

--- The same with `length` rows for each sequence, filled up with the corpus's pad symbol (0 when it
--- has none) and targets of -100.
--- Errors, code 2: a sequence that is longer.
---@param ids integer[] sequence ids
---@param length integer rows of each sequence
---@return marea.gathered made
function methods:gather_padded(ids, length)
  for _, id in ipairs(ids) do
    local row = methods.sequence(self, id)
    if row.length > length then
      fault.raise(2, "sequence %d has %d inputs, and rows for %d were asked for", id, row.length,
                  length)
    end
  end
  return self.source:gather_padded(ids, length, self.pad or 0)
end

--- sha-256 of the content.
---@return string hash 64 hexadecimal digits
function methods:hash()
  if not self.known_hash then self.known_hash = sequences.hash(self.held, symbols_of(self)) end
  return self.known_hash
end

--- Writes the corpus to a safetensors file, as a whole or not at all. The bytes depend on the
--- content only. Errors: code 1.
---@param path string
function methods:write(path)
  sequences.write(path, self.held, {
    kind = "marea corpus", hash = self:hash(), symbols = json.encode(symbols_of(self)),
    notes = self.notes and json.encode(self.notes) or nil,
  })
end

return corpus
