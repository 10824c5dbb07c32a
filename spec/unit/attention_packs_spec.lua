-- Attention over packs of uneven lengths: the same bits on any number of threads, and each sequence
-- as if it were alone. With one head threads share it; with more each has heads of its own.

local core = require "marea.core"

local uneven = { 600, 0, 1, 2, 13, 127, 16, 131, 64 } -- around the edges of tiles and blocks

local function total(lengths)
  local sum = 0
  for _, length in ipairs(lengths) do sum = sum + length end
  return sum
end

local function rows_of(lengths, heads, size, dtype)
  return core.normal({ total(lengths), 3 * heads * size }, { seed = 20, stream = 1, dtype = dtype })
    :requires_gradient_(true)
end

-- Output and gradient of self-attention.
local function run(x, lengths, given)
  local out = x:self_attention { heads = given.heads, causal = given.causal,
                                 lengths = core.from(lengths, "i64", { #lengths }) }
  out:keep()
  out:weighted_sum(core.normal(out:shape(), { seed = 21, dtype = x:dtype() })):backward()
  return out, x:gradient()
end

describe("attention over uneven packs", function()
  local before = core.device().threads
  after_each(function() core.set_threads(before) end)

  for _, given in ipairs {
    { heads = 1, size = 16 }, { heads = 1, size = 33, causal = false }, { heads = 3, size = 5 },
    { heads = 3, size = 40, causal = false }, { heads = 2, size = 300 },
  } do
    for _, dtype in ipairs { "f32", "f64" } do
      it(("of %d head%s of %d%s has the same bits on 1, 2 and 3 threads in %s"):format(
           given.heads, given.heads > 1 and "s" or "", given.size,
           given.causal == false and ", not causal," or "", dtype), function()
        local function hashes(threads)
          core.set_threads(threads)
          local out, gradient = run(rows_of(uneven, given.heads, given.size, dtype), uneven, given)
          return { out:hash(), gradient:hash() }
        end
        local expected = hashes(1)
        for _, threads in ipairs { 2, 3 } do assert.same(expected, hashes(threads)) end
      end)
    end
  end

  it("adds up the gradients of queries, keys and values where they are one tensor", function()
    local lengths, packing = { 37, 3 }, { heads = 2 }
    packing.lengths = core.from(lengths, "i64", { #lengths })
    local weights = core.normal({ 40, 18 }, { seed = 21, dtype = "f64" })
    local function draw()
      return core.normal({ 40, 18 }, { seed = 20, dtype = "f64" }):requires_gradient_(true)
    end
    local one, q, k, v = draw(), draw(), draw(), draw()
    one:attention(one, one, packing):weighted_sum(weights):backward()
    q:attention(k, v, packing):weighted_sum(weights):backward()
    local got, parts = one:gradient():values(), {}
    for i, x in ipairs { q, k, v } do parts[i] = x:gradient():values() end
    for i = 1, #got do
      assert.near(parts[1][i] + parts[2][i] + parts[3][i], got[i], 1e-13) -- f64, sums below 10
    end
  end)

  it("gives each of 1,300 sequences what it has alone", function()
    local lengths = {}
    for i = 1, 1300 do lengths[i] = i * 7 % 5 end
    lengths[700] = 40
    local given = { heads = 2, size = 4 }
    local x = rows_of(lengths, given.heads, given.size, "f32")
    local packed = run(x, lengths, given):values()
    local width, first, seen = given.heads * given.size, 0, 0
    for _, length in ipairs(lengths) do
      if length > 0 then
        local own = core.from(x:slice(first + 1, length):values(), "f32", { length, 3 * width })
        local alone = own:self_attention { heads = given.heads,
                                           lengths = core.from({ length }, "i64", { 1 }) }:values()
        assert.same(alone, table.move(packed, first * width + 1, (first + length) * width, 1, {}))
        seen = seen + 1
      end
      first = first + length
    end
    assert.equal(1041, seen)
  end)

  it("passes back what finite differences find, in the longest sequence too", function()
    local lengths = { 1, 150, 5 }
    local weights = core.normal({ 156, 3 }, { seed = 22, dtype = "f64" })
    local packed = core.from(lengths, "i64", { 3 })
    local function loss(values)
      return core.from(values, "f64", { 156, 9 })
        :self_attention { heads = 1, lengths = packed }:weighted_sum(weights):values()[1]
    end
    for _, threads in ipairs { 1, 2 } do
      core.set_threads(threads)
      local x = rows_of(lengths, 1, 3, "f64")
      x:self_attention { heads = 1, lengths = packed }:weighted_sum(weights):backward()
      local gradient, values = x:gradient():values(), x:values()
      for _, at in ipairs { 1, 10, 9 * 70 + 2, 9 * 70 + 5, 9 * 70 + 9, 9 * 150 + 4, 9 * 155 + 1 } do
        local own = values[at]
        values[at] = own + 1e-5
        local above = loss(values)
        values[at] = own - 1e-5
        local below = loss(values)
        values[at] = own
        assert.is_true(math.abs((above - below) / 2e-5 - gradient[at]) < 1e-8, at)
      end
    end
  end)
end)
