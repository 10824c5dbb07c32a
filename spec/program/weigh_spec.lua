-- Declared weights: shares of ranks, sequences and positions.

local json = require "marea.json"
local launch = require "marea.launch"
local scratch = require "spec.support.scratch"

local exercise = launch.root() .. "/recipes/exercise.lua"

local function weigh(folder, ranks, ...)
  local code, output, errors = launch.run({ ranks = ranks, time_limit = 60 }, {
    "weigh", exercise, "--step", "2", "--outputs", folder.path, "--json", ... })
  assert.equal(0, code, errors)
  local by_name, report = {}, json.decode(output)
  for _, entry in ipairs(report.objectives) do by_name[entry.name] = entry end
  return by_name, report
end

describe("marea weigh", function()
  it("weighs a token of 12 three times a token of 36 under the mean of means", function()
    local folder <close> = scratch.folder()
    local objectives, report = weigh(folder)
    assert.same({ 12, 36 }, report.rank_tokens)
    local means = objectives.mean_of_means.ranks
    assert.near(3, means[1].per_token / means[2].per_token, 1e-12)
    assert.near(0.5, means[1].share, 1e-12)
    local tokens = objectives.global_token.ranks
    assert.near(1, tokens[1].per_token / tokens[2].per_token, 1e-12)
    assert.near(0.25, tokens[1].share, 1e-12)
    assert.is_true(objectives.global_token.declared)
    assert.is_false(objectives.mean_of_means.declared)
    for _, sequence in ipairs(objectives.per_sequence.sequences) do
      assert.near(0.25, sequence.share, 1e-12)
    end
  end)

  it("gives the same on two ranks as on one process, and writes it down", function()
    local folder <close> = scratch.folder()
    local _, one = weigh(folder)
    local _, two = weigh(folder, 2)
    assert.same(one, two)
    assert.same(one, json.decode(scratch.read(folder.path .. "/exercise/weigh.json")))
  end)

  it("shows 3 : 1 to people, and every position where asked", function()
    local folder <close> = scratch.folder()
    local _, output = launch.run({ time_limit = 60 }, {
      "weigh", exercise, "--step", "2", "--outputs", folder.path, "--positions" })
    assert.is_truthy(output:find("a token of each[^\n]*1 : 1[^\n]*3 : 1"), output)
    local _, lines = output:gsub("\n%d+ +%d+ +0%.0", "")
    assert.equal(48, lines)
  end)
end)
