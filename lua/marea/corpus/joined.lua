-- Text joined end to end and cut into sequences of one length, as language models are trained: a
-- position predicts the symbol behind it, whatever document that belongs to.
--
-- Symbols are learned from the training part. With few of them (below 257) they are the commonest
-- bytes, and one that stands for every other byte; with more they are all bytes and then the
-- commonest words with the blank before them. Text becomes words where they are symbols, and bytes
-- elsewhere.

local documents = require "marea.corpus.documents"
local fault = require "marea.fault"
local json = require "marea.json"
local options = require "marea.options"

local joined = {}

local what = "corpus.joined"

local byte_count = 256
local parts = { { "train", 0.8 }, { "validation", 0.9 }, { "test", 1 } }

-- --- symbols ------------------------------------------------------------------------------------

-- Keys of a table of counts, the commonest first; equally common ones in the order of bytes.
local function by_count(counts, least)
  local keys = {}
  for key, count in pairs(counts) do
    if count >= least then keys[#keys + 1] = key end
  end
  table.sort(keys, function(a, b)
    if counts[a] ~= counts[b] then return counts[a] > counts[b] end
    return a < b
  end)
  return keys
end

-- A word with the blank before it, or what stands between words: the pieces of a text are the text.
local function pieces(text)
  local position = 1
  return function()
    if position > #text then return nil end
    local _, last = text:find("^ ?[%w'\x80-\xff]+", position)
    last = last or position
    local piece = text:sub(position, last)
    position = last + 1
    return piece
  end
end

local function learn_bytes(text, vocabulary)
  local counts = {}
  for i = 1, #text do
    local byte = text:sub(i, i)
    counts[byte] = (counts[byte] or 0) + 1
  end
  local symbols = {}
  for i, byte in ipairs(by_count(counts, 1)) do
    if i < vocabulary then symbols[byte] = i - 1 end
  end
  return symbols, vocabulary - 1
end

local function learn_words(text, vocabulary)
  local counts, symbols = {}, {}
  for byte = 0, byte_count - 1 do symbols[string.char(byte)] = byte end
  for piece in pieces(text) do
    if #piece > 1 then counts[piece] = (counts[piece] or 0) + 1 end
  end
  for i, piece in ipairs(by_count(counts, 2)) do
    if byte_count + i > vocabulary then break end
    symbols[piece] = byte_count + i - 1
  end
  return symbols
end

-- Appends the symbols of a text to ids.
local function encode(text, symbols, other, ids)
  for piece in pieces(text) do
    local symbol = symbols[piece]
    if symbol and not other then
      ids[#ids + 1] = symbol
    else
      for i = 1, #piece do ids[#ids + 1] = symbols[piece:sub(i, i)] or other end
    end
  end
  return ids
end

-- --- sequences ----------------------------------------------------------------------------------

-- The documents of a file of JSON lines, a newline between them; any other file as it is.
local function read_text(given)
  local content, path = documents.read(given.path, what)
  if not path:find("%.jsonl$") then return content, path end
  local list = {}
  for number, line in documents.lines(content) do
    local object, problem = json.decode(line)
    local text = type(object) == "table" and object[given.field or "text"]
    if type(text) ~= "string" then
      fault.raise_at(2, ("%s:%d"):format(path, number), "%s: expected an object with the text %q%s",
                     what, given.field or "text", problem and "; " .. problem or "")
    end
    list[number] = text
  end
  return table.concat(list, "\n"), path
end

-- Stretches of `length` inputs, each with the symbol behind it as its target; a rest is left out.
local function cut(ids, length, split, add)
  for first = 1, #ids - length, length do
    add { inputs = table.move(ids, first, first + length - 1, 1, {}),
          targets = table.move(ids, first + 1, first + length, 1, {}), split = split }
  end
end

---@class marea.JoinedOptions
---@field path string beside the recipe, or from the working folder; *.jsonl: texts of JSON lines
---@field field? string of JSON lines, that holds the text (default "text")
---@field vocabulary integer number of symbols, at least 2
---@field length integer symbols of a sequence

--- Reads a file; its first 80 % are for training, then 10 % each for validation and test.
--- Errors, code 2: options, no such file, lines that are no JSON, a text that is too short for one
--- sequence to train on.
---@param given marea.JoinedOptions
---@return marea.Source source
function joined.read(given)
  options.check(given, what, { "path", "field", "vocabulary", "length" })
  local vocabulary = options.integer(given.vocabulary, what .. ": vocabulary", 2)
  local length = options.integer(given.length, what .. ": length", 1)
  local text, path = read_text(given)
  local learn = vocabulary <= byte_count and learn_bytes or learn_words
  local symbols, other = learn(text:sub(1, math.floor(#text * parts[1][2])), vocabulary)
  local sequences, first = {}, 1
  for _, part in ipairs(parts) do
    local last = math.floor(#text * part[2])
    cut(encode(text:sub(first, last), symbols, other, {}), length, part[1],
        function(sequence) sequences[#sequences + 1] = sequence end)
    first = last + 1
  end
  if not sequences[1] or sequences[1].split ~= "train" then
    fault.raise_at(2, path, "%s: %d bytes of text make no sequence of %d symbols to train on", what,
                   #text, length)
  end
  local kinds = other and ("the %d commonest bytes, and one for all others"):format(other) or
    ("bytes, then the commonest words: %d symbols"):format(vocabulary)
  return { sequences = sequences, vocabulary = vocabulary,
           notes = { source = what, symbols = kinds } }
end

return joined
