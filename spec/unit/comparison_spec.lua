-- The comparison under parity: gates, what is excused as rounding, and which component is named.

local core = require "marea.core"
local numeric = dofile "spec/support/numeric.lua"
local parity = require "marea.parity"

local function f64(values) return core.from(values, "f64") end

describe("a gate", function()
  it("is the published one for f32, and one for f64 that sees a token in ten million", function()
    assert.same({ f32 = { absolute = 1e-6, relative = 1e-4 },
                  f64 = { absolute = 1e-12, relative = 1e-9 }, rounding = 2.0 ^ -22 }, parity.gates)
    local tokens = 1e7
    local found = core.compare(f64 { 3 }, f64 { 3 * tokens / (tokens + 1) }, parity.gates.f64)
    assert.equal(1, found.failing)
  end)

  it("holds up to absolute + relative |b|, on either side", function()
    local gate = { absolute = 0.5, relative = 0.25 }
    local b = { 2, -2, 0, 8, -8 }
    local function failing(by)
      local a = {}
      for i, value in ipairs(b) do a[i] = value + by * (0.5 + 0.25 * math.abs(value)) end
      return core.compare(f64(a), f64(b), gate).failing
    end
    assert.same({ 0, 0, 5, 5 }, { failing(1), failing(-1), failing(1.001), failing(-1.001) })
  end)

  it("fails what is not finite, on either side", function()
    local wide = { absolute = 1e300 }
    for _, bad in ipairs { 0 / 0, 1 / 0, -1 / 0 } do
      assert.equal(1, core.compare(f64 { 1, bad, 3 }, f64 { 1, 2, 3 }, wide).failing)
      assert.equal(1, core.compare(f64 { 1, 2, 3 }, f64 { 1, bad, 3 }, wide).failing)
      assert.equal(1, core.compare(f64 { bad }, f64 { bad }, wide).failing)
      assert.equal(2, core.compare(f64 { 1, bad, 3 }, f64 { 1, 2, 3 }, wide).worst)
    end
  end)

  it("names the component that is worst for its size, and the largest errors", function()
    local found = core.compare(f64 { 100.5, 1, 0.2, 4 }, f64 { 100, 1, 0.1, 4.25 },
                               { absolute = 0.01, relative = 0.01 })
    assert.same({ 4, 3, 0, 3, 0.2, 0.1, 0.5 },
                { found.count, 2 + 1, found.rounding, found.worst, found.worst_a, found.worst_b,
                  found.max_abs })
    assert.equal(2, found.failing)
    assert.near(1, found.max_rel, 1e-15)
    assert.near(100.5 * 100 + 1 + 0.02 + 17, found.dot_ab, 1e-9)
    assert.near(1e4 + 1 + 0.01 + 18.0625, found.dot_bb, 1e-9)
  end)

  it("takes f32 against f64, and nothing of another size or kind", function()
    assert.equal(0, core.compare(core.from({ 0.5 }, "f32"), f64 { 0.5 }, {}).failing)
    assert.equal("compared tensors have 1 and 2 elements",
                 (numeric.refusal(function() core.compare(f64 { 1 }, f64 { 1, 2 }, {}) end)))
    assert.equal("only reals are compared, got i32 and f64", (numeric.refusal(function()
      core.compare(core.from({ 1 }, "i32"), f64 { 1 }, {})
    end)))
    assert.equal(0, core.compare(core.zeros({ 0 }), core.zeros({ 0 }), {}).worst)
  end)
end)

describe("a miss in f32", function()
  -- b is 0; the gate allows 1, the excuse factor * scale = 0.25 * 8 = 2 beyond it.
  local function judge(a, wide, scale)
    local found = core.compare(core.from({ a }, "f32"), core.from({ 0 }, "f32"), {
      absolute = 1, excuse = { factor = 0.25, scale = core.from({ scale or 8 }, "f32"),
                               a = f64 { wide }, b = f64 { 1 }, absolute = 0, relative = 1 / 64 },
    })
    return found.failing, found.rounding
  end

  it("is rounding when f64 holds and it is within the sum of |gradient|", function()
    assert.same({ 0, 0 }, { judge(1, 1) })
    assert.same({ 0, 1 }, { judge(3, 1) })
    assert.same({ 0, 1 }, { judge(-3, 1 + 1 / 64) })
  end)

  it("fails beyond that, and where f64 does not hold, or is no number", function()
    assert.same({ 1, 0 }, { judge(3.01, 1) })
    assert.same({ 1, 0 }, { judge(3, 1.02) })
    assert.same({ 1, 0 }, { judge(3, 1, 7) })
    assert.same({ 1, 0 }, { judge(0 / 0, 1) })
    assert.same({ 1, 0 }, { judge(1 / 0, 1, 1 / 0) })
    assert.same({ 1, 0 }, { judge(3, 0 / 0) })
  end)
end)

describe("add_absolute", function()
  it("adds up absolute values in place", function()
    for _, dtype in ipairs { "f32", "f64" } do
      local sum = core.from({ 1, 0, 2 }, dtype)
      core.add_absolute(sum, core.from({ -1, 3, 0.5 }, dtype))
      core.add_absolute(sum, core.from({ -1, -3, 0.5 }, dtype))
      assert.same({ 3, 6, 3 }, sum:values())
    end
  end)
end)
