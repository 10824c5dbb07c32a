-- The recipes of units pass parity with the unit that they declare; a loop that weighs otherwise
-- does not.
local objective = require "marea.objective"
local parity = require "marea.parity"
local recipe_of = require "marea.recipe"
local Session = require "marea.session"
local loops = dofile "spec/support/loops.lua"

local size = require("marea.world").get():size()

-- Small, so that many runs are quick; the plan and the data are the recipe's own.
local function load(name, overrides, accumulate)
  local config = { width = 16, layers = 1, updates = 2 }
  for key, value in pairs(overrides or {}) do config[key] = value end
  local recipe = recipe_of.load(("recipes/%s.lua"):format(name), config)
  recipe.declared.definition.accumulate = accumulate
  return recipe:with {}
end

local units = {
  ["per:book"] = objective.per "book", global_token = objective.global_token,
  per_sequence = objective.per_sequence, mean_of_means = objective.mean_of_means,
}

local function passes(name, overrides)
  local report = parity.run(load(name, overrides))
  if not report then return end
  assert.same({ 0, 0 }, { report.f32.failing, report.f64.failing })
  assert.is_true(report.pass)
  for _, entry in ipairs(report.controls) do assert.equal(entry.told_apart, entry.detected) end
  return report
end

-- Asserts that parity sees every other unit's loop where `declared` is.
local function refutes(name, declared, config)
  config.objective = declared
  for other, unit in pairs(units) do
    if other ~= declared then
      local report = parity.run(load(name, config, loops.weighing_as(unit)))
      if report then
        assert(report.f64.failing > 1000 and not report.pass,
               ("%s: a loop of %s passes as %s"):format(name, other, declared))
      end
    end
  end
end

describe("documents", function()
  it("passes parity by books, its ranks with different numbers of microbatches", function()
    if size ~= 2 then return pending "planned for two ranks" end
    local planned = Session.open(load "documents").plan[1]
    assert.same({ 2, 3 }, { #planned[1], #planned[2] })
    local report = passes "documents"
    if not report then return end
    assert.equal("per:book", report.objective)
    for _, entry in ipairs(report.controls) do assert(entry.detected, entry.name) end
  end)

  it("fails it with the loops of other units, and others with its own", function()
    if size ~= 2 then return pending "planned for two ranks" end
    refutes("documents", "per:book", { budget = 400 })
    refutes("documents", "global_token", { budget = 400 })
  end)
end)

describe("prompts", function()
  it("passes parity over completions, and with prompts that count half", function()
    if size ~= 2 then return pending "planned for two ranks" end
    passes("prompts")
    passes("prompts", { prompts = "supervised", objective = "prompts:0.5" })
    passes("prompts", { objective = "per:book" })
  end)

  it("fails it with the loops of other units, and where prompts are counted", function()
    if size ~= 2 then return pending "planned for two ranks" end
    refutes("prompts", "global_token", { batch_size_per_rank = 3 })
    local report = parity.run(load("prompts", {}, loops.by_rows))
    if report then
      assert.is_true(report.f64.failing > 1000)
      assert.is_true(report.factor.value < 0.7)
    end
  end)
end)

describe("parity", function()
  it("takes the recipe's own units for controls", function()
    if size ~= 2 then return pending "planned for two ranks" end
    local recipe = load("documents", { budget = 400 })
    recipe.declared.definition.units = {
      by_length = function(sequence) return sequence.length end,
      alike = function() return 2 end,
      of_book = recipe.declared.definition.objective,
      never = function() return -1 end,
    }
    local report = parity.run(recipe:with { objective = "global_token" })
    if not report then return end
    local named = {}
    for _, entry in ipairs(report.controls) do named[entry.name] = entry end
    assert.is_true(named.by_length.detected and named.of_book.detected and report.pass)
    assert.matches("^every position", named.alike.reason)
    assert.equal("this window is refused under it", named.never.reason)
    assert.equal("weighted by the recipe's unit", named.by_length.meaning)
  end)
end)
