-- Optimizers against closed forms, decay groups, refused settings. Numbers of B40 are those of the
-- public cases.

local core = require "marea.core"
local marea = require "marea"
local numeric = dofile "spec/support/numeric.lua"

local nn, optim = marea.nn, marea.optim

-- Ranges with and without decay in turn, so that a step has several runs with gaps between.
local Four = nn.class "spec.Four"

function Four:init(values)
  for i, value in ipairs(values) do
    self:parameter("p" .. i, { i }, { value = value, decay = i % 2 == 1 })
  end
end

local function new_model(dtype, values)
  return Four(values or { 1, 2, -3, 4 }):materialize { seed = 0, dtype = dtype or "f64" }
end

local function set_gradients(model, values)
  for i, value in ipairs(values) do model["p" .. i]:gradient():fill_(value) end
end

-- The value of each parameter, whose elements must all be alike.
local function read(model)
  local values = {}
  for i = 1, #model.declared do
    local list = model["p" .. i]:values()
    for _, value in ipairs(list) do assert(value == list[1], "elements of one parameter differ") end
    values[i] = list[1]
  end
  return values
end

local function assert_values(expected, model, bound)
  numeric.assert_close(expected, read(model), bound or 1e-15, "parameters")
  for _, gap in ipairs { 2, 32, 35, 64, 128 } do assert(model:values():get(gap) == 0) end
end

local function run(optimizer, model, list)
  for _, gradients in ipairs(list) do
    set_gradients(model, gradients)
    optimizer:step()
  end
end

describe("SGD", function()
  for _, dtype in ipairs { "f32", "f64" } do
    local bound = dtype == "f32" and 1e-7 or 1e-15

    it("moves by lr times the gradient in " .. dtype, function()
      local model = new_model(dtype)
      local sgd = optim.SGD(model, { lr = 0.1 })
      run(sgd, model, { { 1, 2, 3, 4 } })
      assert_values({ 0.9, 1.8, -3.3, 3.6 }, model, bound)
      assert.equal(1, sgd:steps())
      assert.same({}, sgd:state())
    end)

    it("adds decay to the gradient, none on norms and biases, in " .. dtype, function()
      local model = new_model(dtype)
      run(optim.SGD(model, { lr = 0.1, decay = 0.5 }), model, { { 1, 2, 3, 4 } })
      assert_values({ 0.85, 1.8, -3.15, 3.6 }, model, bound)
      model = new_model(dtype)
      run(optim.SGD(model, { lr = 0.1, decay = 0.5, decay_all = true }), model, { { 1, 2, 3, 4 } })
      assert_values({ 0.85, 1.7, -3.15, 3.4 }, model, bound)
    end)

    -- g' = g + decay p; v1 = g1', v2 = momentum v1 + g2'.
    it("has momentum that begins at the first gradient in " .. dtype, function()
      local model = new_model(dtype)
      local sgd = optim.SGD(model, { lr = 0.1, momentum = 0.9 })
      run(sgd, model, { { 1, 2, 3, 4 }, { 2, 0, 1, -4 } })
      assert_values({ 1 - 0.1 - 0.29, 2 - 0.2 - 0.18, -3 - 0.3 - 0.37, 4 - 0.4 + 0.04 }, model,
                    bound)
      assert.near(2.9, sgd:state().velocity:get(1), 3e-7)
    end)

    it("has Nesterov's form in " .. dtype, function()
      local model = new_model(dtype)
      local sgd = optim.SGD(model, { lr = 0.1, momentum = 0.9, nesterov = true })
      run(sgd, model, { { 1, 2, 3, 4 }, { 2, 0, 1, -4 } })
      -- p - lr (g + momentum v), twice
      assert_values({ 1 - 0.19 - 0.461, 2 - 0.38 - 0.162, -3 - 0.57 - 0.433, 4 - 0.76 + 0.436 },
                    model, bound)
    end)

    it("decays within momentum in " .. dtype, function()
      local model = new_model(dtype)
      run(optim.SGD(model, { lr = 0.1, momentum = 0.5, decay = 0.2 }), model,
          { { 1, 1, 1, 1 }, { 1, 1, 1, 1 } })
      -- p1: v = 1.2, p = 0.88; v = 0.6 + 1.176, p = 0.7024. p3: v = 0.4, p = -3.04; v = 0.592
      assert_values({ 0.7024, 2 - 0.1 - 0.15, -3.0992, 4 - 0.1 - 0.15 }, model, bound)
    end)
  end
end)

-- B40: one parameter from 0, gradients 1, 3, 2, save, then 4.
local b40 = { lr = 0.1, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0 }

local function saved_b40()
  local model = new_model("f64", { 0 })
  local adam = optim.AdamW(model, b40)
  run(adam, model, { { 1 }, { 3 }, { 2 } })
  return model, adam
end

-- Size of update 4 by another optimizer that is given back some of the saved state.
local function fourth(names, steps)
  local model, adam = saved_b40()
  local before = model.p1:get(1)
  local resumed = optim.AdamW(model, b40)
  for _, name in ipairs(names) do resumed:state()[name]:copy_(adam:state()[name]) end
  resumed:restore(steps)
  run(resumed, model, { { 4 } })
  return before - model.p1:get(1), model
end

describe("AdamW", function()
  it("has the state of B40 after three updates", function()
    local model, adam = saved_b40()
    assert.near(0.551, adam:state().m:get(1), 1e-15)
    assert.near(0.013989001, adam:state().v:get(1), 1e-15)
    assert.near(-0.285887, model.p1:get(1), 5e-7)
    assert.equal(3, adam:steps())
  end)

  it("goes on after a restore with the bits of the unbroken run", function()
    local size, resumed = fourth({ "m", "v" }, 3)
    assert.near(0.095094, size, 5e-7)
    local model, adam = saved_b40()
    run(adam, model, { { 4 } })
    assert.equal(model:values():hash(), resumed:values():hash())
  end)

  it("shows what was not restored by B40's tell-tales", function()
    assert.near(0.163636, (fourth({ "m", "v" }, 0)), 5e-7)
    assert.near(0.042457, (fourth({ "v" }, 3)), 5e-7)
    assert.near(0.100000, (fourth({}, 0)), 5e-7)
  end)

  it("decays apart from the gradient, none on norms and biases", function()
    for _, all in ipairs { false, true } do
      local model = new_model()
      local adam = optim.AdamW(model, { lr = 0.1, decay = 0.5, decay_all = all })
      run(adam, model, { { 0, 0, 0, 0 }, { 0, 0, 0, 0 } })
      local kept, others = 0.95 ^ 2, all and 0.95 ^ 2 or 1
      assert_values({ kept, 2 * others, -3 * kept, 4 * others }, model)
    end
  end)

  it("takes a first step of lr, whatever the size of the gradient", function()
    local model = new_model()
    run(optim.AdamW(model, { lr = 0.1, decay = 0 }), model, { { 1, -20, 3e5, -4e-3 } })
    assert_values({ 0.9, 2.1, -3.1, 4.1 }, model, 1e-6)
  end)

  it("decays by 0.01 unless told otherwise", function()
    local model = new_model()
    run(optim.AdamW(model, { lr = 1 }), model, { { 0, 0, 0, 0 } })
    assert_values({ 0.99, 2, -2.97, 4 }, model)
  end)
end)

describe("optimizers", function()
  it("leave parameters alone at lr 0, and count the step", function()
    for _, kind in ipairs { "SGD", "AdamW" } do
      local model = new_model()
      local optimizer = optim[kind](model, { lr = 0, decay = 0.5 })
      local before = model:values():hash()
      run(optimizer, model, { { 1, 2, 3, 4 } })
      assert.equal(before, model:values():hash())
      assert.equal(1, optimizer:steps())
    end
  end)

  it("take the lr of a step instead of their own", function()
    local model = new_model()
    local sgd = optim.SGD(model, { lr = 5 })
    set_gradients(model, { 1, 1, 1, 1 })
    sgd:step(0.5)
    assert_values({ 0.5, 1.5, -3.5, 3.5 }, model)
  end)

  it("decay the matrices of a Transformer and neither its norms nor its biases", function()
    local model = nn.Transformer { vocabulary = 5, context = 4, width = 8, heads = 2, layers = 1 }
    model:materialize { seed = 1, dtype = "f64" }
    local before = model:values():copy()
    optim.AdamW(model, { lr = 0.1, decay = 0.5 }):step()
    local decayed = 0
    for _, range in ipairs(model.unit:ranges()) do
      local is_matrix = #range.shape == 2
      local factor = is_matrix and 0.95 or 1
      local expected = before:slice(range.offset + 1, range.count):scale_(factor)
      numeric.assert_close(expected:values(), model.unit:parameter(range.name):values(), 1e-15,
                           range.name)
      decayed = decayed + (is_matrix and 1 or 0)
    end
    assert.equal(7, decayed) -- two embeddings, qkv, out, up, down, head
  end)

  it("refuse settings out of range, by name", function()
    local model = new_model()
    for _, case in ipairs {
      { "SGD", { lr = 0.1, momentum = 1 }, "momentum must be at least 0 and below 1, got 1" },
      { "SGD", { lr = 0.1, momentum = -0.5 }, "momentum must be at least 0 and below 1, got -0.5" },
      { "SGD", { lr = 0.1, nesterov = true }, "nesterov needs a momentum above 0" },
      { "SGD", { lr = 0.1, decay = -1 }, "decay must be a finite number of at least 0, got -1" },
      { "AdamW", { lr = 0.1, decay = 1 / 0 },
        "decay must be a finite number of at least 0, got inf" },
      { "AdamW", { lr = 0.1, beta1 = 1 }, "beta1 must be at least 0 and below 1, got 1" },
      { "AdamW", { lr = 0.1, beta2 = 0 / 0 }, "beta2 must be at least 0 and below 1, got " },
      { "AdamW", { lr = 0.1, epsilon = 0 }, "epsilon must be a finite number above 0, got 0" },
      { "AdamW", {}, "optim.AdamW: lr must be a finite number of at least 0, got nothing" },
      { "SGD", { lr = -1 }, "optim.SGD: lr must be a finite number of at least 0, got -1" },
      { "SGD", { lr = 1 / 0 }, "optim.SGD: lr must be a finite number of at least 0, got inf" },
      { "SGD", { lr = 0.1, momemtum = 0.9 },
        'optim.SGD has no option "momemtum"; did you mean "momentum"?' },
    } do
      local message = numeric.refusal(function() optim[case[1]](model, case[2]) end)
      assert.equal(case[3], message:sub(1, #case[3]))
    end
    assert.equal("optim.SGD expects the model that the recipe's optimizer callback was given, " ..
                 "got a number", (numeric.refusal(function() optim.SGD(3, { lr = 1 }) end)))
  end)

  it("refuse a step with an lr that is none, and move nothing", function()
    local model = new_model()
    local adam = optim.AdamW(model, { lr = 0.1 })
    set_gradients(model, { 1, 1, 1, 1 })
    for _, lr in ipairs { -0.1, 1 / 0, 0 / 0 } do
      local message = numeric.refusal(function() adam:step(lr) end)
      assert.equal("lr must be a finite number of at least 0, got ", message:sub(1, 46))
    end
    assert_values({ 1, 2, -3, 4 }, model)
    assert.equal(0, adam:steps())
    assert.equal(0, adam:state().m:total())
  end)

  it("give the same bits on 1 and 2 threads", function()
    local before, hashes = core.device().threads, {}
    for threads = 1, 2 do
      core.set_threads(threads)
      local model = nn.Linear { input = 300, output = 700 }:materialize { seed = 3, dtype = "f32" }
      model:gradients():copy_(core.normal(model:gradients():shape(), { seed = 4 }))
      optim.AdamW(model, { lr = 0.1 }):step()
      hashes[threads] = model:values():hash()
    end
    core.set_threads(before)
    assert.equal(hashes[1], hashes[2])
  end)
end)
