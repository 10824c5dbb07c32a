-- Dropout's mask: a function of seed, layer, update, sequence id, position and column, and of
-- nothing else.

local core = require "marea.core"
local numeric = dofile "spec/support/numeric.lua"

local function i32(values) return core.from(values, "i32") end
local function i64(values) return core.from(values, "i64") end

local P = 0.3

-- The mask (0 or 1 / (1 - p)) of rows {id, position}; `change` replaces options.
local function mask(rows, columns, change, dtype)
  local ids, positions = {}, {}
  for i, row in ipairs(rows) do ids[i], positions[i] = row[1], row[2] end
  local options = { probability = P, seed = 20, layer = 1, update = 5, ids = i64(ids),
                    positions = i32(positions) }
  for name, value in pairs(change or {}) do options[name] = value end
  return core.ones({ #rows, columns }, dtype):dropout(options)
end

local function rows_of(id, first, count)
  local rows = {}
  for i = 1, count do rows[i] = { id, first + i - 1 } end
  return rows
end

-- Share of places in which two masks differ.
local function difference(a, b)
  local x, y, count = a:values(), b:values(), 0
  for i = 1, #x do count = count + ((x[i] == 0) ~= (y[i] == 0) and 1 or 0) end
  return count / #x
end

describe("dropout", function()
  it("keeps its share and divides by it", function()
    local values = mask(rows_of(7, 0, 100), 1000):values()
    local kept = 0
    for _, value in ipairs(values) do
      if value ~= 0 then
        kept = kept + 1
        assert(math.abs(value - 1 / (1 - P)) < 1e-6)
      end
    end
    assert(math.abs(kept / 1e5 - (1 - P)) < 5 * math.sqrt(P * (1 - P) / 1e5), kept / 1e5)
  end)

  it("with probability 0 changes nothing", function()
    local x = core.normal({ 3, 5 }, { seed = 1 })
    local y = x:dropout { probability = 0, seed = 1, layer = 1, update = 1, ids = i64 { 1, 1, 1 },
                          positions = i32 { 0, 1, 2 } }
    numeric.assert_same_bits(x, y, "dropout 0")
  end)

  it("draws the words that the cipher gives for these six values", function()
    local rows, columns = { { 3, 0 }, { 3, 1 }, { 9, 4 } }, 11
    local values = mask(rows, columns, { seed = 21, layer = 6, update = 17 }):values()
    local threshold = math.floor(P * 2.0 ^ 32)
    for r, row in ipairs(rows) do
      for c = 0, columns - 1 do
        local words = { core.philox({ 21, 6 }, { 17, row[1], row[2], c // 4 }) }
        assert.equal(words[c % 4 + 1] < threshold, values[(r - 1) * columns + c + 1] == 0)
      end
    end
  end)

  it("does not depend on the order of rows, their split, or the number of columns", function()
    local rows, reversed = rows_of(7, 0, 24), {}
    for i, row in ipairs(rows) do reversed[#rows + 1 - i] = row end
    local whole, back = mask(rows, 37), mask(reversed, 37)
    for i = 1, #rows do
      numeric.assert_same_bits(whole:slice(i, 1), back:slice(#rows + 1 - i, 1), "row " .. i)
    end
    numeric.assert_same_bits(whole:slice(9, 5), mask(rows_of(7, 8, 5), 37), "a part")
    local narrow, wide = mask(rows_of(7, 3, 1), 10):values(), mask(rows_of(7, 3, 1), 37):values()
    for i = 1, 10 do assert.equal(wide[i], narrow[i]) end
  end)

  it("is another one for each seed, layer, update, sequence and position", function()
    local rows = rows_of(7, 0, 50)
    local base, expected = mask(rows, 200), 2 * P * (1 - P)
    local others = { mask(rows, 200, { seed = 21 }), mask(rows, 200, { layer = 2 }),
                     mask(rows, 200, { update = 6 }), mask(rows_of(8, 0, 50), 200),
                     mask(rows_of(7, 50, 50), 200) }
    for _, other in ipairs(others) do
      assert(math.abs(difference(base, other) - expected) < 0.025, difference(base, other))
    end
  end)

  it("is the same mask in f32 and f64, and in backward", function()
    local rows = rows_of(7, 0, 16)
    assert.equal(0, difference(mask(rows, 33), mask(rows, 33, nil, "f64")))
    for _, dtype in ipairs { "f32", "f64" } do
      local ids, positions = {}, {}
      for i = 1, 16 do ids[i], positions[i] = 7, i - 1 end
      local x = core.ones({ 16, 33 }, dtype):requires_gradient_()
      local y = x:dropout { probability = P, seed = 20, layer = 1, update = 5, ids = i64(ids),
                            positions = i32(positions) }:keep()
      y:sum():backward()
      numeric.assert_same_bits(y, x:gradient(), "mask of the backward")
    end
  end)
end)
