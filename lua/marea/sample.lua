-- Text from a model of bytes: each byte is drawn from what the model gives to all 256 of them after
-- the text so far. Nothing is kept between bytes: the whole text goes through the model for each,
-- so a byte depends on the text, the checkpoint, the seed and its number, and on nothing else.

local bytes = require "marea.corpus.bytes"
local core = require "marea.core"
local fault = require "marea.fault"
local kind = require "marea.kind"
local wording = require "marea.wording"

local sample = {}

local symbols = 256 -- that are text; marks are never drawn
local draws = 5000 -- number of the stream; those of ranks, data and plans are others

---@class marea.SampleOptions
---@field prompt string
---@field tokens integer bytes to add
---@field greedy? boolean the likeliest byte each time
---@field temperature number above 0; 1 draws with the model's own probabilities
---@field top_k? integer draw among the k likeliest only
---@field seed integer

---@class marea.Sampled
---@field text string what was added
---@field prompt string
---@field tokens integer bytes that were added
---@field stopped "tokens"|"context" why it ended
---@field context integer most bytes of a text

--- Refuses, with code 2, a session whose recipe is not of text.
---@param session marea.Session as evaluate.session makes it
function sample.check(session)
  local corpus = session.corpus
  if corpus.vocabulary ~= bytes.vocabulary or corpus.begin ~= bytes.begin then
    fault.raise_at(2, session.recipe.path or "", "sample needs a recipe of text, whose corpus " ..
                   "has %d symbols (corpus.jsonl or corpus.text); this one has %d",
                   bytes.vocabulary, corpus.vocabulary)
  end
end

-- The most bytes that a text can have: the model's own limit, or the longest text it was shown.
local function context_of(session)
  local options = session.model.options
  if type(options) == "table" and math.type(options.context) == "integer" then
    return options.context
  end
  local longest = 0
  for _, row in ipairs(session.corpus:rows()) do longest = math.max(longest, row.length) end
  return longest
end

-- A batch of one sequence without targets: the mark that begins a text, and its bytes.
local function batch_of(session, text)
  local ids, targets, positions, sequence_ids = { bytes.begin }, {}, {}, {}
  for i = 1, #text do ids[i + 1] = text:byte(i) end
  for i = 1, #ids do targets[i], positions[i], sequence_ids[i] = -100, i - 1, 0 end
  return {
    ids = core.from(ids, "i32"), targets = core.from(targets, "i32"),
    positions = core.from(positions, "i32"), sequence_ids = core.from(sequence_ids, "i64"),
    lengths = core.from({ #ids }, "i64"), starts = core.from({ 0 }, "i64"),
    sequences = { { id = 0, split = "test", tokens = 0, length = #ids } }, supervised = { {} },
    rows = #ids, tokens = 0, seed = session.config.seed,
  }
end

-- What the model gives to each byte (1 stands for byte 0) after a text.
local function logits_after(session, text)
  local made = batch_of(session, text)
  local output = session.model(made)
  local shape = kind.is_tensor(output) and output:shape() or {}
  if #shape ~= 2 or shape[1] ~= made.rows or shape[2] < symbols then
    fault.raise_at(2, session.recipe.path or "", "sample needs a model that returns logits " ..
                   "[%d, %d or more], got %s", made.rows, symbols,
                   kind.is_tensor(output) and wording.shape(shape) or
                   type(output))
  end
  local values = output:slice(made.rows, 1):values()
  return table.move(values, 1, symbols, 1, {})
end

-- The first of the likeliest.
local function likeliest(logits)
  local best = 1
  for i = 2, #logits do
    if logits[i] > logits[best] then best = i end
  end
  return best
end

-- The symbols in the order of their logits; equal ones in their own order.
local function ranked(logits)
  local order = {}
  for i = 1, #logits do order[i] = i end
  table.sort(order, function(a, b)
    if logits[a] ~= logits[b] then return logits[a] > logits[b] end
    return a < b
  end)
  return order
end

--- Draws a symbol.
---@param logits number[] finite
---@param options {temperature: number, top_k?: integer}
---@param uniform number at least 0 and below 1
---@return integer symbol from 1
function sample.draw(logits, options, uniform)
  local order = ranked(logits)
  local count = math.min(options.top_k or #order, #order)
  local most, shares, sum = logits[order[1]], {}, 0
  for i = 1, count do
    shares[i] = math.exp((logits[order[i]] - most) / options.temperature)
    sum = sum + shares[i]
  end
  local left = uniform * sum
  for i = 1, count do
    left = left - shares[i]
    if left < 0 then return order[i] end
  end
  return order[count]
end

local function check_finite(session, logits)
  for _, value in ipairs(logits) do
    if value ~= value or value == math.huge or value == -math.huge then
      fault.raise_at(5, session.recipe.path or "", "the model's logits are not finite")
    end
  end
end

--- Adds bytes to a prompt.
--- Errors: code 2 for a recipe that is not of text, a model without logits of bytes, or a prompt
--- longer than the context; code 5 for logits that are not finite.
---@param session marea.Session with the parameters of a checkpoint
---@param options marea.SampleOptions
---@return marea.Sampled result
function sample.text(session, options)
  sample.check(session)
  local _ <close> = core.no_grad()
  local context, stream = context_of(session), core.stream(options.seed, draws)
  if #options.prompt > context then
    fault.raise_at(2, "", "--prompt has %d bytes, and the model's context is %d", #options.prompt,
                   context)
  end
  local text = options.prompt
  local wanted = math.min(options.tokens, context - #text)
  for _ = 1, wanted do
    local logits = logits_after(session, text)
    check_finite(session, logits)
    local uniform = stream:uniform() -- for greedy texts too, so that a byte's draw is its number's
    local symbol = options.greedy and likeliest(logits) or sample.draw(logits, options, uniform)
    text = text .. string.char(symbol - 1)
  end
  return { text = text:sub(#options.prompt + 1), prompt = options.prompt, tokens = wanted,
           stopped = wanted < options.tokens and "context" or "tokens", context = context }
end

return sample
