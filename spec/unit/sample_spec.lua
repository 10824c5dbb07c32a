-- How a byte is drawn.

local core = require "marea.core"
local sample = require "marea.sample"

-- Shares of the symbols of `logits` in as many draws.
local function shares(logits, options, draws)
  local stream, counts = core.stream(1, 1), {}
  for i = 1, #logits do counts[i] = 0 end
  for _ = 1, draws do
    local symbol = sample.draw(logits, options, stream:uniform())
    counts[symbol] = counts[symbol] + 1
  end
  for i = 1, #logits do counts[i] = counts[i] / draws end
  return counts
end

local function near(expected, found, within)
  for i, value in ipairs(expected) do
    assert(math.abs(value - found[i]) <= within, ("%d: %g, expected %g"):format(i, found[i], value))
  end
end

-- A softmax on paper.
local function softmax(logits, temperature)
  local sum, result = 0, {}
  for i, logit in ipairs(logits) do
    result[i] = math.exp(logit / temperature)
    sum = sum + result[i]
  end
  for i = 1, #logits do result[i] = result[i] / sum end
  return result
end

describe("a drawn symbol", function()
  local logits = { 0, 2, 1, -1, 2 }

  it("follows the model's probabilities, and the temperature", function()
    for _, temperature in ipairs { 0.5, 1, 4 } do
      -- 5 standard deviations of a share of 1/2 in 20,000 draws
      near(softmax(logits, temperature),
           shares(logits, { temperature = temperature }, 20000), 0.018)
    end
  end)

  it("is one of the k likeliest, and of equal ones the first", function()
    local found = shares(logits, { temperature = 1, top_k = 3 }, 5000)
    assert.are.equal(0, found[1] + found[4])
    near({ 0, 0.42, 0.16, 0, 0.42 }, found, 0.036)
    assert.are.same({ 0, 1, 0, 0, 0 }, shares(logits, { temperature = 1, top_k = 1 }, 100))
    assert.are.equal(2, sample.draw(logits, { temperature = 1, top_k = 99 }, 0))
  end)

  it("is always one, at the ends of the draw and for extreme logits", function()
    local last = 1 - 2 ^ -53
    assert.are.equal(4, sample.draw(logits, { temperature = 1 }, last))
    assert.are.equal(1, sample.draw({ 1e308, -1e308 }, { temperature = 1 }, last))
    assert.are.equal(1, sample.draw({ 3, 2 }, { temperature = 1e-300 }, last))
    near({ 0.5, 0.5 }, shares({ 5, -5 }, { temperature = 1e300 }, 20000), 0.018)
  end)
end)
