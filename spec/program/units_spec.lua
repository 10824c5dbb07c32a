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
