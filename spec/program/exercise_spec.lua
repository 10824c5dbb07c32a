-- The exercise: what it asks, what it shows, and that its wrong variant stays wrong.

local json = require "marea.json"
local launch = require "marea.launch"
local scratch = require "spec.support.scratch"

local right = { "mean_of_means=2", "token_mean=2.5", "overweighted=mean_of_means", "changes=N" }

local function run(ranks, folder, ...)
  return launch.run({ ranks = ranks, time_limit = 60 },
                    { "exercise", "--outputs", folder.path, ... })
end

describe("marea exercise", function()
  it("prints its questions and exits 2 without a terminal and without answers", function()
    local folder <close> = scratch.folder()
    local code, output, errors = run(nil, folder)
    assert.equal(2, code)
    for _, key in ipairs { "mean_of_means", "token_mean", "overweighted", "changes" } do
      assert.is_truthy(output:find(key .. "=  (", 1, true), key)
    end
    assert.is_truthy(errors:find("the exercise needs its answers", 1, true))
  end)

  it("refuses answers that it cannot read, with the nearest name", function()
    local folder <close> = scratch.folder()
    local code, _, errors = run(nil, folder, "token_maen=2")
    assert.equal(2, code)
    assert.is_truthy(errors:find("token_mean", 1, true), errors)
    code, _, errors = run(nil, folder, "token_mean=two")
    assert.equal(2, code)
    assert.is_truthy(errors:find("token_mean must be a number, got 'two'", 1, true), errors)
  end)

  it("shows the same numbers on one process and on two ranks", function()
    local folder <close> = scratch.folder()
    local _, one = run(nil, folder, table.unpack(right))
    local code, two = run(2, folder, table.unpack(right))
    assert.equal(0, code)
    local function without_noise(text) return text:gsub("%d%.?%d*e%-1%d", "tiny") end
    assert.equal(without_noise(one), without_noise(two))
    assert.is_nil(one:find(" \n", 1, true))
  end)

  it("keeps the mean of means, moves the token mean, and keeps the two apart", function()
    local folder <close> = scratch.folder()
    local code, output = run(nil, folder, "--answer", "--json")
    assert.equal(0, code)
    local report = json.decode(output)
    local means, tokens = report.engine.mean_of_means, report.engine.token_mean
    assert.near(means.before, means.after, 1e-12)
    assert.is_true(means.gradient_moved < 1e-12)
    assert.is_true(math.abs(tokens.after - tokens.before) > 1e-3)
    assert.is_true(tokens.gradient_moved > 1e-3)
    assert.is_true(report.engine.gap > 1e-3)
    assert.same({ before = { mean_of_means = 2, token_mean = 2 },
                  after = { mean_of_means = 2, token_mean = 2.5 } }, report.hand)
    assert.same({ constant = { loss = 1, gradient = 0 }, slope = { loss = 1, gradient = 1 } },
                report.one_parameter)
  end)

  it("marks what was answered", function()
    local folder <close> = scratch.folder()
    local _, output = run(nil, folder, "mean_of_means=3", "token_mean=2.5",
                          "overweighted=token_mean", "changes=W", "--json")
    local correct = {}
    for i, mark in ipairs(json.decode(output).marks) do correct[i] = mark.correct end
    assert.same({ false, true, false, false }, correct)
  end)
end)
