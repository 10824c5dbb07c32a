-- What a corpus holds, as tensors: all sequences end to end, and where each begins. The same
-- tensors whether they were just made or read from a file, so hash and rows cannot differ between
-- the two; `source` copies single sequences out, from memory or from the mapped file.

local columns = require "marea.corpus.columns"
local core = require "marea.core"
local fault = require "marea.fault"
local kind = require "marea.kind"
local form = require "marea.form"
local json = require "marea.json"
local split = require "marea.corpus.split"

local sequences = {}

local ignored = -100
local tensor_names = { "inputs", "targets", "offsets", "split" }

local function check_ids(ids, what, highest, ignorable)
  for position, id in ipairs(ids) do
    local fine = math.type(id) == "integer" and (id >= 0 and id < highest or
                                                 ignorable and id == ignored)
    if not fine then
      fault.raise(2, "corpus: %s, position %d: expected an id from 0 to %d%s, got %s", what,
                  position, highest - 1, ignorable and " or -100" or "", tostring(id))
    end
  end
end

local function check_sequence(sequence, number, vocabulary)
  local what = ("sequence %d"):format(number)
  if type(sequence.inputs) ~= "table" or type(sequence.targets) ~= "table" then
    fault.raise(2, "corpus: %s: expected lists of inputs and targets", what)
  end
  if #sequence.inputs == 0 or #sequence.inputs ~= #sequence.targets then
    fault.raise(2, "corpus: %s: expected as many targets as inputs, and at least one, got %d " ..
                "and %d", what, #sequence.targets, #sequence.inputs)
  end
  if not split.code(sequence.split) then
    fault.raise(2, "corpus: %s: expected split %s, got %s", what,
                table.concat(split.names, ", "), kind.shown(sequence.split))
  end
  check_ids(sequence.inputs, what .. ", inputs", vocabulary, false)
  check_ids(sequence.targets, what .. ", targets", vocabulary, true)
end

-- Train first, then validation, then test; the given order within each.
local function ordered(list)
  local result = {}
  for _, name in ipairs(split.names) do
    for _, sequence in ipairs(list) do
      if sequence.split == name then result[#result + 1] = sequence end
    end
  end
  return result
end

---@class marea.Held
---@field inputs marea.tensor i32 [rows] of all sequences end to end
---@field targets marea.tensor i32 [rows]
---@field offsets marea.tensor i64 [sequences + 1]
---@field split marea.tensor i32 [sequences] 0 training, 1 validation, 2 test
---@field columns marea.Column[]
---@field source marea.corpus

--- Makes the tensors of a list of sequences.
--- Errors, code 2: lists that do not match, ids outside the vocabulary, unknown splits.
---@param list marea.RawSequence[]
---@param vocabulary integer
---@return marea.Held held
function sequences.hold(list, vocabulary)
  for number, sequence in ipairs(list) do check_sequence(sequence, number, vocabulary) end
  list = ordered(list)
  local inputs, targets, offsets, codes = {}, {}, { 0 }, {}
  for i, sequence in ipairs(list) do
    table.move(sequence.inputs, 1, #sequence.inputs, #inputs + 1, inputs)
    table.move(sequence.targets, 1, #sequence.targets, #targets + 1, targets)
    offsets[i + 1], codes[i] = #inputs, split.code(sequence.split)
  end
  local held = {
    inputs = core.host.from(inputs, "i32", { #inputs }),
    targets = core.host.from(targets, "i32", { #targets }),
    offsets = core.host.from(offsets, "i64", { #offsets }),
    split = core.host.from(codes, "i32", { #codes }),
    columns = columns.from_sequences(list),
  }
  held.source = core.corpus_over(held.inputs, held.targets, held.offsets, held.split)
  return held
end

--- The rows of a corpus: one table per sequence, in the order of ids.
---@param held marea.Held
---@return marea.Sequence[] rows
function sequences.rows(held)
  local rows = {}
  for id, code in ipairs(held.split:values()) do
    rows[id] = { id = id, split = split.names[code + 1], tokens = held.source:tokens(id),
                 length = held.source:length(id) }
  end
  for _, column in ipairs(held.columns) do
    for id, value in ipairs(columns.values(column)) do rows[id][column.name] = value end
  end
  return rows
end

--- sha-256 over the content: the four tensors, the columns, the meaning of the symbols.
---@param held marea.Held
---@param symbols {vocabulary: integer, begin?: integer, pad?: integer}
---@return string hash
function sequences.hash(held, symbols)
  local parts = { "marea corpus", json.encode(symbols),
                  json.encode(columns.describe(held.columns)) }
  for _, name in ipairs(tensor_names) do parts[#parts + 1] = held[name]:hash() end
  for _, column in ipairs(held.columns) do parts[#parts + 1] = column.tensor:hash() end
  return core.file.sha256(table.concat(parts, "\n"))
end

--- Writes a corpus as a safetensors file, as a whole or not at all.
---@param path string
---@param held marea.Held
---@param metadata table<string, string>
function sequences.write(path, held, metadata)
  local list = {}
  for i, name in ipairs(tensor_names) do list[i] = { name, held[name] } end
  for _, column in ipairs(held.columns) do
    list[#list + 1] = { "field." .. column.name, column.tensor }
  end
  metadata.columns = json.encode(columns.describe(held.columns))
  core.safetensors.write(path, list, metadata)
end

--- Reads what sequences.write wrote.
--- Errors: code 1 for a file that cannot be read, code 3 for one that is damaged or no corpus.
---@param path string
---@return marea.Held held
---@return table<string, string> metadata
function sequences.read(path)
  local file = core.corpus_open(path)
  local metadata = file:metadata()
  if metadata.kind ~= "marea corpus" then fault.raise_at(3, path, "this is no corpus of marea") end
  local description, problem = json.decode(metadata.columns or "")
  problem = problem or form.problem(description, columns.form)
  if problem then fault.raise_at(3, path, "the corpus's columns are damaged: %s", problem) end
  local held = { source = file }
  for _, name in ipairs(tensor_names) do held[name] = file:tensor(name) end
  held.columns = columns.restore(description, function(name)
    return file:tensor("field." .. name)
  end)
  return held, metadata
end

return sequences
