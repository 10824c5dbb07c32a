-- bf16 on the processor: what conversions round to, and that nothing is computed or summed in it.

local core = require "marea.core"
local numeric = dofile "spec/support/numeric.lua"
local scratch = dofile "spec/support/scratch.lua"

local huge = math.huge
local greatest = 0x1.fep127 -- of bf16
local half_ulp = 0x1p-8 -- of numbers from 1 to 2
local tiny = 0x1p-133 -- the least of bf16

-- A number, and what it is in bf16.
local rounded = {
  { 1, 1 }, { -2.5, -2.5 }, { 0x1p-126, 0x1p-126 }, { greatest, greatest },
  -- ties go to the even neighbour, the rest to the nearest
  { 1 + half_ulp, 1 }, { 1 + 3 * half_ulp, 1 + 4 * half_ulp }, { -1 - half_ulp, -1 },
  { 1 + half_ulp + 0x1p-23, 1 + 2 * half_ulp }, { 1 + 3 * half_ulp - 0x1p-23, 1 + 2 * half_ulp },
  -- subnormal numbers
  { tiny, tiny }, { tiny / 2, 0 }, { tiny * 1.5, tiny * 2 }, { tiny * 2.5, tiny * 2 },
  { 0x1p-126 - tiny / 2, 0x1p-126 }, { -tiny * 0.75, -tiny },
  -- beyond the greatest
  { 0x1.fefffep127, greatest }, { 0x1.ffp127, huge }, { -0x1.ffp127, -huge },
  { huge, huge }, { -huge, -huge },
}

-- Those that a float between would turn into ties.
local in_one_rounding = {
  { 1 + half_ulp + 0x1p-40, 1 + 2 * half_ulp }, { 1 + 3 * half_ulp - 0x1p-40, 1 + 2 * half_ulp },
  { -1 - half_ulp - 0x1p-40, -1 - 2 * half_ulp }, { tiny / 2 + 0x1p-160, tiny },
  { 1e300, huge }, { 1e-300, 0 }, { 0x1.fep127 + 0x1p119 - 0x1p90, greatest },
}

local function both_signs_of_zero(t)
  local a, b = t:get(1), t:get(2)
  return 1 / a == huge and 1 / b == -huge
end

describe("bf16", function()
  for _, dtype in ipairs { "f32", "f64" } do
    it("takes the nearest of " .. dtype .. ", of two the even one", function()
      for _, case in ipairs(rounded) do
        local from = core.from({ case[1] }, dtype)
        assert.equal(case[2], from:to("bf16"):item(), ("%a"):format(case[1]))
        assert.equal(case[2], from:to("bf16"):to(dtype):item())
      end
    end)

    it("keeps NaN and the sign of zero of " .. dtype, function()
      local from = core.from({ 0.0, -0.0, 0 / 0, -(0 / 0) }, dtype)
      local t = from:to("bf16")
      assert.is_true(both_signs_of_zero(t))
      for _, back in ipairs { t, t:to("f32"), t:to("f64") } do
        assert.is_true(back:get(3) ~= back:get(3) and back:get(4) ~= back:get(4))
      end
    end)
  end

  it("rounds a double once", function()
    for _, case in ipairs(in_one_rounding) do
      assert.equal(case[2], core.from({ case[1] }, "f64"):to("bf16"):item(), ("%a"):format(case[1]))
      assert.equal(case[2], core.from({ case[1] }, "bf16"):item())
    end
  end)

  it("gives back each of its numbers", function()
    for exponent = -133, 127 do
      local value = 2.0 ^ exponent
      assert.equal(value, core.from({ value }, "bf16"):to("f64"):to("bf16"):item())
    end
    local all = {}
    for i = 128, 255 do all[#all + 1] = i / 128 end
    local t = core.from(all, "bf16")
    assert.same(all, t:values())
    assert.equal(t:hash(), t:to("f32"):to("bf16"):hash())
  end)

  it("is made from and set to numbers, and from integers", function()
    local t = core.full({ 2, 2 }, 0.1, "bf16")
    assert.same({ 2, 2 }, t:shape())
    assert.equal("bf16", t:dtype())
    assert.equal(0x1.9ap-4, t:get(4))
    t:set_(3, 257)
    assert.equal(256, t:get(3))
    assert.same({ 256, 3 }, core.from({ 257, 3 }, "i64"):to("bf16"):values())
    assert.equal(1, core.ones({ 1 }, "bf16"):item())
  end)

  it("draws the numbers of f32, rounded", function()
    local wide = core.normal({ 1000 }, { seed = 3 })
    local narrow = core.normal({ 1000 }, { seed = 3, dtype = "bf16" })
    assert.equal(wide:to("bf16"):hash(), narrow:hash())
  end)

  it("is compared with other reals", function()
    local found = core.compare(core.from({ 1, 0.1 }, "bf16"), core.from({ 1, 0.1 }, "f64"),
                               { absolute = 0, relative = 0x1p-9 })
    assert.equal(0, found.failing)
    assert.near(0.10009765625 - 0.1, found.max_abs, 1e-15)
  end)

  it("is written and read as BF16", function()
    local folder <close> = scratch.folder()
    local path = folder.path .. "/t.safetensors"
    local t = core.from({ 1, -2, 0.1 }, "bf16")
    core.safetensors.write(path, { { "t", t } }, {})
    assert.is_truthy(scratch.read(path):find('"dtype":"BF16"', 1, true))
    local file <close> = core.safetensors.open(path)
    assert.equal("bf16", file:dtype "t")
    assert.equal(t:hash(), file:tensor("t"):hash())
  end)

  it("has no sums, products or operations on the CPU", function()
    local t = core.ones({ 2, 2 }, "bf16")
    assert.equal("gemm of bf16 is not supported on cpu", (numeric.refusal(function()
      t:matmul(t)
    end)))
    assert.equal("weighted_sum: weights of bf16 must be f32, got bf16", (numeric.refusal(function()
      t:weighted_sum(t)
    end)))
    assert.equal("bf16 cannot be converted to i32: reals are never rounded to integers silently",
                 (numeric.refusal(function() t:to("i32") end)))
  end)

  it("is not reduced over ranks", function()
    local t = core.ones({ 2 }, "bf16")
    local message = numeric.refusal(function() core.world():all_reduce(t, "sum") end)
    assert.equal("all_reduce: bf16 would be rounded at every rank: convert to f32, then reduce",
                 message)
  end)
end)

describe("a unit of bf16", function()
  local function make() return core.unit({ { name = "a", shape = { 2 } } }, "bf16") end

  it("keeps a master and gradients in f32", function()
    local unit = make()
    assert.equal("bf16", unit:parameter("a"):dtype())
    assert.equal("bf16", unit:values():dtype())
    assert.equal("f32", unit:master():dtype())
    assert.equal("f32", unit:gradients():dtype())
    assert.equal("f32", unit:parameter("a"):gradient():dtype())
  end)

  it("rounds the master when it is refreshed, and only then counts it as a change", function()
    local unit = make()
    local began = unit:version()
    unit:refresh()
    assert.equal(began, unit:version())
    unit:master():fill_(1 + 3 * half_ulp)
    assert.equal(0, unit:parameter("a"):get(2))
    local changed = unit:version()
    assert.is_true(changed > began)
    unit:refresh()
    assert.equal(1 + 4 * half_ulp, unit:parameter("a"):get(2))
    assert.equal(1 + 3 * half_ulp, unit:master():get(2))
    assert.equal(changed, unit:version())
    unit:parameter("a"):fill_(7)
    assert.is_true(unit:version() > changed)
  end)

  it("is one buffer for other dtypes", function()
    for _, dtype in ipairs { "f32", "f64" } do
      local unit = core.unit({ { name = "a", shape = { 2 } } }, dtype)
      assert.is_true(unit:master():is_same(unit:values()))
    end
  end)
end)
