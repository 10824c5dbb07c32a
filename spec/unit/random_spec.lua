-- Random numbers: the cipher's published answers, the moments of fills, streams, dropout's masks.

local core = require "marea.core"
local numeric = dofile "spec/support/numeric.lua"

-- Mean of f over a list.
local function mean(values, f)
  local total = 0
  for _, value in ipairs(values) do total = total + f(value) end
  return total / #values
end

-- Asserts that a mean of n draws lies within five of its own deviations of what is expected.
local function assert_mean(expected, found, deviation, n, what)
  local bound = 5 * deviation / math.sqrt(n)
  assert(math.abs(found - expected) <= bound,
         ("%s is %g, expected %g within %g"):format(what, found, expected, bound))
end

describe("philox", function()
  it("gives the answers published with Random123", function()
    local known = {
      { { 0, 0 }, { 0, 0, 0, 0 }, "6627e8d5 e169c58d bc57ac4c 9b00dbd8" },
      { { 0xffffffff, 0xffffffff }, { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
        "408f276d 41c83b0e a20bc7c6 6d5451fd" },
      { { 0xa4093822, 0x299f31d0 }, { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
        "d16cfe09 94fdcceb 5001e420 24126ea1" },
    }
    for _, case in ipairs(known) do
      assert.equal(case[3], ("%08x %08x %08x %08x"):format(core.philox(case[1], case[2])))
    end
  end)
end)

describe("a normal fill", function()
  local N = 100000

  it("has the moments of the normal distribution", function()
    for seed = 1, 3 do
      local values = core.normal({ N }, { seed = seed, mean = 3, std = 2, dtype = "f64" }):values()
      local function moment(k) return mean(values, function(x) return ((x - 3) / 2) ^ k end) end
      assert_mean(0, moment(1), 1, N, "mean")
      assert_mean(1, moment(2), math.sqrt(2), N, "variance")
      assert_mean(0, moment(3), math.sqrt(15), N, "skewness")
      assert_mean(3, moment(4), math.sqrt(96), N, "kurtosis")
    end
  end)

  it("has independent neighbours and tails", function()
    local values = core.normal({ N }, { seed = 4 }):values()
    for lag = 1, 4 do
      local total, beyond = 0, 0
      for i = 1, N - lag do total = total + values[i] * values[i + lag] end
      for _, value in ipairs(values) do beyond = beyond + (math.abs(value) > 3 and 1 or 0) end
      assert_mean(0, total / (N - lag), 1, N, "correlation")
      assert_mean(0.0026998, beyond / N, math.sqrt(0.0027), N, "share beyond three deviations")
    end
  end)

  it("is equal in f32 and f64, and a shorter one begins a longer one", function()
    local options = { seed = 20, stream = 3, std = 0.02 }
    local long = core.normal({ 70001 }, options)
    options.dtype = "f64"
    assert.same(long:values(), core.normal({ 70001 }, options):values())
    for _, count in ipairs { 0, 1, 2, 7, 1000 } do
      assert.same(long:slice(1, count):to("f64"):values(), core.normal({ count }, options):values())
    end
  end)

  it("differs between seeds and streams, also in their upper halves", function()
    local seen = {}
    for _, pair in ipairs { { 1, 0 }, { 2, 0 }, { 1, 1 }, { 0, 1 }, { 1 | 1 << 32, 0 },
                            { 1, 1 << 32 }, { math.maxinteger, 0 }, { 1, math.maxinteger } } do
      local hash = core.normal({ 16 }, { seed = pair[1], stream = pair[2] }):hash()
      assert.is_nil(seen[hash])
      seen[hash] = true
    end
  end)

  it("is Box and Muller's over the words of one block", function()
    local function uniform(high, low) return ((high << 32 | low) >> 11) * 2.0 ^ -53 end
    local found = core.normal({ 6 }, { seed = 20, stream = 7, dtype = "f64" }):values()
    for block = 0, 2 do
      local a, b, c, d = core.philox({ 20, 7 ~ 0x46494C4C }, { block, 0, 0, 0 })
      local radius, angle = math.sqrt(-2 * math.log(1 - uniform(a, b))), 2 * math.pi * uniform(c, d)
      local expected = { radius * math.cos(angle), radius * math.sin(angle) }
      for i = 1, 2 do
        assert.equal(core.from({ expected[i] }):item(), found[2 * block + i])
      end
    end
  end)

  it("is refused without a seed, with a negative deviation, and for integers", function()
    local function refusal(options)
      return (numeric.refusal(function() core.normal({ 2 }, options) end))
    end
    assert.equal("normal: seed is missing", refusal(nil))
    assert.equal("normal: seed must be at least 0, got -1", refusal { seed = -1 })
    assert.equal("normal: stream must be at least 0, got -1", refusal { seed = 0, stream = -1 })
    assert.equal("a normal fill needs a finite mean and a finite deviation of at least 0, got 0 " ..
                 "and -1", refusal { seed = 1, std = -1 })
    assert.equal("a random fill needs f32, f64 or bf16, got i32",
                 refusal { seed = 1, dtype = "i32" })
    assert(refusal({ seed = 1, sdt = 1 }):find("normal has no option 'sdt'", 1, true))
  end)
end)

describe("a uniform fill", function()
  local N = 100000

  it("is even over its range, ends excluded above", function()
    local values = core.uniform({ N }, { seed = 5, low = -1, high = 3, dtype = "f64" }):values()
    local bins = {}
    for i = 1, 16 do bins[i] = 0 end
    for _, value in ipairs(values) do
      assert(value >= -1 and value < 3)
      local bin = math.floor((value + 1) * 4) + 1
      bins[bin] = bins[bin] + 1
    end
    local square = 0
    for _, count in ipairs(bins) do square = square + (count - N / 16) ^ 2 / (N / 16) end
    assert(square < 45, ("chi square of 15 degrees is %g"):format(square)) -- 1 in 13,000
    assert_mean(1, mean(values, function(x) return x end), 4 / math.sqrt(12), N, "mean")
  end)

  it("never reaches its upper bound by rounding", function()
    local values = core.uniform({ N }, { seed = 6, low = 0, high = 2.0 ^ -149 * 2 }):values()
    for _, value in ipairs(values) do assert(value >= 0 and value < 2.0 ^ -148) end
    assert.same({ 2, 2 }, core.uniform({ 2 }, { seed = 6, low = 2, high = 2 }):values())
  end)

  it("is refused with bounds the wrong way round", function()
    local message = numeric.refusal(function()
      core.uniform({ 2 }, { seed = 1, low = 1, high = 0 })
    end)
    assert.equal("a uniform fill needs finite bounds, the lower one first, got 1 and 0", message)
  end)
end)

describe("a stream", function()
  it("goes on exactly from a saved state", function()
    local stream = core.stream(20, 3)
    for _ = 1, 7 do stream:next() end
    stream:normal()
    local function draws(from)
      local drawn = {}
      for i = 1, 9 do
        drawn[i] = { from:next(), from:uniform(), from:integer(1000), from:normal() }
      end
      return drawn
    end
    local state = stream:state()
    local other = core.stream(1, 1):restore(state)
    assert.same(draws(stream), draws(other))
    assert.equal(stream:state(), other:state())
  end)

  it("writes its state as seed, id and words drawn", function()
    local stream = core.stream(20, math.maxinteger)
    stream:uniform()
    assert.equal("philox 20 9223372036854775807 2", stream:state())
    assert.equal(stream:state(), core.stream(0, 0):restore(stream:state()):state())
    assert.equal("stream: id must be at least 0, got -1",
                 (numeric.refusal(function() core.stream(20, -1) end)))
  end)

  it("is the cipher's words, one after the other", function()
    local stream = core.stream(20 | 5 << 32, 3 | 6 << 32)
    for block = 0, 2 do
      local words = { core.philox({ 20, 3 ~ 0x5354524D }, { block, 0, 5, 6 }) }
      for i = 1, 4 do assert.equal(words[i], stream:next()) end
    end
  end)

  it("shares no number with another rank's, seed's or purpose's", function()
    local seen = {}
    for seed = 1, 4 do
      for id = 0, 4 do
        local word = ("%d %d"):format(core.stream(seed, id):next(), core.stream(seed, id):next())
        assert.is_nil(seen[word])
        seen[word] = true
      end
    end
  end)

  it("refuses a state that is none, and stays as it was", function()
    local stream = core.stream(20, 3)
    stream:next()
    for _, text in ipairs { "", "philox", "philox 1 2", "philox 1 2 -3", "philox 1 2 3 ",
                            "pcg 1 2 3", "philox 1 2 99999999999999999999", "philox 1 2 3x" } do
      local message, code = numeric.refusal(function() stream:restore(text) end)
      assert.equal("the state of a random stream reads 'philox SEED ID POSITION', got '" ..
                   text .. "'", message)
      assert.equal(3, code)
    end
    assert.equal("philox 20 3 1", stream:state())
  end)

  it("draws integers from 1 to n, each as often", function()
    local stream, counts, N = core.stream(20, 0), {}, 60000
    for _ = 1, N do
      local value = stream:integer(6)
      counts[value] = (counts[value] or 0) + 1
    end
    local square = 0
    for value = 1, 6 do square = square + (counts[value] - N / 6) ^ 2 / (N / 6) end
    assert(square < 30, ("chi square of 5 degrees is %g"):format(square)) -- 1 in 60,000
    assert.equal(1, stream:integer(1))
    assert.equal("integer(n) draws from 1 to n: n is 0",
                 (numeric.refusal(function() stream:integer(0) end)))
  end)

  it("has no bias where n does not divide the range", function()
    -- Of 2^64 values, 3 * 2^61 + 1 of them: remainders without rejection would favour the lower
    -- two thirds of the range by half.
    local stream, n, below, N = core.stream(20, 9), 3 << 61, 0, 20000
    for _ = 1, N do
      local value = stream:integer(n)
      assert(value >= 1 and value <= n)
      below = below + (value <= n // 3 and 1 or 0)
    end
    assert_mean(1 / 3, below / N, math.sqrt(2) / 3, N, "share of the lower third")
  end)

  it("draws uniform and normal numbers with the right moments", function()
    local stream, uniform, normal, N = core.stream(20, 1), {}, {}, 20000
    for i = 1, N do
      uniform[i], normal[i] = stream:uniform(), stream:normal()
      assert(uniform[i] >= 0 and uniform[i] < 1)
    end
    assert_mean(1 / 2, mean(uniform, function(x) return x end), 1 / math.sqrt(12), N, "mean")
    assert_mean(1 / 3, mean(uniform, function(x) return x * x end), 0.3, N, "square")
    assert_mean(0, mean(normal, function(x) return x end), 1, N, "mean")
    assert_mean(1, mean(normal, function(x) return x * x end), math.sqrt(2), N, "square")
  end)
end)
