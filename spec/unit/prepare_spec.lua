local core = require "marea.core"
local corpus = require "marea.corpus"
local fault = require "marea.fault"
local json = require "marea.json"
local lock = require "marea.lock"
local plan = require "marea.plan"
local prepare = require "marea.prepare"
local recipe = require "marea.recipe"
local run = require "marea.run"
local sampler = require "marea.sampler"
local scratch = dofile "spec/support/scratch.lua"

local alone = { rank = function() return 0 end, size = function() return 1 end }

local function recipe_with(changes, overrides)
  local definition = {
    name = "tide",
    config = { ranks = 2, updates = 3, batch_size_per_rank = 2, accumulation = 2 },
    corpus = function(c)
      return corpus.symbols { seed = c.seed, train = 20, validation = 2, test = 2 }
    end,
    plan = function(rows, c) return sampler.by_length(rows, c) end,
    model = function() end,
    optimizer = function() end,
  }
  for key, value in pairs(changes or {}) do definition[key] = value end
  return recipe.resolve(recipe.declare(definition), { overrides = overrides })
end

local function refusal(changes, overrides)
  local ok, raised = pcall(prepare.make, recipe_with(changes, overrides), alone)
  assert.is_false(ok)
  local message, code = fault.of(raised)
  assert.equal(2, code)
  return message
end

describe("preparing", function()
  it("makes corpus, plan and lock, the same each time", function()
    local first, second = prepare.make(recipe_with(), alone), prepare.make(recipe_with(), alone)
    assert.equal(24, first.corpus.size)
    assert.equal(3, #first.plan)
    assert.same({}, lock.compare(first.lock, second.lock))
    local other = prepare.make(recipe_with(nil, { "seed=21" }), alone)
    local fields = {}
    for i, difference in ipairs(lock.compare(first.lock, other.lock)) do
      fields[i] = difference.field
    end
    assert.same({ "corpus", "plan", "config.seed" }, fields)
  end)

  it("gives the plan training rows only", function()
    local seen
    prepare.make(recipe_with { plan = function(rows, c)
      seen = rows
      return sampler.by_length(rows, c)
    end }, alone)
    assert.equal(20, #seen)
    for _, row in ipairs(seen) do assert.equal("train", row.split) end
  end)

  it("refuses callbacks that return nothing, and plans that cannot be run", function()
    assert.truthy(refusal({ corpus = function() end }):find("must return a corpus, got nothing", 1,
                                                          true))
    assert.truthy(refusal({ plan = function() end }):find("expected a list, got nothing", 1, true))
    assert.truthy(refusal({ plan = function() return { { { { 21 } }, {} } } end }, { "updates=1" })
      :find("step 1, rank 0, microbatch 1: expected training sequences, got 21", 1, true))
    assert.truthy(refusal({ plan = function() return { { { { 1 } } } } end }, { "updates=1" })
      :find("step 1: expected microbatches for 2 ranks, got 1", 1, true))
  end)

  it("writes what it made, and reads it back the same", function()
    local folder <close> = scratch.folder()
    local opened <close> = run.open { outputs = folder.path, name = "tide", way = "any",
                                      world = alone }
    local prepared = prepare.make(recipe_with(), alone)
    local record = prepare.write(opened, prepared)
    assert.same({ "corpus-card.json", "corpus.safetensors", "lock.json", "plan.json" },
                core.file.list(opened.folder))
    assert.equal(prepared.corpus:hash(), corpus.open(opened:path("corpus.safetensors")):hash())
    assert.same(prepared.plan, plan.read(opened:path("plan.json")))
    assert.same({}, lock.compare(prepared.lock, lock.read(opened:path("lock.json"))))
    local card = json.decode(core.file.read(opened:path("corpus-card.json")))
    assert.same(record.rank_tokens, card.rank_tokens)
    assert.equal(prepared.corpus:hash(), card.hash)
  end)

  it("leaves a run alone that was trained under another lock", function()
    local folder <close> = scratch.folder()
    local opened <close> = run.open { outputs = folder.path, name = "tide", way = "any",
                                      world = alone }
    prepare.write(opened, prepare.make(recipe_with(), alone))
    local other = prepare.make(recipe_with(nil, { "lr=0.5" }), alone)
    assert.has_no.errors(function() prepare.refuse_other_lock(opened, other) end)
    core.file.write(opened:path("run.json"), "{}")
    local ok, raised = pcall(prepare.refuse_other_lock, opened, other)
    local message, code = fault.of(raised)
    assert.is_false(ok)
    assert.equal(3, code)
    assert.truthy(message:find("config.lr: 0.1 then, 0.5 now", 1, true))
    assert.has_no.errors(function()
      prepare.refuse_other_lock(opened, prepare.make(recipe_with(nil, { "updates=2" }), alone))
    end)
  end)
end)
