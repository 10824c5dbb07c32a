-- core.compare: two gradients under a gate, component by component.

local core = require "marea.core"

local inf = math.huge

local function compare(a, b, gate, dtype)
  return core.compare(core.from(a, dtype or "f64"), core.from(b, dtype or "f64"), gate)
end

-- {share of the gate up to which, count} of the bins that hold something; 0 for equal.
local function filled(found)
  local list = {}
  for _, bin in ipairs(found.shares) do
    if bin.count > 0 then list[#list + 1] = { bin.up_to or "beyond", bin.count } end
  end
  return list
end

describe("a comparison under a gate", function()
  it("counts, and finds the largest error and the component nearest to its gate", function()
    local found = compare({ 1, 2.5, -100.5 }, { 1, 2, -100 }, { absolute = 0.25, relative = 0.01 })
    assert.equal(3, found.count)
    assert.equal(1, found.failing)
    assert.equal(0, found.rounding)
    assert.equal(0.5, found.max_abs)
    assert.equal(0.25, found.max_rel)
    assert.equal(100, found.max_b)
    assert.same({ 2, 2.5, 2 }, { found.worst, found.worst_a, found.worst_b })
    assert.equal(1 + 5 + 10050, found.dot_ab)
    assert.equal(1 + 4 + 10000, found.dot_bb)
  end)

  it("holds on the edge of its gate and fails behind it", function()
    assert.equal(0, compare({ 1.5 }, { 1 }, { absolute = 0.25, relative = 0.25 }).failing)
    assert.equal(1, compare({ 1.5 + 2.0 ^ -52 }, { 1 }, { absolute = 0.25, relative = 0.25 })
                      .failing)
  end)

  it("counts components by the share of the gate that they use", function()
    local found = compare({ 3, 1e-9, 2e-8, 0.06, 0.1, 1, 1.5, 10.5, 5 },
                          { 3, 0, 0, 0, 0, 0, 0, 0, 5 }, { absolute = 1 })
    assert.same({ { 0, 2 }, { 1e-8, 1 }, { 1e-7, 1 }, { 0.1, 2 }, { 1, 1 }, { 10, 1 },
                  { "beyond", 1 } }, filled(found))
    assert.equal(2, found.failing)
  end)

  it("puts every error beyond a gate of nothing", function()
    local found = compare({ 0, 1e-300 }, { 0, 0 }, nil)
    assert.same({ { 0, 1 }, { "beyond", 1 } }, filled(found))
    assert.equal(1, found.failing)
  end)

  it("fails where either side is not finite, even where both are alike", function()
    local sides = { { inf, 1 }, { 1, inf }, { inf, inf }, { -inf, inf }, { 0 / 0, 1 },
                    { 1, 0 / 0 } }
    for i, pair in ipairs(sides) do
      local found = compare({ pair[1], 2 }, { pair[2], 2 }, { absolute = 1e9, relative = 1 })
      assert.equal(1, found.failing, "pair " .. i)
      assert.same({ { 0, 1 }, { "beyond", 1 } }, filled(found), "pair " .. i)
      assert.equal(1, found.worst, "pair " .. i)
    end
  end)

  it("excuses rounding, and nothing that is not finite in the wider dtype", function()
    local function excused(wide)
      local gate = { absolute = 1e-6, relative = 0, excuse = {
        factor = 2.0 ^ -22, scale = core.from({ 100 }, "f32"), a = core.from({ wide }, "f64"),
        b = core.from({ wide }, "f64"), absolute = 1e-12, relative = 1 } }
      return core.compare(core.from({ 2.0 ^ -16 }, "f32"), core.zeros({ 1 }, "f32"), gate)
    end
    assert.same({ 0, 1 }, { excused(1).failing, excused(1).rounding })
    assert.same({ 1, 0 }, { excused(inf).failing, excused(inf).rounding })
  end)

  it("of nothing finds nothing", function()
    local found = core.compare(core.zeros { 0 }, core.zeros { 0 })
    assert.same({ 0, 0, 0, 0 }, { found.count, found.failing, found.max_abs, found.worst })
    assert.same({}, filled(found))
  end)
end)
