-- marea prepare, started as a program: what it prints, what it leaves, what it refuses.

local json = require "marea.json"
local launch = require "marea.launch"
local scratch = dofile "spec/support/scratch.lua"

local recipe = [[
local marea = require "marea"
return marea.recipe {
  name = "tide",
  config = { ranks = 2, updates = 3, batch_size_per_rank = 2 },
  corpus = function(c)
    return marea.corpus.symbols { seed = c.seed, train = 20, validation = 4, test = 4 }
  end,
  model = function() end,
  optimizer = function() end,
  plan = function(rows, c)
    return marea.sampler.by_length(rows, c)
  end,
}
]]

local artefacts = { "corpus.safetensors", "corpus-card.json", "plan.json", "lock.json" }

local folder, path, outputs

before_each(function()
  folder = scratch.folder()
  path, outputs = folder.path .. "/tide.lua", folder.path .. "/outputs"
  scratch.write(path, recipe)
end)

after_each(function() getmetatable(folder).__close() end)

local function prepare(ranks, ...)
  return launch.run({ ranks = ranks, time_limit = 60 },
                    { "prepare", path, "--outputs", outputs, ... })
end

describe("marea prepare", function()
  it("prints the corpus card and leaves corpus, card, plan and lock", function()
    local code, output, errors = prepare(nil)
    assert.equal("", errors)
    assert.equal(0, code)
    for _, expected in ipairs { "28 documents", "train ", "rank tokens", "duplicates  0",
                                "hash " } do
      assert.truthy(output:find(expected, 1, true), expected)
    end
    for _, name in ipairs(artefacts) do
      assert.truthy(scratch.read(outputs .. "/tide/" .. name), name)
    end
  end)

  it("leaves the same bytes on any number of ranks", function()
    assert.equal(0, (prepare(nil)))
    for _, ranks in ipairs { 2, 3 } do
      local code, output = prepare(ranks, "--run", "again", "--json")
      assert.equal(0, code)
      assert.equal(28, json.decode(output).documents)
      for _, name in ipairs(artefacts) do
        assert.equal(scratch.read(outputs .. "/tide/" .. name),
                     scratch.read(outputs .. "/again/" .. name), name)
      end
    end
  end)

  it("refuses what the recipe cannot do, with its line, and leaves nothing", function()
    local code, _, errors = prepare(2, "batch_size_per_rank=11")
    assert.equal(2, code)
    assert.equal("marea: " .. path .. ":10: sampler.by_length: a window draws 11 different short",
                 errors:match("^(.-short)"))
    code, _, errors = prepare(nil, "udpates=4")
    assert.equal(2, code)
    assert.equal('marea: config has no key "udpates"; did you mean "updates"?\n', errors)
    assert.is_nil(scratch.read(outputs .. "/tide/lock.json"))
  end)

  it("refuses a script", function()
    scratch.write(path, "return 1\n")
    local code, _, errors = prepare(nil)
    assert.equal(2, code)
    assert.equal("marea: " .. path .. ": this file returns a number and no recipe; it " ..
                 "must end in return marea.recipe { ... }\n", errors)
  end)
end)
