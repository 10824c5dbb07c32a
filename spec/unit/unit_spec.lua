-- Units: parameters and gradients in flat buffers, their norm, and clipping (cases B33).

local core = require "marea.core"
local marea = require "marea"
local numeric = dofile "spec/support/numeric.lua"
local training = dofile "spec/support/training.lua"

local function new_unit(dtype)
  return core.unit({ { name = "a", shape = { 2 } }, { name = "none", shape = { 0, 3 } },
                     { name = "b", shape = { 5, 7 }, decay = false }, { name = "c", shape = {} } },
                   dtype or "f64")
end

describe("a unit", function()
  it("begins each range at 64 bytes of the narrowest dtype, in the order given", function()
    for _, dtype in ipairs { "f32", "f64" } do
      local unit, places = new_unit(dtype), {}
      for i, range in ipairs(unit:ranges()) do
        places[i] = { range.name, range.offset, range.count, range.decay }
      end
      assert.same({ { "a", 0, 2, true }, { "none", 32, 0, true }, { "b", 32, 35, false },
                    { "c", 96, 1, true } }, places)
      assert.same({ 128 }, unit:values():shape())
      assert.equal(38, unit:parameters())
      assert.same({ "a", "none", "b", "c" }, unit:names())
    end
  end)

  it("shares its buffers with parameters and their gradients", function()
    local unit = new_unit()
    unit:parameter("b"):fill_(2)
    assert.equal(70, unit:values():total())
    unit:parameter("b"):sum():backward()
    assert.equal(35, unit:gradients():total())
    assert.equal(1, unit:gradients():get(33))
    unit:zero_grad()
    assert.equal(0, unit:parameter("b"):gradient():total())
  end)

  it("refuses names that repeat, integers, and names that it has not", function()
    local twice = { { name = "a", shape = { 1 } }, { name = "a", shape = { 2 } } }
    assert.equal("two parameters have the name 'a'",
                 (numeric.refusal(function() core.unit(twice) end)))
    assert.equal("parameters must be f32, f64 or bf16, not i32",
                 (numeric.refusal(function() new_unit "i32" end)))
    assert.equal("there is no parameter 'd'",
                 (numeric.refusal(function() new_unit():parameter "d" end)))
  end)
end)

-- Two parameters (w1, w2) = (1, 1); symbol i has a point x, and a position's loss is x . w.
local Plane = marea.nn.class "spec.Plane"

function Plane:init(points)
  self.points = points
  self:parameter("w", { 1, 2 }, { value = 1 })
end

function Plane:forward(batch)
  local rows = {}
  for _, id in ipairs(batch.ids:values()) do
    table.move(self.points[id + 1], 1, 2, #rows + 1, rows)
  end
  return core.from(rows, "f64", { #rows // 2, 2 }):linear(self.w):reshape { #rows // 2 }
end

-- The gradient of a window in which symbol i is a sequence of its own; `counts` as of dealt.
local function plane(points, counts, reduction)
  local sequences = {}
  for i = 1, #points do
    sequences[i] = { inputs = { i - 1 }, targets = { 0 }, split = "train" }
  end
  local session = training.session(training.recipe({
    corpus = marea.corpus.from { sequences = sequences, vocabulary = #points },
    steps = training.dealt(counts),
    model = function() return Plane(points) end,
    loss = function(model, batch) return model(batch) end,
  }, { dtype = "f64", reduction = reduction or "mean" }))
  session.model:gradients():copy_(training.play(session))
  return session.model
end

local function gradient(model) return model.w:gradient():values() end

describe("clipping", function()
  it("takes the norm of the whole window, not of each microbatch (B33 a)", function()
    local model = plane({ { 6, 0 }, { 0, 8 } }, { { 1, 1 } })
    assert.same({ 3, 4 }, gradient(model))
    assert.equal(5, model.unit:clip(1))
    numeric.assert_close({ 0.6, 0.8 }, gradient(model), 1e-6, "gradient")
  end)

  it("takes the norm after the ranks were reduced (B33 b)", function()
    local model = plane({ { 3, 0 }, { 0, 4 } }, { { 1 }, { 1 } })
    assert.equal(2.5, model.unit:clip(1))
    numeric.assert_close({ 0.6, 0.8 }, gradient(model), 1e-6, "gradient")
  end)

  it("reports the norm before and applies the scale (B33 c)", function()
    local model = plane({ { 6, 8 } }, { { 1 } })
    assert.equal(10, model.unit:norm())
    assert.equal(10, model.unit:clip(5))
    numeric.assert_close({ 3, 4 }, gradient(model), 1e-6, "gradient")
    assert.near(5, model.unit:norm(), 1e-6)
  end)

  it("leaves a smaller gradient's bits alone", function()
    local model = plane({ { 6, 8 } }, { { 1 } })
    assert.equal(10, model.unit:clip(10.01))
    assert.same({ 6, 8 }, gradient(model))
  end)

  it("covers every range with one norm, and f32 beyond its squares", function()
    local unit = new_unit "f32"
    unit:parameter("a"):gradient():fill_(1e30)
    unit:parameter("c"):gradient():fill_(1e30)
    assert.near(math.sqrt(3) * 1e30, unit:clip(math.sqrt(3)), 1e24)
    numeric.assert_close({ 1, 1 }, unit:parameter("a"):gradient():values(), 1e-6, "a")
    numeric.assert_close({ 1 }, unit:parameter("c"):gradient():values(), 1e-6, "c")
  end)

  it("scales nothing by a norm that is not finite, and reports it", function()
    local unit = new_unit()
    unit:gradients():fill_(1)
    unit:parameter("a"):gradient():set_(1, 1 / 0)
    assert.equal(1 / 0, unit:clip(1))
    assert.equal(1, unit:parameter("c"):gradient():item())
    unit:parameter("a"):gradient():set_(1, 0 / 0)
    local norm = unit:clip(1)
    assert.is_true(norm ~= norm)
    assert.equal(1, unit:parameter("c"):gradient():item())
  end)

  it("refuses a largest norm of 0", function()
    assert.is_false((pcall(function() new_unit():clip(0) end)))
  end)
end)
