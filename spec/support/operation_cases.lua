-- Calls of every operation on several shapes, among them sizes that fill no vector, and on extents
-- of 0. The specs walk core.operations and look each record up here.
--
-- A case: `leaves` = {name = shape}, named as the arguments of the record (those of a list as
-- others1, others2); `run(t)` calls the operation on the leaves; `text` tells cases apart.

local core = require "marea.core"

local cases = { of = {} }

local function i32(values) return core.from(values, "i32") end
local function i64(values) return core.from(values, "i64") end

local function add(name, text, leaves, run)
  cases.of[name] = cases.of[name] or {}
  table.insert(cases.of[name], { text = text, leaves = leaves, run = run })
end

local function shape_text(shape) return "[" .. table.concat(shape, ",") .. "]" end

-- One argument, element by element.
for _, name in ipairs { "relu", "gelu", "silu" } do
  for _, shape in ipairs { {}, { 1 }, { 7 }, { 33 }, { 3, 5 }, { 2, 3, 17 }, { 0 }, { 4, 0 } } do
    add(name, shape_text(shape), { x = shape }, function(t) return t.x[name](t.x) end)
  end
end
for _, shape in ipairs { {}, { 9 }, { 5, 3 }, { 0, 3 } } do
  add("scale", shape_text(shape), { x = shape }, function(t) return t.x:scale(-1.75) end)
  add("sum", shape_text(shape), { x = shape }, function(t) return t.x:sum() end)
  add("weighted_sum", shape_text(shape), { x = shape }, function(t)
    return t.x:weighted_sum(core.normal(shape, { seed = 5, stream = 9, dtype = t.x:dtype() }))
  end)
  add("squared_error", shape_text(shape), { a = shape, b = shape },
      function(t) return t.a:squared_error(t.b) end)
end

-- Two arguments, the second repeated over the leading axes of the first.
local repeats = {
  { {}, {} }, { { 7 }, { 7 } }, { { 3, 5 }, { 5 } }, { { 2, 3, 17 }, { 17 } },
  { { 2, 3, 4 }, { 3, 4 } }, { { 9, 5 }, {} }, { { 6, 70 }, { 70 } }, { { 0, 5 }, { 5 } },
  { { 3, 0 }, { 0 } }, { { 0 }, {} },
}
for _, name in ipairs { "add", "multiply" } do
  for _, pair in ipairs(repeats) do
    local a, b = pair[1], pair[2]
    add(name, shape_text(a) .. " with " .. shape_text(b), { a = a, b = b },
        function(t) return t.a[name](t.a, t.b) end)
  end
end

-- Over the last axis.
for _, shape in ipairs { { 1 }, { 5 }, { 3, 7 }, { 4, 16 }, { 2, 3, 19 }, { 0, 4 }, { 3, 0 } } do
  add("softmax", shape_text(shape), { x = shape }, function(t) return t.x:softmax() end)
end
local matrices = { { 5 }, { 3, 7 }, { 4, 16 }, { 2, 3, 19 }, { 70, 3 }, { 0, 4 }, { 3, 0 } }
for _, shape in ipairs(matrices) do
  local w = { shape[#shape] }
  add("layer_norm", shape_text(shape), { x = shape, w = w, b = w },
      function(t) return t.x:layer_norm(t.w, t.b) end)
  add("layer_norm", shape_text(shape) .. " without b", { x = shape, w = w },
      function(t) return t.x:layer_norm(t.w, nil, { epsilon = 1e-3 }) end)
  add("add_layer_norm", shape_text(shape), { a = shape, b = shape, w = w, bias = w },
      function(t)
        local norm, sum = t.a:add_layer_norm(t.b, t.w, t.bias)
        return norm:add(sum)
      end)
  add("add_layer_norm", shape_text(shape) .. " without bias", { a = shape, b = w, w = w },
      function(t) return (t.a:add_layer_norm(t.b, t.w, nil, { epsilon = 1e-3 })) end)
  add("rms_norm", shape_text(shape), { x = shape, w = w }, function(t) return t.x:rms_norm(t.w) end)
end

-- Products.
local sizes = { { 1, 1, 1 }, { 5, 7, 3 }, { 13, 17, 11 }, { 2, 33, 9 }, { 0, 3, 2 }, { 3, 0, 2 },
                { 3, 2, 0 } }
for _, size in ipairs(sizes) do
  local m, k, n = size[1], size[2], size[3]
  add("linear", shape_text(size), { x = { m, k }, w = { n, k }, b = { n } },
      function(t) return t.x:linear(t.w, t.b) end)
  add("linear", shape_text(size) .. " without b", { x = { m, k }, w = { n, k } },
      function(t) return t.x:linear(t.w) end)
  add("linear_gelu_linear", shape_text(size), { x = { m, k }, up = { n, k }, up_b = { n },
                                               down = { k, n }, down_b = { k } },
      function(t) return t.x:linear_gelu_linear(t.up, t.up_b, t.down, t.down_b) end)
  add("matmul", shape_text(size), { a = { m, k }, b = { k, n } },
      function(t) return t.a:matmul(t.b) end)
end
add("linear_gelu_linear", "three axes, without biases",
    { x = { 2, 3, 5 }, up = { 7, 5 }, down = { 4, 7 } },
    function(t) return t.x:linear_gelu_linear(t.up, nil, t.down) end)
add("linear", "three axes", { x = { 2, 3, 5 }, w = { 4, 5 }, b = { 4 } },
    function(t) return t.x:linear(t.w, t.b) end)
add("linear", "one axis", { x = { 5 }, w = { 4, 5 } }, function(t) return t.x:linear(t.w) end)

-- Views and joins.
local reshapes = { { { 6 }, { 2, 3 } }, { { 2, 3, 5 }, { 30 } }, { { 1 }, {} },
                   { { 0, 4 }, { 2, 0, 7 } } }
for _, pair in ipairs(reshapes) do
  add("reshape", shape_text(pair[1]) .. " to " .. shape_text(pair[2]), { x = pair[1] },
      function(t) return t.x:reshape(pair[2]) end)
end
for _, case in ipairs { { { 5 }, 1, 5 }, { { 5, 3 }, 2, 3 }, { { 4, 2, 3 }, 4, 1 }, { { 4 }, 5, 0 },
                        { { 0, 3 }, 1, 0 }, { { 3, 0 }, 2, 2 } } do
  add("slice", ("%s from %d, %d"):format(shape_text(case[1]), case[2], case[3]), { x = case[1] },
      function(t) return t.x:slice(case[2], case[3]) end)
end
add("concatenate", "of one", { x = { 3, 2 } }, function(t) return t.x:concatenate {} end)
add("concatenate", "of three", { x = { 3, 2 }, others1 = { 1, 2 }, others2 = { 4, 2 } },
    function(t) return t.x:concatenate { t.others1, t.others2 } end)
add("concatenate", "with an empty part", { x = { 0, 2 }, others1 = { 3, 2 }, others2 = { 0, 2 } },
    function(t) return t.x:concatenate { t.others1, t.others2 } end)
add("concatenate", "of nothing", { x = { 0 }, others1 = { 0 } },
    function(t) return t.x:concatenate { t.others1 } end)

-- Ids and targets.
add("embedding", "repeated ids", { w = { 5, 3 } },
    function(t) return t.w:embedding(i32 { 4, 0, 4, 2, 4, 0 }) end)
add("embedding", "columns that fill no vector", { w = { 3, 19 } },
    function(t) return t.w:embedding(i32 { 2, 2, 0 }) end)
add("embedding", "no ids", { w = { 3, 4 } }, function(t) return t.w:embedding(i32 {}) end)
add("embedding", "no rows and no columns", { w = { 0, 0 } },
    function(t) return t.w:embedding(i32 {}) end)
add("cross_entropy", "an ignored target", { x = { 4, 5 } },
    function(t) return t.x:cross_entropy(i32 { 3, -100, 0, 4 }) end)
add("cross_entropy", "classes that fill no vector", { x = { 3, 29 } },
    function(t) return t.x:cross_entropy(i32 { 28, 0, 13 }) end)
add("cross_entropy", "one class", { x = { 2, 1 } },
    function(t) return t.x:cross_entropy(i32 { 0, 0 }) end)
add("cross_entropy", "no rows", { x = { 0, 5 } },
    function(t) return t.x:cross_entropy(i32 {}) end)
add("cross_entropy", "no classes", { x = { 2, 0 } },
    function(t) return t.x:cross_entropy(i32 { -100, -100 }) end)

-- Attention: heads, columns of a head, lengths, starts, rows.
local layouts = {
  { "one row", 1, 4, { 1 }, nil, 1 },
  { "packed", 3, 4, { 5, 1, 9 }, nil, 15 },
  { "heads that fill no vector", 2, 7, { 3, 0, 6 }, nil, 9 },
  { "longer than a tile", 1, 3, { 70 }, nil, 70 },
  { "padded, in another order", 2, 5, { 2, 4 }, { 6, 1 }, 9 },
  { "no sequence", 2, 3, {}, nil, 4 },
  { "no rows", 2, 3, { 0 }, nil, 0 },
  { "no columns", 2, 0, { 3 }, nil, 3 },
}
for _, layout in ipairs(layouts) do
  local text, heads, size, lengths, starts, rows = table.unpack(layout, 1, 6)
  for _, causal in ipairs { true, false } do
    local function options()
      return { heads = heads, lengths = i64(lengths), starts = starts and i64(starts),
               causal = causal }
    end
    local label = text .. (causal and ", causal" or ", all rows")
    local shape = { rows, heads * size }
    add("attention", label, { q = shape, k = shape, v = shape },
        function(t) return t.q:attention(t.k, t.v, options()) end)
    add("self_attention", label, { x = { rows, 3 * heads * size } },
        function(t) return t.x:self_attention(options()) end)
  end
end

-- Dropout: the mask depends on none of the values, so differences see it as a fixed factor.
for _, probability in ipairs { 0, 0.3 } do
  for _, shape in ipairs { { 5, 7 }, { 3, 33 }, { 2, 2, 3 }, { 4 }, { 0, 3 }, { 2, 0 } } do
    local rows = 1
    for i = 1, #shape - 1 do rows = rows * shape[i] end
    add("dropout", ("%s, %g"):format(shape_text(shape), probability), { x = shape }, function(t)
      local ids, positions = {}, {}
      for r = 1, rows do ids[r], positions[r] = 3, r - 1 end
      return t.x:dropout { probability = probability, seed = 20, layer = 1, update = 4,
                           ids = i64(ids), positions = i32(positions) }
    end)
  end
end

-- No gradient.
for _, shape in ipairs { { 1 }, { 3, 7 }, { 2, 3, 19 }, { 0, 4 }, { 0, 0 } } do
  add("argmax", shape_text(shape), { x = shape }, function(t) return t.x:argmax() end)
end

--- Names of leaves in a fixed order.
function cases.names(leaves)
  local names = {}
  for name in pairs(leaves) do names[#names + 1] = name end
  table.sort(names)
  return names
end

--- Fresh leaves of a case: drawn from the normal distribution, equal in f32 and f64, and kept 0.05
--- away from 0, where relu bends.
---@param case table
---@param dtype string
---@return table<string, any> leaves
function cases.leaves(case, dtype)
  local made = {}
  for i, name in ipairs(cases.names(case.leaves)) do
    local tensor = core.normal(case.leaves[name], { seed = 20, stream = i, dtype = dtype })
    for j, value in ipairs(tensor:values()) do
      if math.abs(value) < 0.05 then tensor:set_(j, value < 0 and -0.0625 or 0.0625) end
    end
    made[name] = tensor:requires_gradient_()
  end
  return made
end

return cases
