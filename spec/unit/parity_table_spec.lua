-- parity's errors by parameter.

local core = require "marea.core"
local parity = require "marea.parity"
local parity_table = require "marea.parity_table"

-- Two parameters and one without elements; between the first and the second lies a gap.
local ranges = { { name = "w", offset = 0, count = 2, shape = { 2 } },
                 { name = "b", offset = 4, count = 2, shape = { 2, 1 } },
                 { name = "none", offset = 8, count = 0, shape = { 0 } } }
local model = { unit = { ranges = function() return ranges end } }

local reference = { 1, -4, 0, 0, 0.5, 0, 0, 0 }

local function gradients(changes, dtype)
  local values = table.move(reference, 1, #reference, 1, {})
  for i, by in pairs(changes) do values[i] = values[i] + by end
  return core.from(values, dtype)
end

local function table_of(narrow, wide, scale)
  local gates = parity.gates
  local f64 = { a = gradients(wide, "f64"), b = gradients({}, "f64"), gate = gates.f64 }
  local f32 = { a = gradients(narrow, "f32"), b = gradients({}, "f32"), gate = gates.f32,
                excuse = { factor = gates.rounding, scale = core.full({ 8 }, scale, "f32"),
                           a = f64.a, b = f64.b, absolute = 1e-12, relative = 1e-9 } }
  return parity_table.of(model, f32, f64)
end

describe("parity's errors by parameter", function()
  it("are those of each parameter alone, with its nearest gate", function()
    local w, b, none = table.unpack(table_of({ [1] = 2.0 ^ -12, [3] = 9 }, { [6] = 1e-9 }, 0))
    assert.same({ "w", 2, { 2 }, 4 }, { w.name, w.count, w.shape, w.max_gradient })
    assert.same({ failing = 1, rounding = 0, max_abs = 2.0 ^ -12,
                  worst = { index = 1, error = 2.0 ^ -12, gate = 1e-6 + 1e-4 } }, w.f32)
    assert.same({ failing = 0, rounding = 0, max_abs = 0,
                  worst = { index = 1, error = 0, gate = 1e-12 + 1e-9 } }, w.f64)
    assert.same({ "b", 2, { 2, 1 }, 0.5 }, { b.name, b.count, b.shape, b.max_gradient })
    assert.equal(0, b.f32.failing)
    assert.same({ failing = 1, rounding = 0, max_abs = 1e-9,
                  worst = { index = 2, error = 1e-9, gate = 1e-12 } }, b.f64)
    assert.same({ failing = 0, rounding = 0, max_abs = 0 }, none.f32)
    assert.equal(3, #table_of({}, {}, 0))
  end)

  it("excuse rounding by the sums of the parameter's own components", function()
    local changes = { [1] = 2.0 ^ -12 }
    assert.same({ 1, 0 }, { table_of(changes, {}, 1)[1].f32.failing,
                            table_of(changes, {}, 1)[1].f32.rounding })
    assert.same({ 0, 1 }, { table_of(changes, {}, 1024)[1].f32.failing,
                            table_of(changes, {}, 1024)[1].f32.rounding })
  end)
end)
