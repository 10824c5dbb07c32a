-- Public cases of evaluation that need more ranks than worlds of specs have.

local launch = require "marea.launch"
local cases = dofile "spec/support/cases.lua"
local scratch = dofile "spec/support/scratch.lua"

-- 44 targets in 16 blocks of three or two: half of them of loss 1, half of loss 3.
local script = [[
local evaluate = require "marea.evaluate"
local world = require("marea.world").get()
local cases = dofile "spec/support/cases.lua"
local training = dofile "spec/support/training.lua"
local validation, target = {}, 0
for block = 1, 16 do
  local targets = block <= 12 and 3 or 2
  for i = 1, 16 do
    target = target + (i <= targets and 1 or 0)
    validation[#validation + 1] = { i <= targets and (target <= 22 and 1 or 3) or { 1000 } }
  end
end
local toy = training.toy({ { { { 5 } } } }, { validation = validation }, { ranks = 1 })
local result = evaluate.split(cases.session(toy, world), "validation")
if world:rank() == 0 then print(world:size(), result.tokens, ("%.17g"):format(result.loss)) end
]]

-- By construction, as for two ranks: see spec/cases/world/evaluation_spec.lua.
describe("B01 b: 16 ranks, S = 88, n = 44", function()
  it("say 2.0", function()
    local folder <close> = scratch.folder()
    scratch.write(folder.path .. "/x.lua", script)
    local code, output, errors = launch.run({ ranks = 16, threads = 1, time_limit = 60 },
                                            { folder.path .. "/x.lua" })
    assert.equal(0, code, errors)
    local ranks, tokens, loss = output:match("^(%d+)\t(%d+)\t(%S+)\n$")
    assert.same({ "16", "44" }, { ranks, tokens })
    cases.check(2, tonumber(loss), { { 2.75, "the mean of the counts lost its fraction" },
                                     { 88 / 48, "the mean of the ranks' means" } })
  end)
end)
