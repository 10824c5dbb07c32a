-- Corpus cards: what a corpus holds, in numbers, as a table for corpus-card.json and as text.

local card = {}

local split_names = { "train", "validation", "test" }

-- The value below which a share of a sorted list lies (nearest rank).
local function percentile(sorted, share)
  return sorted[math.max(1, math.ceil(share * #sorted))]
end

local function describe_split(rows)
  local lengths, tokens, documents, silent = {}, 0, 0, 0
  for i, row in ipairs(rows) do
    lengths[i] = row.length
    tokens = tokens + row.tokens
    if not row.piece or row.piece == 1 then documents = documents + 1 end
    if row.tokens == 0 then silent = silent + 1 end
  end
  table.sort(lengths)
  return {
    documents = documents, sequences = #rows, tokens = tokens, without_tokens = silent,
    p10 = percentile(lengths, 0.1), p50 = percentile(lengths, 0.5),
    p90 = percentile(lengths, 0.9), max = lengths[#lengths],
  }
end

-- How many sequences equal an earlier one, and how many of those an earlier one of another split.
local function duplicates(corpus)
  local first, total, across = {}, 0, 0
  for id = 1, corpus.size do
    local inputs, targets = corpus:inputs(id), corpus:targets(id)
    local key = table.concat(inputs, " ") .. "|" .. table.concat(targets, " ")
    local split = corpus:sequence(id).split
    if first[key] then
      total = total + 1
      if first[key] ~= split then across = across + 1 end
    else
      first[key] = split
    end
  end
  return { total = total, across_splits = across }
end

---@class marea.CardSplit
---@field documents integer
---@field sequences integer more than documents where long ones were split
---@field tokens integer supervised positions
---@field without_tokens integer sequences that have none
---@field p10 integer inputs that a tenth of the sequences do not exceed
---@field p50 integer
---@field p90 integer
---@field max integer

---@class marea.Card
---@field documents integer
---@field sequences integer
---@field tokens integer supervised positions
---@field splits table<string, marea.CardSplit> those that have sequences
---@field duplicates {total: integer, across_splits: integer}
---@field vocabulary integer
---@field hash string
---@field notes? table
---@field rank_tokens? integer[] over all steps of a plan, rank 0 first
---@field steps? integer of the plan

--- The card of a corpus; reads all of it.
---@param corpus marea.Corpus
---@return marea.Card card
function card.of(corpus)
  local splits, documents, tokens = {}, 0, 0
  for _, name in ipairs(split_names) do
    local rows = corpus:rows(name)
    if #rows > 0 then
      splits[name] = describe_split(rows)
      documents = documents + splits[name].documents
      tokens = tokens + splits[name].tokens
    end
  end
  return { documents = documents, sequences = corpus.size, tokens = tokens, splits = splits,
           duplicates = duplicates(corpus), vocabulary = corpus.vocabulary, hash = corpus:hash(),
           notes = corpus.notes }
end

--- The card with what each rank reads under a plan: supervised positions over all its steps.
---@param corpus marea.Corpus
---@param steps marea.Plan
---@return marea.Card card with rank_tokens and steps
function card.with_plan(corpus, steps)
  local rank_tokens = {}
  for _, window in ipairs(steps) do
    for index, microbatches in ipairs(window) do
      local tokens = rank_tokens[index] or 0
      for _, ids in ipairs(microbatches) do
        for _, id in ipairs(ids) do tokens = tokens + corpus:sequence(id).tokens end
      end
      rank_tokens[index] = tokens
    end
  end
  local copy = {}
  for key, value in pairs(corpus.card) do copy[key] = value end
  copy.rank_tokens, copy.steps = rank_tokens, #steps
  return copy
end

local function notes_lines(notes, lines)
  if not notes then return end
  if notes.drawn then lines[#lines + 1] = "drawn       " .. notes.drawn end
  if notes.symbols then lines[#lines + 1] = "symbols     " .. notes.symbols end
  if notes.long then lines[#lines + 1] = "long        " .. notes.long end
  if notes.entropy then
    lines[#lines + 1] = ("entropy     %.4f a token, ln 4 = %.4f for the first of a sequence")
      :format(notes.entropy, notes.first_symbol_entropy)
  end
  if notes.test then
    lines[#lines + 1] = ("test split  the chain's own probabilities lose %.5f a token; the " ..
                         "commonest symbol, %d, has a share of %.2f %%")
      :format(notes.test.loss, notes.test.commonest, 100 * notes.test.commonest_share)
  end
end

-- Where long documents were split there are more sequences than documents.
local function head_lines(record, lines)
  local pieces = record.sequences > record.documents and
    (" in %d sequences"):format(record.sequences) or ""
  lines[1] = ("corpus      %d documents%s, %d tokens, vocabulary %d"):format(
    record.documents, pieces, record.tokens, record.vocabulary)
  lines[2] = ("%-12s%9s %9s %5s %5s %5s %5s"):format("split", "documents", "tokens", "p10", "p50",
                                                     "p90", "max")
end

local function silent_line(record, lines)
  local count = 0
  for _, split in pairs(record.splits) do count = count + split.without_tokens end
  if count > 0 then
    lines[#lines + 1] = ("no target   %d sequences; they count in no mean"):format(count)
  end
end

--- The card as lines of text.
---@param record marea.Card
---@return string text without a newline at the end
function card.text(record)
  local lines = {}
  head_lines(record, lines)
  for _, name in ipairs(split_names) do
    local split = record.splits[name]
    if split then
      lines[#lines + 1] = ("%-12s%9d %9d %5d %5d %5d %5d"):format(
        name, split.documents, split.tokens, split.p10, split.p50, split.p90, split.max)
    end
  end
  if record.rank_tokens then
    lines[#lines + 1] = ("rank tokens %s in %d steps"):format(
      table.concat(record.rank_tokens, ", "), record.steps)
  end
  lines[#lines + 1] = ("duplicates  %d, of which %d across splits"):format(
    record.duplicates.total, record.duplicates.across_splits)
  silent_line(record, lines)
  notes_lines(record.notes, lines)
  lines[#lines + 1] = "hash        " .. record.hash
  return table.concat(lines, "\n")
end

return card
