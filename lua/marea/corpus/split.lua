-- Splits: which documents are for training, which for validation and test.

local core = require "marea.core"
local fault = require "marea.fault"
local options = require "marea.options"

local split = { names = { "train", "validation", "test" } }

--- The fractions of a source that says nothing of its split.
---@type marea.Fractions
split.default = { validation = 0.1, test = 0.1 }

local codes = { train = 0, validation = 1, test = 2 }

--- The number that a split has in files, 0 to 2; nil for a name that is no split.
---@param name any
---@return integer?
function split.code(name)
  return codes[name]
end

local function fraction(value, what)
  if value == nil then return 0 end
  if type(value) ~= "number" or not (value >= 0 and value < 1) then
    fault.raise(2, "%s must be a number of at least 0 and below 1, got %s", what, tostring(value))
  end
  return value
end

---@class marea.Fractions
---@field validation? number of the different texts (default 0)
---@field test? number (default 0)
---@field seed? integer (default 20)

--- Draws the split of each document. Documents of equal text get the same split, so nothing that is
--- trained on is tested on; fractions are of the different texts.
--- Errors, code 2: fractions below 0, or that leave nothing for training.
---@param texts string[]
---@param given marea.Fractions
---@param what string name of the calling function
---@return string[] names one for each text
function split.draw(texts, given, what)
  options.check(given, what .. ": split", { "validation", "test", "seed" })
  local validation = fraction(given.validation, what .. ": split.validation")
  local test = fraction(given.test, what .. ": split.test")
  local different, seen = {}, {}
  for _, text in ipairs(texts) do
    if not seen[text] then
      seen[text] = true
      different[#different + 1] = text
    end
  end
  local count = #different
  local tests = math.floor(count * test + 0.5)
  local others = tests + math.floor(count * validation + 0.5)
  if others >= count then
    fault.raise(2, "%s: split leaves nothing for training: %g + %g of %d different documents", what,
                validation, test, count)
  end
  local stream = core.stream(options.integer(given.seed or 20, what .. ": split.seed", 0) + 20, 3)
  local of_text = {}
  for i = count, 1, -1 do
    local j = stream:integer(i)
    different[i], different[j] = different[j], different[i]
    local rank = count - i
    of_text[different[i]] = rank < tests and "test" or rank < others and "validation" or "train"
  end
  local names = {}
  for i, text in ipairs(texts) do names[i] = of_text[text] end
  return names
end

return split
