-- Sequences in memory, asked in the words of the engine's mapped corpora (core.corpus_open):
-- length, tokens, gather, gather_padded. Whoever reads a corpus need not know which it has.

local core = require "marea.core"

---@class marea.Memory
---@field sequences marea.RawSequence[]
local memory = {}
memory.__index = memory

local ignored = -100

--- Sequences by id, in the order given.
---@param sequences marea.RawSequence[]
---@return marea.Memory source
function memory.new(sequences)
  return setmetatable({ sequences = sequences }, memory)
end

--- Inputs of a sequence.
---@param id integer
---@return integer
function memory:length(id)
  return #self.sequences[id].inputs
end

--- Supervised positions of a sequence.
---@param id integer
---@return integer
function memory:tokens(id)
  local count = 0
  for _, target in ipairs(self.sequences[id].targets) do
    if target ~= ignored then count = count + 1 end
  end
  return count
end

local function new_lists()
  return { ids = {}, targets = {}, positions = {}, sequence_ids = {}, lengths = {}, starts = {} }
end

-- Adds one sequence in `rows` rows; rows beyond its own are padding.
local function add(lists, sequence, id, rows, pad)
  local first = #lists.ids
  lists.starts[#lists.starts + 1] = first
  lists.lengths[#lists.lengths + 1] = #sequence.inputs
  for i = 1, rows do
    lists.ids[first + i] = sequence.inputs[i] or pad
    lists.targets[first + i] = sequence.targets[i] or ignored
    lists.positions[first + i] = i - 1
    lists.sequence_ids[first + i] = id
  end
end

local dtypes = { ids = "i32", targets = "i32", positions = "i32", sequence_ids = "i64",
                 lengths = "i64", starts = "i64" }

local function tensors(lists)
  local made = {}
  for name, dtype in pairs(dtypes) do
    made[name] = core.from(lists[name], dtype, { #lists[name] })
  end
  return made
end

--- Sequences end to end.
---@param ids integer[] sequence ids; none give tensors of zero rows
---@return marea.gathered made
function memory:gather(ids)
  local lists = new_lists()
  for _, id in ipairs(ids) do add(lists, self.sequences[id], id, self:length(id)) end
  return tensors(lists)
end

--- Sequences in `length` rows each, filled up with `pad` and targets that do not count.
---@param ids integer[]
---@param length integer at least that of the longest sequence
---@param pad integer
---@return marea.gathered made
function memory:gather_padded(ids, length, pad)
  local lists = new_lists()
  for _, id in ipairs(ids) do add(lists, self.sequences[id], id, length, pad) end
  return tensors(lists)
end

return memory
