-- Windows: the microbatches of all ranks behind one update, and the one place that divides.
--
-- Every rank knows the plan and the corpus, so a window knows the sequences of all ranks. Before
-- any backward the ranks gather one record each (tokens, the weight sum of each term, a vote), and
-- all sum the records in rank order: denominators come from there and from nowhere else.
-- `window:weights(batch)` is unit weight / denominator, times W where the reduction is a mean.

local batch = require "marea.batch"
local core = require "marea.core"
local fault = require "marea.fault"
local kind = require "marea.kind"
local plan = require "marea.plan"
local strict = require "marea.strict"
local units = require "marea.units"

local Window = {}

---@class marea.WindowOptions
---@field mask_rank? integer half of the targets of every second sequence of this rank are hidden
---@field training? boolean false: no dropout (default true)

---@class marea.Window
---@field [integer] marea.Batch this rank's microbatches
---@field step integer update, from 1
---@field rank integer
---@field ranks integer
---@field tokens integer supervised positions of all ranks
---@field rank_tokens integer[] of each rank, rank 0 at 1
---@field my_tokens integer of this rank
---@field sequence_count integer of all ranks
---@field denominators? number[] weight sum of each term, once counted
---@field factor? number what the reduction divides by, W for a mean
---@field session marea.Session
local methods = {}

strict.objects(Window, methods, "window", { code = 1, optional = {
  "totals", "denominators", "factor", "session", "masked_rank" }, names = {
  "tokens", "rank_tokens", "my_tokens", "sequence_count", "step", "rank", "ranks" } })

-- Sequences of one microbatch as the recipe sees them: the corpus's row, and where it stands.
local function place_sequences(session, ids, rank, microbatch, mask_rank)
  local sequences = {}
  for i, id in ipairs(ids) do
    local row = session.corpus:sequence(id)
    local placed = setmetatable({ rank = rank, microbatch = microbatch }, { __index = row })
    if rank == mask_rank and i % 2 == 1 then
      placed.masked = row.tokens // 2
      placed.tokens = row.tokens - placed.masked
    end
    sequences[i] = placed
  end
  return sequences
end

local function place_all(session, step, mask_rank)
  local by_rank = {}
  for rank = 0, #session.plan[step] - 1 do
    local placed = {}
    for m, ids in ipairs(plan.microbatches(session.plan, step, rank)) do
      placed[m] = place_sequences(session, ids, rank, m, mask_rank)
    end
    by_rank[rank + 1] = placed
  end
  return by_rank
end

local function count_tokens(by_rank)
  local tokens, rank_tokens, sequences = 0, {}, 0
  for r, microbatches in ipairs(by_rank) do
    rank_tokens[r] = 0
    for _, list in ipairs(microbatches) do
      for _, sequence in ipairs(list) do
        rank_tokens[r] = rank_tokens[r] + sequence.tokens
        sequences = sequences + 1
      end
    end
    tokens = tokens + rank_tokens[r]
  end
  return tokens, rank_tokens, sequences
end

--- The window of one update as a rank sees it. Its batches are built; nothing is counted yet.
---@param session marea.Session corpus, plan, config, terms
---@param step integer update, from 1
---@param rank integer planned rank, from 0
---@param options? marea.WindowOptions
---@return marea.Window window
function Window.new(session, step, rank, options)
  options = options or {}
  local by_rank = place_all(session, step, options.mask_rank)
  local self = setmetatable({}, Window)
  self.weighed = false
  self.step, self.rank, self.ranks = step, rank, #by_rank
  self.by_rank = by_rank
  self.tokens, self.rank_tokens, self.sequence_count = count_tokens(by_rank)
  self.my_tokens = self.rank_tokens[rank + 1]
  self.session, self.given = session, {}
  for m, sequences in ipairs(by_rank[rank + 1]) do
    self[m] = batch.build(session.corpus, sequences, {
      layout = session.config.layout, seed = session.config.seed,
      update = options.training ~= false and step or nil })
  end
  return self
end

--- Every sequence of the window, of all ranks: rank by rank, microbatch by microbatch.
---@return fun(): marea.PlacedSequence? next
function methods:sequences()
  return coroutine.wrap(function()
    for _, microbatches in ipairs(self.by_rank) do
      for _, list in ipairs(microbatches) do
        for _, sequence in ipairs(list) do coroutine.yield(sequence) end
      end
    end
  end)
end

--- Supervised positions, over all ranks, of the sequences whose `field` is `value`. Errors, code 2:
--- a field that the corpus does not have, no value.
---@param field string
---@param value any
---@return integer tokens
function methods:total(field, value)
  if value == nil then units.refuse_nil(self, field) end
  self.totals = self.totals or {}
  local of_field = self.totals[field]
  if not of_field then
    of_field = {}
    for sequence in self:sequences() do
      local key = sequence[field]
      if key ~= nil then of_field[key] = (of_field[key] or 0) + sequence.tokens end
    end
    if next(of_field) == nil then units.require_field(self, field) end
    self.totals[field] = of_field
  end
  return of_field[value] or 0
end

-- --- the count --------------------------------------------------------------------------------

-- {tokens, weight sum of each term} of one rank.
local function record_of(self, rank)
  local record = { self.rank_tokens[rank + 1] }
  for t, term in ipairs(self.session.terms) do
    local sum = 0
    for _, sequences in ipairs(self.by_rank[rank + 1]) do
      sum = sum + units.sum(self, term, sequences)
    end
    record[t + 1] = sum
  end
  return record
end

local refusal = -1

-- A rank whose unit fails still takes part in the gathering, so that nobody waits for it.
local function my_record(self)
  local good, record = xpcall(record_of, fault.seize, self, self.rank)
  if good then
    record[#record + 1] = 0
    return record
  end
  local empty = { self.my_tokens }
  for t = 1, #self.session.terms do empty[t + 1] = 0 end
  empty[#empty + 1] = refusal
  return empty, record
end

-- Raises on every rank what the lowest refusing rank raised; its unit can be asked here too.
local function raise_refusal_of(self, rank, problem)
  if rank == self.rank then error(problem, 0) end
  record_of(self, rank)
  units.refuse(self, "rank %d refused its weights", rank)
end

local function gather_records(self, world)
  local mine, problem = my_record(self)
  local all = world:all_gather(core.host.from(mine, "f64")):values()
  local records, width = {}, #mine
  for r = 1, self.ranks do
    records[r] = table.move(all, (r - 1) * width + 1, r * width, 1, {})
    if records[r][width] == refusal then raise_refusal_of(self, r - 1, problem) end
  end
  return records
end

local function local_records(self)
  local records = {}
  for rank = 0, self.ranks - 1 do records[rank + 1] = record_of(self, rank) end
  return records
end

local function check_tokens(self, records)
  for r, record in ipairs(records) do
    if record[1] ~= self.rank_tokens[r] then
      fault.raise(6, "window %d: rank %d counts %d tokens where rank %d expects %d: their plans " ..
                  "or corpora differ", self.step, r - 1, record[1], self.rank, self.rank_tokens[r])
    end
  end
end

--- Gathers the records of all ranks and sets the denominators. Refuses, on all ranks alike with
--- code 5, a window without supervised positions and weights that are negative, not finite, or zero
--- throughout.
---@param world? marea.World the ranks of this window; nil: this process plays all of them
---@return marea.Window self
function methods:count(world)
  local gathered = world and world:size() > 1
  local records = gathered and gather_records(self, world) or local_records(self)
  check_tokens(self, records)
  if self.tokens == 0 then
    units.refuse(self, "no rank has a supervised position, so its loss is not defined")
  end
  self.denominators = {}
  for t, term in ipairs(self.session.terms) do
    local sum = 0
    for _, record in ipairs(records) do sum = sum + record[t + 1] end
    if not (sum > 0 and sum < math.huge) then
      units.refuse_term(self, term, "the weights of %s %s for all %d supervised positions",
                        term.name, sum == 0 and "are zero" or "add up to no finite number",
                        self.tokens)
    end
    self.denominators[t] = sum
  end
  return self
end

-- --- weights ----------------------------------------------------------------------------------

--- What a unit's weight is multiplied with: the one place that divides. A control of the audit
--- replaces it on its own window.
---@param made marea.Batch one of the window's batches
---@param t integer number of the term
---@return number share
function methods:share(made, t) -- luacheck: no unused args
  return (self.factor or 1) / self.denominators[t]
end

--- Weight sum of a term over one of the window's batches.
---@param made marea.Batch
---@param t integer
---@return number sum
function methods:sum_of(made, t)
  return units.sum(self, self.session.terms[t], made.sequences)
end

local function weights_of_term(self, made, t)
  local term, dtype = self.session.terms[t], self.session.config.dtype
  if dtype == "bf16" then dtype = "f32" end -- losses of bf16 are in f32
  local share = self:share(made, t)
  if units.per_position(term) then
    local of_sequence = {}
    for s, sequence in ipairs(made.sequences) do
      of_sequence[s] = units.of_sequence(self, term, sequence)
    end
    return batch.per_position(made, dtype, of_sequence, share)
  end
  local values = {}
  if term.unit == "sequence" then
    for s, sequence in ipairs(made.sequences) do
      values[s] = sequence.tokens > 0 and share or 0
    end
    return core.from(values, dtype, { #values })
  end
  return core.full({}, self:sum_of(made, t) * share, dtype)
end

--- Weights of a batch of this window: one number per row (or per sequence, or one, as the unit
--- says), such that the sum of weight * loss over all microbatches and ranks, after the reduction,
--- is the declared loss of the window.
---@param made marea.Batch one of the window's batches
---@return marea.Weights weights a tensor, or one for each named term
function methods:weights(made)
  self.weighed = true
  if not self.denominators then
    fault.raise(1, "window:weights was called before the window was counted")
  end
  if type(made) ~= "table" or not rawget(made, "supervised") then
    fault.raise(1, "window:weights expects a batch, as ipairs(window) gives them, got %s",
                kind.of(made))
  end
  local weights = {}
  for t, term in ipairs(self.session.terms) do
    weights[term.name] = weights_of_term(self, made, t)
    table.insert(self.given, weights[term.name])
    if not self.session.named_terms then return weights[term.name] end
  end
  return weights
end

--- Ends the window after its update: gives back the memory of its batches and weights.
function methods:release()
  for _, made in ipairs(self) do batch.release(made) end
  for _, tensor in ipairs(self.given) do batch.end_tensor(tensor) end
  self.given = {}
end

return Window
