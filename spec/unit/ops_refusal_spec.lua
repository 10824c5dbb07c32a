-- What operations refuse, with the exact text: operation, argument, expected, found.

local core = require "marea.core"
local numeric = dofile "spec/support/numeric.lua"

local ARGUMENT, CONTENT = 1, 2

local function zeros(...) return core.zeros({ ... }) end
local function i32(values) return core.from(values, "i32") end
local function i64(values) return core.from(values, "i64") end

-- Calls attention over 4 rows.
local function attend(columns, heads, lengths, starts)
  return zeros(4, columns):self_attention { heads = heads, lengths = i64(lengths),
                                            starts = starts and i64(starts) }
end
local function attend_apart(k_columns, heads)
  zeros(2, 4):attention(zeros(2, k_columns), zeros(2, 4), { heads = heads, lengths = i64 { 2 } })
end
local function drop(probability, ids)
  zeros(#ids, 3):dropout { probability = probability, seed = 1, layer = 1, update = 1,
                           ids = i64(ids), positions = i32 { 0 } }
end

local refusals = {
  { "add: b must have the shape of a, [2,3], or of its last axes, got [2]",
    function() zeros(2, 3):add(zeros(2)) end },
  { "add: b must have the shape of a, [3], or of its last axes, got [2,3]",
    function() zeros(3):add(zeros(2, 3)) end },
  { "multiply: b must have the shape of a, [2,3], or of its last axes, got [1,3]",
    function() zeros(2, 3):multiply(zeros(1, 3)) end },
  { "add: b is f64 while the arguments before it are f32",
    function() zeros(2):add(core.zeros({ 2 }, "f64")) end },
  { "add: a must be f32, f64 or bf16, got i32", function() i32({ 1 }):add(zeros(1)) end },
  { "matmul: a is [2,3] and b is [2,3]: the last extent of a must be the first of b",
    function() zeros(2, 3):matmul(zeros(2, 3)) end },
  { "matmul: a must have 2 axes, got [3]", function() zeros(3):matmul(zeros(3, 3)) end },
  { "linear: x is [2,3] and w is [4,5]: their last extents must be equal",
    function() zeros(2, 3):linear(zeros(4, 5)) end },
  { "linear_gelu_linear: down must have 4 columns, as many as up has rows, got [2,3]",
    function() zeros(2, 3):linear_gelu_linear(zeros(4, 3), nil, zeros(2, 3)) end },
  { "linear: b must have shape [4], got [3]",
    function() zeros(2, 3):linear(zeros(4, 3), zeros(3)) end },
  { "softmax: x must have at least one axis, got a scalar", function() zeros():softmax() end },
  { "layer_norm: w must have shape [3], got [2]", function() zeros(2, 3):layer_norm(zeros(2)) end },
  { "layer_norm: epsilon must be a finite number of at least 0, got -1",
    function() zeros(2, 3):layer_norm(zeros(3), zeros(3), { epsilon = -1 }) end },
  { "rms_norm: w must have shape [3], got [3,1]",
    function() zeros(2, 3):rms_norm(zeros(3, 1)) end },
  { "squared_error: b must have the shape of a, [2,3], got [3,2]",
    function() zeros(2, 3):squared_error(zeros(3, 2)) end },
  { "weighted_sum: x is [2] and weights are [3]: they must be equal",
    function() zeros(2):weighted_sum(zeros(3)) end },
  { "reshape: x is [2,3] with 6 elements and cannot become [4,2] with 8",
    function() zeros(2, 3):reshape { 4, 2 } end },
  { "slice: first must lie in 1 to 4, got 5", function() zeros(3, 2):slice(5, 0) end },
  { "slice: first must lie in 1 to 4, got 0", function() zeros(3, 2):slice(0, 1) end },
  { "slice: count must lie in 0 to 2 from row 2 on, got 3",
    function() zeros(3, 2):slice(2, 3) end },
  { "slice: count must lie in 0 to 3 from row 1 on, got -1", function() zeros(3):slice(1, -1) end },
  { "slice: first must lie in 1 to 4, got -9223372036854775808",
    function() zeros(3):slice(math.mininteger, 1) end },
  { "slice: x must have at least one axis, got a scalar", function() zeros():slice(1, 1) end },
  { "concatenate: others[2] must have the shape of x, [2,3], but for the first extent, got [2,4]",
    function() zeros(2, 3):concatenate { zeros(0, 3), zeros(2, 4) } end },
  { "concatenate: others[1] must have the shape of x, [2,3], but for the first extent, got [3]",
    function() zeros(2, 3):concatenate { zeros(3) } end },
  { "embedding: w must have 2 axes, got [4]", function() zeros(4):embedding(i32 { 0 }) end },
  { "embedding: ids must have 1 axis, got [1,1]",
    function() zeros(4, 2):embedding(core.zeros({ 1, 1 }, "i32")) end },
  { "cross_entropy: targets must have shape [2], got [3]",
    function() zeros(2, 3):cross_entropy(i32 { 0, 0, 0 }) end },
  { "argmax: x must have at least one column, got [2,0]", function() zeros(2, 0):argmax() end },
  { "dropout: positions must have shape [2], got [1]", function() drop(0.5, { 1, 1 }) end },
  { "attention: k must have the shape of q, [2,4], got [2,2]", function() attend_apart(2, 2) end },
  { "attention: heads must divide the 4 columns of q, got 3", function() attend_apart(4, 3) end },
  { "self_attention: x must have columns in three equal parts, got [4,4]",
    function() attend(4, 1, { 2 }) end },
  { "self_attention: heads must divide the 2 columns of a third of x, got 0",
    function() attend(6, 0, { 2 }) end },
  { "self_attention: lengths[2] must be at least 0, got -1",
    function() attend(6, 1, { 2, -1 }) end },
  { "self_attention: sequence 2 begins at row 3 and has 2 rows, outside the 4 rows there are",
    function() attend(6, 1, { 3, 2 }) end },
  { "self_attention: sequence 1 begins at row -1 and has 2 rows, outside the 4 rows there are",
    function() attend(6, 1, { 2 }, { -1 }) end },
  { "self_attention: sequence 1 begins at row 0 and has 9223372036854775807 rows, outside the 4 " ..
    "rows there are", function() attend(6, 1, { math.maxinteger, 3 }) end },
  { "self_attention: sequences 2 and 1 overlap at row 2",
    function() attend(6, 1, { 2, 3 }, { 2, 0 }) end },
  { "self_attention: starts must have shape [2], got [1]",
    function() attend(6, 1, { 2, 2 }, { 0 }) end },
}

for _, value in ipairs { -0.1, 1, 0 / 0 } do
  local text = ("dropout: probability must be at least 0 and below 1, got %g"):format(value)
  refusals[#refusals + 1] = { text, function() drop(value, { 1 }) end }
end

describe("an operation refuses", function()
  for _, refusal in ipairs(refusals) do
    it(refusal[1], function()
      local message, code = numeric.refusal(refusal[2])
      assert.equal(refusal[1], message)
      assert.equal(ARGUMENT, code)
    end)
  end

  it("nothing about empty sequences inside others", function()
    assert.same({ 4, 2 }, attend(6, 1, { 4, 0, 0 }, { 0, 2, 4 }):shape())
  end)

  it("ids outside the vocabulary, as content", function()
    local message, code = numeric.refusal(function() zeros(4, 2):embedding(i32 { 0, 3, 4 }) end)
    assert.equal("embedding: ids[3] is 4, outside 0 to 3", message)
    assert.equal(CONTENT, code)
    message, code = numeric.refusal(function() zeros(4, 2):embedding(i32 { -100 }) end)
    assert.equal("embedding: ids[1] is -100, outside 0 to 3", message)
    assert.equal(CONTENT, code)
  end)

  it("targets outside the classes, as content", function()
    for _, target in ipairs { 3, -1, -99, -101, 2147483647 } do
      local expected = "cross_entropy: targets[2] is %d, outside 0 to 2 and not -100 (ignored)"
      local message, code = numeric.refusal(function()
        zeros(2, 3):cross_entropy(i32 { 0, target })
      end)
      assert.equal(expected:format(target), message)
      assert.equal(CONTENT, code)
    end
  end)

  it("and blames the line of the call", function()
    local chunk = assert(load("local x, y = ...\n\nx:matmul(y)", "@recipes/example.lua"))
    local ok, raised = pcall(chunk, zeros(2, 3), zeros(2, 3))
    assert.is_false(ok)
    assert.equal("recipes/example.lua:3: matmul: a is [2,3] and b is [2,3]: the last extent " ..
                 "of a must be the first of b", tostring(raised))
  end)

  it("and leaves no memory behind", function()
    collectgarbage()
    collectgarbage()
    local before = core.memory().live
    for _, refusal in ipairs(refusals) do pcall(refusal[2]) end
    collectgarbage()
    collectgarbage()
    assert.equal(before, core.memory().live)
  end)
end)
