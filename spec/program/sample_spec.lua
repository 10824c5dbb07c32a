-- Text from a checkpoint, as a user asks for it.

local core = require "marea.core"
local json = require "marea.json"
local scratch = dofile "spec/support/scratch.lua"
local tiny = dofile "spec/support/tiny.lua"

local recipe = "spec/recipes/letters.lua"

describe("marea sample", function()
  local folder

  setup(function()
    folder = scratch.folder()
    local code, _, errors = tiny.run(folder.path, nil, { "train", recipe })
    assert(code == 0, errors)
  end)

  teardown(function() getmetatable(folder).__close(folder) end)

  local function sample(ranks, ...)
    return tiny.run(folder.path, ranks, { "sample", recipe, ... })
  end

  local function result(ranks, ...)
    local code, output, errors = sample(ranks, "--json", ...)
    assert.are.equal(0, code, errors)
    return json.decode(output)
  end

  it("gives the same greedy bytes each time, for any seed, on 1, 2 and 3 ranks", function()
    local first = result(nil, "--greedy", "--prompt", "moon ")
    assert.are.equal(19, first.tokens)
    assert.are.equal(19, #first.bytes)
    assert.are.equal("context", first.stopped)
    for _, ranks in ipairs { false, 2, 3 } do
      local again = result(ranks or nil, "--greedy", "--prompt", "moon ", "--seed",
                           tostring(7 + (ranks or 0)))
      assert.are.same(first.bytes, again.bytes)
    end
    local code, output = sample(2, "--greedy", "--prompt", "moon ", "--raw")
    assert.are.equal(0, code)
    assert.are.equal("moon " .. string.char(table.unpack(first.bytes)), output)
  end)

  it("draws by the seed, and otherwise for another seed or temperature", function()
    local function drawn(...) return table.concat(result(nil, "--tokens", "20", ...).bytes, " ") end
    local one = drawn("--seed", "1")
    assert.are.equal(one, drawn("--seed", "1"))
    assert.are.equal(one, drawn("--seed", "1", "--top-k", "256"))
    assert.are_not.equal(one, drawn("--seed", "2"))
    assert.are_not.equal(one, drawn("--seed", "1", "--temperature", "3"))
    local greedy = drawn("--greedy")
    assert.are_not.equal(one, greedy)
    assert.are.equal(greedy, drawn("--seed", "5", "--top-k", "1"))
    assert.are.equal(greedy, drawn("--seed", "6", "--temperature", "1e-6"))
  end)

  it("draws each byte by its number: a longer text begins with the shorter", function()
    local short = result(nil, "--tokens", "5").bytes
    local long = result(nil, "--tokens", "15").bytes
    assert.are.same(short, table.move(long, 1, 5, 1, {}))
  end)

  it("learned what follows: greedy text is of the corpus's letters", function()
    local text = result(nil, "--greedy", "--prompt", "mo", "--tokens", "10").text
    assert.is_truthy(text:find("^[bdeflmnotwi ]+$"), text)
  end)

  it("stops at the context with a note, where more was asked for", function()
    local code, output, errors = sample(nil, "--tokens", "100", "--prompt", "ebb")
    assert.are.equal(0, code)
    assert.are.equal("marea: stopped at the model's context of 24 bytes\n", errors)
    assert.are.equal("ebb", output:sub(1, 3))
    code, output, errors = sample(nil, "--prompt", "ebb")
    assert.are.equal("ebb", output:sub(1, 3))
    assert.are.equal(0, code)
    assert.are.equal("", errors) -- nothing was asked for that does not fit
    local full = ("x"):rep(24)
    code, output, errors = sample(nil, "--prompt", full, "--tokens", "1")
    assert.are.equal(0, code)
    assert.are.equal(full .. "\n", output)
    assert.is_truthy(errors:find("context of 24", 1, true))
    assert.are.equal(0, result(nil, "--tokens", "0").tokens)
  end)

  it("shows what is no text as \\xNN, and with --raw as it is", function()
    local prompt = "\xFFmoon\27[2J\xC2\x85\té"
    local code, output = sample(nil, "--prompt", prompt, "--tokens", "0")
    assert.are.equal(0, code)
    assert.are.equal("\\xFFmoon\\x1B[2J\\xC2\\x85\té\n", output)
    code, output = sample(nil, "--prompt", prompt, "--tokens", "0", "--raw")
    assert.are.equal(0, code)
    assert.are.equal(prompt, output)
  end)

  it("takes a checkpoint of an own choice, and uses a folder in use", function()
    local checkpoint = folder.path .. "/letters/checkpoints/step-000030"
    local lock <close> = core.file.lock(folder.path .. "/letters")
    assert(lock)
    assert.are.equal(checkpoint, result(nil).checkpoint)
    assert.are.equal(checkpoint, result(nil, "--checkpoint", checkpoint).checkpoint)
  end)

  it("refuses what it cannot do", function()
    local cases = {
      { { "--prompt", ("x"):rep(25) }, 2, "--prompt has 25 bytes, and the model's context is 24" },
      { { "--temperature", "0" }, 2, "--temperature must be a number above 0, not 0 (--greedy" },
      { { "--temperature", "inf" }, 2, "--temperature must be a number above 0, not inf" },
      { { "--top-k", "0" }, 2, "--top-k must be a whole number of 1 or more, not 0" },
      { { "--tokens", "x" }, 2, "--tokens must be a whole number of 0 or more, not x" },
      { { "--seed", "-1" }, 2, "--seed" },
      { { "--run", "none" }, 2, "/none holds no run that was trained" },
      { { "width=32" }, 3, "the recipe's model expects the shape [258, 32]" },
    }
    for _, case in ipairs(cases) do
      local code, output, errors = sample(nil, table.unpack(case[1]))
      assert.are.equal(case[2], code, errors)
      assert.are.equal("", output)
      assert.is_truthy(errors:find(case[3], 1, true), errors)
    end
    local code, _, errors = tiny.run(folder.path, 2, { "sample", tiny.recipe })
    assert.are.equal(2, code)
    assert.are.equal("marea: spec/recipes/tiny.lua: sample needs a recipe of text, whose corpus " ..
                     "has 258 symbols (corpus.jsonl or corpus.text); this one has 6\n", errors)
  end)
end)
