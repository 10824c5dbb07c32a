-- Parameters and optimizer state by name: what a recipe in another order keeps, what is refused,
-- and that steps and moments come back together.

local core = require "marea.core"
local fault = require "marea.fault"
local nn = require "marea.nn"
local optim = require "marea.optim"
local state = require "marea.state"
local scratch = dofile "spec/support/scratch.lua"

-- A model of named vectors of length 2, in the order given.
local Vectors = nn.class("spec.Vectors")

function Vectors:init(names)
  for _, name in ipairs(names) do self:parameter(name, { 2 }) end
end

local function vectors(...)
  return Vectors({ ... }):materialize { seed = 1, dtype = "f64" }
end

local function write(folder, model, optimizer)
  core.safetensors.write(folder .. "/p", state.parameters(model), { kind = "spec" })
  core.safetensors.write(folder .. "/o", state.optimizer(model, optimizer),
                         state.optimizer_metadata(optimizer))
end

local function restore(folder, model, optimizer)
  local p <close> = core.safetensors.open(folder .. "/p")
  local o <close> = core.safetensors.open(folder .. "/o")
  state.restore_parameters(model, p)
  state.restore_optimizer(model, optimizer, o)
end

local function by_name(list)
  local map = {}
  for _, item in ipairs(list) do map[item[1]] = item[2]:values() end
  return map
end

local function fill(list, values)
  for _, item in ipairs(list) do
    local wanted = values[item[1]]
    for i, value in ipairs(wanted or {}) do item[2]:set_(i, value) end
  end
end

local function expect_damage(text, ...)
  local good, problem = pcall(...)
  assert.is_false(good)
  local message, code = fault.of(problem)
  assert.are.equal(3, code, message)
  assert.is_truthy(message:find(text, 1, true), message)
end

describe("the state of a model and its optimizer", function()
  it("goes by name, whatever the order of declaration", function()
    local folder <close> = scratch.folder()
    local model = vectors("p", "q")
    local optimizer = optim.AdamW(model, { lr = 0.1 })
    fill(state.parameters(model), { p = { 3, 4 }, q = { 5, 6 } })
    fill(state.optimizer(model, optimizer), { ["m.p"] = { 1, 1 }, ["m.q"] = { 9, 9 } })
    write(folder.path, model, optimizer)
    local turned = vectors("q", "p")
    local other = optim.AdamW(turned, { lr = 0.1 })
    restore(folder.path, turned, other)
    assert.are.same({ p = { 3, 4 }, q = { 5, 6 } }, by_name(state.parameters(turned)))
    local moments = by_name(state.optimizer(turned, other))
    assert.are.same({ 1, 1 }, moments["m.p"])
    assert.are.same({ 9, 9 }, moments["m.q"])
  end)

  it("is refused when a parameter has none, and nothing is changed", function()
    local folder <close> = scratch.folder()
    local model = vectors("b", "c")
    write(folder.path, model, optim.AdamW(model, { lr = 0.1 }))
    local larger = vectors("a", "b", "c")
    larger:values():fill_(7)
    local p <close> = core.safetensors.open(folder.path .. "/p")
    expect_damage("expects a tensor a, the file has none", state.restore_parameters, larger, p)
    expect_damage("the file has a tensor c, the recipe's model has none",
                  state.restore_parameters, vectors("b"), p)
    for _, value in ipairs(larger:values():values()) do assert.are.equal(7, value) end
    local o <close> = core.safetensors.open(folder.path .. "/o")
    expect_damage("expects a tensor m.a, the file has none", state.restore_optimizer, larger,
                  optim.AdamW(larger, { lr = 0.1 }), o)
    expect_damage("the recipe's optimizer is SGD, the file's is AdamW", state.restore_optimizer,
                  model, optim.SGD(model, { lr = 0.1, momentum = 0.9 }), o)
  end)

  it("is refused in another shape, with both", function()
    local folder <close> = scratch.folder()
    core.safetensors.write(folder.path .. "/p", { { "p", core.zeros({ 3 }, "f64") } }, {})
    local p <close> = core.safetensors.open(folder.path .. "/p")
    expect_damage("p: the recipe's model expects the shape [2], the file has [3]",
                  state.restore_parameters, vectors("p"), p)
  end)

  it("brings Adam's moments and steps back together", function()
    local folder <close> = scratch.folder()
    local function fresh()
      local model = vectors("w")
      return model, optim.AdamW(model, { lr = 0.1, decay = 0 })
    end
    local function step(model, optimizer, gradient)
      model:gradients():fill_(gradient)
      optimizer:step()
      return model:values():get(1)
    end
    local model, optimizer = fresh()
    local before
    for _, gradient in ipairs { 1, 3, 2 } do before = step(model, optimizer, gradient) end
    assert.is_true(math.abs(before - -0.285887) < 5e-7)
    write(folder.path, model, optimizer)
    local moments = by_name(state.optimizer(model, optimizer))
    assert.is_true(math.abs(moments["m.w"][1] - 0.551) < 1e-12)
    assert.is_true(math.abs(moments["v.w"][1] - 0.013989001) < 1e-12)
    local again, other = fresh()
    restore(folder.path, again, other)
    assert.are.equal(3, other:steps())
    local expected = step(model, optimizer, 4)
    assert.are.equal(expected, step(again, other, 4)) -- to the last bit
    assert.is_true(math.abs(before - expected - 0.095094) < 5e-7)
  end)

  it("is converted to the dtype of the recipe", function()
    local folder <close> = scratch.folder()
    core.safetensors.write(folder.path .. "/p", { { "p", core.from({ 0.1, 2 }, "f32") } }, {})
    local p <close> = core.safetensors.open(folder.path .. "/p")
    local model = vectors("p")
    state.restore_parameters(model, p)
    assert.are.same({ 0.10000000149011612, 2.0 }, by_name(state.parameters(model)).p)
  end)
end)
