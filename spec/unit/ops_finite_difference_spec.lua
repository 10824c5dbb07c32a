-- The backward of every operation against finite differences of its forward, in f64.

local core = require "marea.core"
local device = require "marea.device"
local cases = dofile "spec/support/operation_cases.lua"
local numeric = dofile "spec/support/numeric.lua"

-- Differences of fourth order with a step of 1e-3 are off by about 1e-12 (the step) and 1e-13
-- (rounding) of values near 1; gradients of the cases here reach about 10.
local STEP, BOUND = 2e-4, 1e-9

-- On a device every 11th element of large leaves: cuda_rows compares its kernels in whole with the
-- processor's, of which every element is tried here.
local LARGE, STRIDE = 100, 11

local function stride_of(tensor)
  return device.asked() and tensor:count() > LARGE and STRIDE or 1
end

-- A number that depends on every element of the output, summed in Lua.
local function weighted(output, weights)
  local total = 0
  for i, value in ipairs(output:values()) do total = total + weights[i] * value end
  return total
end

local function check(name, case)
  local leaves = cases.leaves(case, "f64")
  local output = case.run(leaves)
  local upstream = core.normal(output:shape(), { seed = 20, stream = 100, dtype = "f64" })
  local weights = upstream:values()
  output:weighted_sum(upstream):backward()
  for _, leaf in ipairs(cases.names(leaves)) do
    local expected = numeric.unrecorded(function()
      return numeric.differences(leaves[leaf], STEP, function()
        return weighted(case.run(leaves), weights)
      end, stride_of(leaves[leaf]))
    end)
    local found = numeric.gradient(leaves[leaf])
    for i, b in pairs(expected) do
      local a = found[i]
      local good = math.abs(a - b) <= BOUND * (1 + math.abs(b)) -- false for NaN
      if not good then
        error(("%s of %s: gradient %d of %s is %.17g, differences give %.17g"):format(
          name, case.text, i, leaf, a, b))
      end
    end
  end
end

describe("the backward of", function()
  for _, record in ipairs(core.operations) do
    if record.differentiable then
      it(record.name .. " agrees with finite differences", function()
        local list = cases.of[record.name]
        assert(list and #list >= 3, record.name .. " has fewer than three cases in " ..
          "spec/support/operation_cases.lua")
        for _, case in ipairs(list) do check(record.name, case) end
      end)
    end
  end

  it("a wrong factor would be seen", function()
    local x = core.from({ 1, 2 }, "f64")
    local expected = numeric.differences(x, STEP, function() return x:get(1) ^ 2 * x:get(2) end)
    numeric.assert_close({ 4, 1 }, expected, BOUND, "differences")
    assert.has_error(function()
      numeric.assert_close({ 4 * (1 + 1e-8), 1 }, expected, BOUND, "differences")
    end)
  end)
end)

describe("the cases of every operation", function()
  it("give each real argument a leaf at least once", function()
    for _, record in ipairs(core.operations) do
      local seen = {}
      for _, case in ipairs(cases.of[record.name] or {}) do
        for leaf in pairs(case.leaves) do seen[leaf:gsub("%d+$", "")] = true end
      end
      for _, argument in ipairs(record.arguments) do
        if argument.kind == "real" or argument.kind == "tensors" then
          assert(seen[argument.name], ("%s: no case has %s"):format(record.name, argument.name))
        end
      end
    end
  end)

  it("belong to a record", function()
    local known = {}
    for _, record in ipairs(core.operations) do known[record.name] = true end
    for name in pairs(cases.of) do assert(known[name], "no operation " .. name) end
  end)

  it("do not leave optional arguments untried", function()
    for _, record in ipairs(core.operations) do
      for _, argument in ipairs(record.arguments) do
        if argument.kind == "real" and argument.optional then
          local without = false
          for _, case in ipairs(cases.of[record.name]) do
            without = without or case.leaves[argument.name] == nil
          end
          assert(without, ("%s: no case leaves out %s"):format(record.name, argument.name))
        end
      end
    end
  end)
end)
