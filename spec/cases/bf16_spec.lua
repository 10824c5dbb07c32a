-- Public cases of sums in bf16, which is computed on GPUs: on the device that was asked for (marea
-- test --device NAME), or a GPU of the processor where one was built.

local device = require "marea.device"
local launch = require "marea.launch"
local cases = dofile "spec/support/cases.lua"
local cuda = dofile "spec/support/cuda.lua"
local scratch = dofile "spec/support/scratch.lua"

local there = device.asked() or cuda.host
local waiting = "needs a GPU; none was built for the processor (-DMAREA_CUDA_HOST=ON)"

-- The gradient of a bf16 parameter of 1 whose losses are x of each microbatch in turn, summed over
-- the microbatches, and the sum of all losses as one microbatch.
local script = [[
local core = require "marea.core"
local unit = core.unit({ { name = "w", shape = {} } }, "bf16")
local w, all = unit:parameter("w"), {}
unit:master():set_(1, 1)
unit:refresh()
for _, part in ipairs { %s } do
  for _ = 1, part[2] do
    core.from({ part[1] }, "bf16"):multiply(w):sum():backward()
    all[#all + 1] = part[1]
  end
end
local losses = core.from(all, "bf16"):multiply(w)
print(("%%.17g %%.17g"):format(w:gradient():item(), losses:sum():item()))
]]

local function sums(parts)
  local folder <close> = scratch.folder()
  scratch.write(folder.path .. "/x.lua", script:format(parts))
  local code, output, errors = launch.run({
    threads = 1, time_limit = 60,
    set = not device.asked() and cuda.variables { MAREA_CUDA_DEVICES = "1" } or nil,
  }, { folder.path .. "/x.lua", "--device", device.asked() or "cuda" })
  assert.equal(0, code, errors)
  local gradient, loss = output:match "^(%S+) (%S+)\n$"
  return tonumber(gradient), tonumber(loss)
end

-- By construction: gradients of parameters of bf16, what ranks reduce, and losses are in f32.
describe("B36 a: 300 microbatches of x = 1", function()
  it("sum to 300", function()
    if not there then return pending(waiting) end
    local gradient, loss = sums "{ 1, 300 }"
    cases.check(300, gradient, { { 256, "a gradient that bf16 held" } })
    cases.check(300, loss, { { 256, "losses that bf16 summed" } })
  end)
end)

-- By construction, as above.
describe("B36 b: a microbatch of x = 1, then 512 of x = 2^-9", function()
  it("sum to 2", function()
    if not there then return pending(waiting) end
    local gradient, loss = sums "{ 1, 1 }, { 2.0 ^ -9, 512 }"
    cases.check(2, gradient, { { 1, "a gradient that bf16 held" } })
    cases.check(2, loss, { { 1, "losses that bf16 summed" } })
  end)
end)
