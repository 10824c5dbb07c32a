-- Sequences of a chain over four symbols that can be learned in part: the next symbol is
-- (s + 1) mod 4 with probability 0.55 and each other one with 0.15; the first is uniform. What a
-- model can reach at best is known, so a loss can be judged.

local core = require "marea.core"
local options = require "marea.options"

local symbols = {}

local forward, other = 0.55, 0.15
local vocabulary, begin, pad = 6, 4, 5

local function next_symbol(symbol, stream)
  local u = stream:uniform()
  if u < forward then return (symbol + 1) % 4 end
  -- The three others in turn, 0.15 wide each.
  local step = math.min(math.floor((u - forward) / other), 2)
  return (symbol + 2 + step) % 4
end

local function draw_sequence(stream, shortest, longest, split)
  local length = shortest - 1 + stream:integer(longest - shortest + 1)
  local inputs, targets = { begin }, { stream:integer(4) - 1 }
  for i = 2, length do
    inputs[i] = targets[i - 1]
    targets[i] = next_symbol(targets[i - 1], stream)
  end
  return { inputs = inputs, targets = targets, split = split }
end

-- What the chain's own probabilities lose on some targets, a token, and the commonest symbol.
local function judge(sequences, split)
  local loss, tokens, counts = 0.0, 0, { [0] = 0, 0, 0, 0 }
  for _, sequence in ipairs(sequences) do
    if sequence.split == split then
      for i, symbol in ipairs(sequence.targets) do
        local probability = i == 1 and 0.25 or
          symbol == (sequence.targets[i - 1] + 1) % 4 and forward or other
        loss, tokens = loss - math.log(probability), tokens + 1
        counts[symbol] = counts[symbol] + 1
      end
    end
  end
  if tokens == 0 then return nil end
  local commonest = 0
  for symbol = 1, 3 do
    if counts[symbol] > counts[commonest] then commonest = symbol end
  end
  return { loss = loss / tokens, tokens = tokens, commonest = commonest,
           commonest_share = counts[commonest] / tokens }
end

---@class marea.SymbolsOptions
---@field seed? integer (default 20)
---@field train integer number of sequences, at least 1
---@field validation? integer (default 0)
---@field test? integer (default 0)

--- Draws the sequences: half of the training split has 16 to 64 tokens and half 65 to 128,
--- validation and test have 16 to 128; lengths are uniform. Each split has a stream of its own, so
--- the size of one changes nothing in another.
--- Errors, code 2: unknown options, sizes that are no integers or too small.
---@param given marea.SymbolsOptions
---@return marea.Source source
function symbols.draw(given)
  local what = "corpus.symbols"
  options.check(given, what, { "seed", "train", "validation", "test" })
  local seed = options.integer(given.seed or 20, what .. ": seed", 0)
  local train = options.integer(given.train, what .. ": train", 1)
  local validation = options.integer(given.validation or 0, what .. ": validation", 0)
  local test = options.integer(given.test or 0, what .. ": test", 0)
  local sequences = {}
  local function draw(count, class, shortest, longest, split)
    local stream = core.stream(seed + 20, class)
    for _ = 1, count do
      sequences[#sequences + 1] = draw_sequence(stream, shortest, longest, split)
    end
  end
  draw((train + 1) // 2, 0, 16, 64, "train")
  draw(train // 2, 1, 65, 128, "train")
  draw(validation, 2, 16, 128, "validation")
  draw(test, 3, 16, 128, "test")
  local rate = -(forward * math.log(forward) + 3 * other * math.log(other))
  return {
    sequences = sequences, vocabulary = vocabulary, begin = begin, pad = pad,
    notes = {
      source = "symbols",
      drawn = ("seed %d; first symbol uniform over 4, then (s + 1) mod 4 with probability %g, " ..
               "each other one with %g"):format(seed, forward, other),
      entropy = rate,
      first_symbol_entropy = math.log(4),
      test = judge(sequences, "test"),
    },
  }
end

return symbols
