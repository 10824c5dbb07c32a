-- Batches: the sequences of one microbatch as tensors.
--
-- packed: sequences end to end, no row is padding. padded: each sequence gets as many rows as the
-- longest, filled up with the corpus's pad symbol and ignored targets. Either way `starts` and
-- `lengths` say which rows a sequence has, so no sequence sees another, and `supervised` which of
-- them have a target. A batch of zero sequences has zero rows and is like any other.

local core = require "marea.core"
local strict = require "marea.strict"

local batch = {}

-- What every batch has is set in it; the rest may be absent.
local meta = { __name = "batch" }
meta.__index = strict.refusal(meta, "a batch", {
  code = 1, optional = { "update", "seed" },
  names = { "ids", "targets", "positions", "sequence_ids", "lengths", "starts", "sequences",
            "tokens", "rows", "supervised" } })

local ignored = -100

-- Rows of a sequence that have a target, in order; `first` is its first one.
local function supervised_rows(corpus, sequence, first)
  local rows = {}
  if sequence.tokens == sequence.length and not sequence.masked then
    for i = 1, sequence.length do rows[i] = first + i - 1 end
    return rows
  end
  for i, target in ipairs(corpus:targets(sequence.id)) do
    if target ~= ignored then rows[#rows + 1] = first + i - 1 end
  end
  return table.move(rows, (sequence.masked or 0) + 1, #rows, 1, {})
end

-- Removes the targets of positions that a window masks beyond what the corpus does.
local function mask_targets_(targets, corpus, sequence, first)
  local hidden = sequence.masked or 0
  for i, target in ipairs(corpus:targets(sequence.id)) do
    if hidden == 0 then return end
    if target ~= ignored then
      targets:set_(first + i - 1, ignored)
      hidden = hidden - 1
    end
  end
end

local function gather(corpus, ids, sequences, layout)
  if layout ~= "padded" then return corpus:gather(ids), nil end
  local length = 0
  for _, sequence in ipairs(sequences) do length = math.max(length, sequence.length) end
  return corpus:gather_padded(ids, length), length
end

---@class marea.BatchOptions
---@field layout "packed"|"padded"
---@field seed? integer of the run, for dropout
---@field update? integer nil: nothing is being trained

--- Builds the batch of a list of sequences; none give a batch of zero rows.
---@param corpus marea.Corpus
---@param sequences marea.Sequence[] rows of the corpus, or placed ones of a window
---@param options marea.BatchOptions
---@return marea.Batch made
function batch.build(corpus, sequences, options)
  local ids = {}
  for i, sequence in ipairs(sequences) do ids[i] = sequence.id end
  local made, padded_length = gather(corpus, ids, sequences, options.layout)
  made.sequences, made.seed, made.update = sequences, options.seed, options.update
  made.supervised, made.tokens, made.rows = {}, 0, made.ids:count()
  local first = 1
  for i, sequence in ipairs(sequences) do
    if sequence.masked then mask_targets_(made.targets, corpus, sequence, first) end
    local rows = supervised_rows(corpus, sequence, first)
    made.supervised[i] = rows
    made.tokens = made.tokens + #rows
    first = first + (padded_length or sequence.length)
  end
  return setmetatable(made, meta)
end

local tensor_names = { "ids", "targets", "positions", "sequence_ids", "lengths", "starts" }

--- Gives back a tensor's memory now, whoever still holds it; reading it afterwards is an error.
---@param tensor marea.tensor
function batch.end_tensor(tensor) local _ <close> = tensor end

--- Gives back the memory of a batch, which is not to be used afterwards: the collector would come
--- late, since it sees a few bytes of each tensor.
---@param made marea.Batch
function batch.release(made)
  for _, name in ipairs(tensor_names) do batch.end_tensor(made[name]) end
end

-- The value that all rows have, where all are supervised and alike.
local function common_value(made, values)
  if made.tokens ~= made.rows then return nil end
  for _, value in ipairs(values) do
    if type(value) == "table" or value ~= values[1] then return nil end
  end
  return values[1]
end

--- A tensor of one value per row, `share` times that of its supervised position; 0 elsewhere.
---@param made marea.Batch
---@param dtype "f32"|"f64"
---@param values (number|number[])[] of each sequence: one of all its positions, or one of each
---@param share number
---@return marea.tensor tensor [rows]
function batch.per_position(made, dtype, values, share)
  local common = common_value(made, values)
  if common then return core.full({ made.rows }, common * share, dtype) end
  local list = {}
  for row = 1, made.rows do list[row] = 0 end
  for s, rows in ipairs(made.supervised) do
    local value = values[s]
    local single = type(value) == "number" and value * share
    for j, row in ipairs(rows) do list[row] = single or value[j] * share end
  end
  return core.from(list, dtype, { made.rows })
end

return batch
