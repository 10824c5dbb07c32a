-- Units on the command line: chosen by their text, weighed beside the others, refused with a line.

local json = require "marea.json"
local launch = require "marea.launch"
local scratch = require "spec.support.scratch"

local documents = launch.root() .. "/recipes/documents.lua"

local function weigh(folder, ...)
  return launch.run({ time_limit = 60 },
                    { "weigh", documents, "--outputs", folder.path, "--json", ... })
end

describe("a unit on the command line", function()
  it("is declared by its text, beside those of the library", function()
    local folder <close> = scratch.folder()
    local code, output, errors = weigh(folder, "objective=per:book,scaled_by:length")
    assert.equal(0, code, errors)
    local names, report = {}, json.decode(output)
    for i, entry in ipairs(report.objectives) do names[i] = entry.name end
    assert.same({ "per:book,scaled_by:length", "global_token", "mean_of_means", "per_sequence" },
                names)
    local sum = 0
    for _, rank in ipairs(report.objectives[1].ranks) do sum = sum + rank.share end
    assert.near(1, sum, 1e-12)
  end)

  it("is refused with the recipe's line and the field where the corpus lacks it", function()
    local folder <close> = scratch.folder()
    for objective, expected in pairs {
      ["per:bok"] = 'documents.lua:%d+: per:bok needs the field "bok", .* did you mean "book"%?',
      ["scaled_by:book"] = 'documents.lua:%d+: scaled_by:book needs a number in the field "book"',
      ["pre:book"] = 'there is no objective "pre:book"; there are global_token, .*per:FIELD',
    } do
      local code, _, errors = weigh(folder, "objective=" .. objective)
      assert.equal(2, code)
      assert.matches(expected, errors)
    end
  end)
end)

local recipe = [[
local marea = require "marea"
return marea.recipe {
  name = "fixed", config = { ranks = 2, updates = 1 },
  corpus = function() return marea.corpus.jsonl { path = "rows.jsonl", fields = { "cost" } } end,
  model = function() end,
  optimizer = function() end,
  plan = function() return marea.sampler.from_file "plan.json" end,
  objective = marea.objective.scaled_by "cost",
}
]]

describe("a plan from a file", function()
  local function run(folder, plan)
    scratch.write(folder.path .. "/fixed.lua", recipe)
    scratch.write(folder.path .. "/rows.jsonl",
                  '{"prompt":"ab","completion":"cd","cost":3,"split":"train"}\n' ..
                  '{"prompt":"","completion":"e","cost":2.5,"split":"train"}\n')
    scratch.write(folder.path .. "/plan.json", plan)
    return launch.run({ time_limit = 60 }, { "weigh", folder.path .. "/fixed.lua", "--outputs",
                                             folder.path, "--json" })
  end

  it("lies beside the recipe, and its windows are weighed as planned", function()
    local folder <close> = scratch.folder()
    local code, output, errors = run(folder, "[[[[1]],[[2]]]]")
    assert.equal(0, code, errors)
    local report = json.decode(output)
    assert.same({ 2, 1 }, report.rank_tokens)
    local ranks = report.objectives[1].ranks
    assert.near(3 / 8.5, ranks[1].per_token, 1e-15)
    assert.near(2.5 / 8.5, ranks[2].per_token, 1e-15)
  end)

  it("is checked like any other", function()
    local folder <close> = scratch.folder()
    for plan, expected in pairs {
      ["[[[[1]],[[3]]]]"] = "fixed.lua:7: plan: step 1, rank 1, microbatch 1: expected a sequence",
      ["[[[[1]]]]"] = "fixed.lua:7: plan: step 1: expected microbatches for 2 ranks, got 1",
      ["[[[[1]],[[1]]]]"] = "expected ids that do not repeat within a window, got 1",
      ["{}"] = "plan.json: no plan: it has no steps",
    } do
      local code, _, errors = run(folder, plan)
      assert.equal(2, code)
      assert(errors:find(expected, 1, true), errors)
    end
  end)
end)
