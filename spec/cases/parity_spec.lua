-- Public cases of numerics as a user meets them, at the command line.

local launch = require "marea.launch"
local scratch = dofile "spec/support/scratch.lua"

-- Rank 0 has x = 1, rank 1 has x = 3, 3, 3; the loop is one of spec/support/loops.lua.
local recipe = [[
local loops, training = dofile "spec/support/loops.lua", dofile "spec/support/training.lua"
local objective = require "marea.objective"
local accumulate = %s
local given = { accumulate = accumulate, %s }
return training.toy({ { { { 1 } } }, { { { 3, 3, 3 } } } }, given).declared
]]

local function run(accumulate, more)
  local folder <close> = scratch.folder()
  scratch.write(folder.path .. "/toy.lua", recipe:format(accumulate, more or ""))
  return launch.run({ ranks = 2, threads = 1, time_limit = 60 },
                    { "parity", folder.path .. "/toy.lua", "--outputs", folder.path })
end

-- By a check, which prints what it got and what it expected; and by a refusal.
describe("B23: parity of an engine that was broken on purpose", function()
  it("passes before", function()
    local code, output, errors = run "loops.right"
    assert.equal(0, code, output .. errors)
    assert.equal("pass\n", output:sub(-5))
  end)

  it("a: no reduction: refused, since the gradients of the ranks stay their own", function()
    local loop = 'loops.by_hand(require("marea.world").get(), { all_reduce = true })'
    local code, _, errors = run(loop, "replicate = false")
    assert.equal(1, code)
    assert.truthy(errors:find("reduced the gradients of the model over the ranks 0 times", 1, true),
                  errors)
  end)

  for _, case in ipairs { { "b: mean of local means", "loops.weighing_as(objective.mean_of_means)",
                            "got 2, expected 2.5" },
                          { "c: no factor W", "loops.no_factor", "got 1.25, expected 2.5" } } do
    it(case[1] .. ": fails, and prints both values", function()
      local code, output, errors = run(case[2])
      assert.equal(3, code, errors)
      assert.truthy(output:find(case[3], 1, true), output)
      assert.equal("FAIL\n", output:sub(-5))
    end)
  end
end)
