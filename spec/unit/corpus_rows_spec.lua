-- Rows of JSON lines: which positions are supervised, after the one shift. B02 and B52 are those of
-- the public cases.

local corpus = require "marea.corpus"
local fault = require "marea.fault"
local scratch = dofile "spec/support/scratch.lua"

local none = { validation = 0, test = 0 }

-- The corpus of some lines.
local function read(lines, given)
  local folder <close> = scratch.folder()
  local whole = { path = folder.path .. "/rows.jsonl", split = none }
  for key, value in pairs(given or {}) do whole[key] = value end
  scratch.write(whole.path, table.concat(lines, "\n"))
  return corpus.jsonl(whole)
end

local function assert_refused(expected, lines, given)
  local good, raised = pcall(read, lines, given)
  assert.is_false(good)
  local message, code = fault.of(raised)
  assert(message:find(expected, 1, true), message)
  assert.equal(2, code)
end

-- "1>2 2>3": what each supervised position has read last, and what it is to say.
local function pairs_of(made)
  local list = {}
  for id = 1, made.size do
    local inputs = made:inputs(id)
    for i, target in ipairs(made:targets(id)) do
      if target ~= -100 then list[#list + 1] = ("%d>%d"):format(inputs[i], target) end
    end
  end
  return table.concat(list, " ")
end

local function tokens_of(made)
  local counts = {}
  for id = 1, made.size do counts[id] = made:sequence(id).tokens end
  return counts
end

describe("rows of prompt and completion", function()
  local lines = { '{"prompt":"ab","completion":"cde"}', '{"prompt":"","completion":"f"}' }

  it("count the completion only, whose first byte is said after the last of the prompt", function()
    local made = read(lines)
    assert.same({ 256, 97, 98, 99, 100 }, made:inputs(1))
    assert.same({ -100, -100, 99, 100, 101 }, made:targets(1))
    assert.same({ 3, 1 }, tokens_of(made))
    assert.equal(5, made:sequence(1).length)
    assert.is_nil(made:sequence(1).prompt_tokens)
  end)

  it("count the prompt too where that is asked for, and say how much of it", function()
    local made = read(lines, { prompts = "supervised" })
    assert.same({ 97, 98, 99, 100, 101 }, made:targets(1))
    assert.same({ 5, 1 }, tokens_of(made))
    assert.same({ 2, 0 }, { made:sequence(1).prompt_tokens, made:sequence(2).prompt_tokens })
  end)

  it("are refused without either part, with file and line", function()
    assert_refused('rows.jsonl:1: the field "prompt" is missing', { '{"completion":"a"}' })
    assert_refused('rows.jsonl:2: the field "completion" is missing',
                   { lines[1], '{"prompt":"a"}' })
    assert_refused("rows.jsonl:1: an empty completion", { '{"prompt":"a","completion":""}' })
    assert_refused('the field "prompt" must be a string, got a number',
                   { '{"prompt":1,"completion":"a"}' })
    assert_refused('prompts must be "ignored" or "supervised", got true', lines,
                   { prompts = true })
    assert_refused('the row has "spans" beside its completion',
                   { '{"prompt":"a","completion":"b","spans":[[0,1]]}' })
  end)
end)

describe("rows with spans", function()
  it("count the bytes in them, from 0 and without the end", function()
    local made = read { '{"text":"abcdef","spans":[[0,1],[3,5]]}',
                        '{"text":"abc","spans":[[0,3]]}', '{"text":"abc","spans":[]}' }
    assert.same({ 97, -100, -100, 100, 101, -100 }, made:targets(1))
    assert.same({ 3, 3, 0 }, tokens_of(made))
  end)

  it("count the tokens in them", function()
    local made = read({ '{"tokens":[1,2,3,4],"spans":[[0,1],[2,4]]}' }, { vocabulary = 5 })
    assert.equal("2>3 3>4", pairs_of(made))
  end)

  for _, case in ipairs {
    { "[[0,7]]", "span 1 must be [from, to] with 0 <= from < to <= 6" },
    { "[[0,2],[2,2]]", "span 2 must be [from, to]" },
    { "[[-1,2]]", "span 1 must be [from, to]" },
    { "[[0,1.5]]", "span 1 must be [from, to]" },
    { "[2,4]", "span 1 must be [from, to]" },
    { '[["0","2"]]', "span 1 must be [from, to]" },
    { "[[2,4],[3,5]]", "span 2 begins at 3, before the end of the one before it, 4" },
    { '"all"', 'the field "spans" must be a list, got a string' },
  } do
    it("refuse " .. case[1], function()
      assert_refused("rows.jsonl:1: " .. case[2], { '{"text":"abcdef","spans":' .. case[1] .. "}" })
    end)
  end
end)

describe("rows of tokens and labels", function()
  it("are shifted once: a label is that of its own token (B52)", function()
    local rows = { '{"tokens":[1,2,3,4],"labels":[1,2,3,4]}',
                   '{"tokens":[5,6,7,8],"labels":[5,6,7,8]}' }
    assert.equal("1>2 2>3 3>4 5>6 6>7 7>8", pairs_of(read(rows, { vocabulary = 9 })))
    rows = { '{"tokens":[1,2,3,4]}', '{"tokens":[5,6,7,8]}' }
    assert.equal("1>2 2>3 3>4 5>6 6>7 7>8", pairs_of(read(rows, { vocabulary = 9 })))
  end)

  it("are counted after the shift (B02)", function()
    local made = read({ '{"tokens":[5,6,7,8,9],"labels":[5,6,7,8,9]}',
                        '{"tokens":[1,2,3,4],"labels":[-100,-100,3,4]}' }, { vocabulary = 10 })
    assert.same({ 4, 2 }, tokens_of(made))
    assert.equal(6, made.card.tokens)
  end)

  it("have a position for the first token where a symbol begins them", function()
    local made = read({ '{"tokens":[1,2,3],"labels":[1,-100,3]}',
                        '{"tokens":[2],"labels":[2]}' }, { vocabulary = 5, begin = 4, pad = 0 })
    assert.equal("4>1 2>3 4>2", pairs_of(made))
    assert.same({ 5, 4, 0 }, { made.vocabulary, made.begin, made.pad })
  end)

  it("that were shifted already are refused, unless the corpus is told so (B52)", function()
    local rows = { '{"tokens":[1,2,3,4],"labels":[2,3,4,-100]}' }
    assert_refused("rows.jsonl:1: labels[1] is 2 where tokens[1] is 1: a label is that of its own",
                   rows, { vocabulary = 9 })
    assert.equal("1>2 2>3 3>4", pairs_of(read(rows, { vocabulary = 9, shifted = true })))
  end)

  for _, case in ipairs {
    { '{"tokens":[1,2],"labels":[1]}', "1 labels for 2 tokens" },
    { '{"tokens":[1,9],"labels":[1,9]}', "tokens[2] must be an id from 0 to 8, got 9" },
    { '{"tokens":[1,2],"labels":[1,-1]}', "labels[2] must be an id from 0 to 8 or -100, got -1" },
    { '{"tokens":[1,-100]}', "tokens[2] must be an id from 0 to 8, got -100" },
    { '{"tokens":["1",2]}', "tokens[1] must be an id from 0 to 8, got 1" },
    { '{"tokens":[]}', "a row without tokens has no position to predict at" },
    { '{"tokens":[3]}', "a row of one token and no begin symbol has no position" },
    { '{"tokens":"1 2"}', 'the field "tokens" must be a list, got a string' },
    { '{"tokens":[1,2],"labels":[1,2],"spans":[[0,1]]}', 'the row has both "spans" and "labels"' },
    { '{"text":"ab"}', 'the field "tokens" is missing' },
  } do
    it("are refused where they do not fit: " .. case[1], function()
      assert_refused("rows.jsonl:1: " .. case[2], { case[1] }, { vocabulary = 9 })
    end)
  end

  it("need a vocabulary, and symbols of it", function()
    assert_refused("rows of tokens need the option vocabulary", { '{"tokens":[1,2]}' })
    assert_refused("pad must be below the vocabulary of 3, got 3", { '{"tokens":[1,2]}' },
                   { vocabulary = 3, pad = 3 })
    assert_refused("begin is for rows of tokens", { '{"text":"a"}' }, { begin = 0 })
  end)
end)

describe("rows of a file", function()
  it("have one form, which is seen from them or said", function()
    local both = '{"text":"abc","prompt":"a","completion":"bc"}'
    assert_refused('the row has both "text" and "completion"', { both })
    assert.same({ 3 }, tokens_of(read({ both }, { field = "text" })))
    assert_refused("rows.jsonl:2: a row of prompt and completion behind rows of text",
                   { '{"text":"abc"}', '{"prompt":"a","completion":"b"}' })
    assert_refused("rows.jsonl:2: a row of tokens behind rows of tokens and labels",
                   { '{"tokens":[1,2],"labels":[1,2]}', '{"tokens":[1,2]}' }, { vocabulary = 3 })
    assert_refused('the field "text" is missing', { '{"txt":"abc"}' })
  end)

  it("that are equal go into the same split, whatever their form", function()
    local lines = {}
    for i = 1, 40 do lines[i] = ('{"tokens":[%d,1,2,3]}'):format(i % 10) end
    local made = read(lines, { vocabulary = 20, split = { validation = 0.2, test = 0.2 } })
    assert.same({ total = 30, across_splits = 0 }, made.card.duplicates)
    assert.same({ 24, 8, 8 },
                { #made:rows("train"), #made:rows("validation"), #made:rows("test") })
  end)
end)
