-- Training in bf16 on a GPU: what is summed and moved in f32, that a small recipe descends as in
-- f32 and resumes with the same bits, and what checkpoints hold. On the device that was asked for
-- (marea test --device NAME), or a GPU of the processor where one was built.

local core = require "marea.core"
local device = require "marea.device"
local json = require "marea.json"
local launch = require "marea.launch"
local cuda = dofile "spec/support/cuda.lua"
local scratch = dofile "spec/support/scratch.lua"

local asked = device.asked()
local set = not asked and cuda.variables { MAREA_CUDA_DEVICES = "1" } or nil
local name = asked or "cuda"

local function run(options, words)
  local argv = table.move(words, 1, #words, 1, {})
  for _, word in ipairs { "--device", name, "--share-gpu" } do argv[#argv + 1] = word end
  return launch.run({ ranks = options.ranks, threads = 1, set = set, time_limit = 120 }, argv)
end

-- What a script prints, line by line as numbers.
local function numbers(script)
  local folder <close> = scratch.folder()
  local path = folder.path .. "/script.lua"
  scratch.write(path, 'local core = require "marea.core"\n' .. script)
  local code, output, errors = run({}, { path })
  assert.equal(0, code, errors)
  local found = {}
  for word in output:gmatch "%S+" do found[#found + 1] = tonumber(word) end
  return found
end

local function train(folder, dtype, until_update, options, ...)
  local code, output, errors = run(options, {
    "train", "spec/recipes/counting.lua", "--until", tostring(until_update), "--progress", "none",
    "--json", "--outputs", folder.path, "dtype=" .. dtype, "ranks=" .. (options.ranks or 1), ... })
  assert.equal(0, code, errors .. output)
end

local function losses(folder, run_name)
  local list = {}
  for line in scratch.read(folder.path .. "/" .. run_name .. "/metrics.jsonl"):gmatch "[^\n]+" do
    list[#list + 1] = json.decode(line).loss_per_token
  end
  return list
end

local function checkpoint(folder, run_name, update, part)
  return core.safetensors.open(("%s/%s/checkpoints/step-%06d/%s.safetensors"):format(
    folder.path, run_name, update, part))
end

local function expect_same(a, b)
  for _, key in ipairs(a:names()) do
    assert.equal(a:tensor(key):hash(), b:tensor(key):hash(), key)
  end
end

describe("bf16", function()
  if not asked and not cuda.host then
    return pending "needs a GPU; none was built for the processor (-DMAREA_CUDA_HOST=ON)"
  end

  -- Half an ulp of 1 is 2^-8: a bf16 weight of 1 never moves by 2^-10, its master does.
  it("moves the master by updates under half an ulp, a weight of bf16 alone never", function()
    local script = [[
local unit = core.unit({ { name = "w", shape = { 40 } } }, "bf16")
unit:master():slice(1, 40):fill_(1)
unit:refresh()
unit:gradients():slice(1, 40):fill_(-1)
local optimizer = %s
local alone, gradient = core.ones({ 40 }, "bf16"), core.full({ 40 }, -1, "bf16")
for _ = 1, 1000 do
  optimizer:step(2.0 ^ -10)
  alone:add_scaled_(-2.0 ^ -10, gradient)
end
print(unit:master():get(40), unit:parameter("w"):get(40), alone:get(40), unit:master():get(41))
]]
    -- 1 + 1000 / 1024 is a number of both dtypes
    assert.same({ 1.9765625, 1.9765625, 1, 0 }, numbers(script:format "core.sgd(unit, {})"))
    local found = numbers(script:format "core.adamw(unit, { decay = 0 })")
    -- the ratio of moments is 1 all along, but for epsilon of 1e-8 and a thousand roundings
    assert.near(1.9765625, found[1], 1e-3)
    assert.near(found[1], found[2], 2.0 ^ -8)
    assert.same({ 1, 0 }, { found[3], found[4] })
  end)

  it("rounds the parameters to the master's nearest after each step", function()
    local found = numbers [[
local unit = core.unit({ { name = "w", shape = { 1000 } } }, "bf16")
unit:master():slice(1, 1000):copy_(core.normal({ 1000 }, { seed = 4 }))
unit:gradients():slice(1, 1000):copy_(core.normal({ 1000 }, { seed = 5 }))
for _, optimizer in ipairs { core.sgd(unit, {}), core.sgd(unit, { momentum = 0.9 }),
                             core.adamw(unit, { decay = 0.1 }) } do
  optimizer:step(0.1)
  print(unit:values():hash() == unit:master():to("bf16"):hash() and 1 or 0)
end
]]
    assert.same({ 1, 1, 1 }, found)
  end)

  -- A sum in bf16 stops at 256, and beside 1 leaves out 2^-9.
  it("sums gradients and losses in f32", function()
    local found = numbers [[
local unit = core.unit({ { name = "w", shape = { 1 } } }, "bf16")
local w = unit:parameter("w")
unit:master():slice(1, 1):fill_(1)
unit:refresh()
local function backward(x) core.from({ x }, "bf16"):multiply(w):sum():backward() end
for _ = 1, 300 do backward(1) end
print(w:gradient():item())
unit:zero_grad()
backward(1)
for _ = 1, 512 do backward(2.0 ^ -9) end
print(w:gradient():item())
unit:zero_grad()
local rows = core.ones({ 300, 1 }, "bf16")
local y = rows:linear(w:reshape { 1, 1 })
local sum = y:sum()
print(sum:item(), sum:dtype() == "f32" and 1 or 0)
sum:backward()
print(w:gradient():item())
local logits, targets = core.zeros({ 300, 1000 }, "bf16"), core.zeros({ 300 }, "i32")
local loss = logits:cross_entropy(targets)
print(loss:dtype() == "f32" and 1 or 0, loss:weighted_sum(core.ones({ 300 })):item())
]]
    assert.same({ 300, 2, 300, 1, 300, 1 }, table.move(found, 1, 6, 1, {}))
    assert.near(300 * math.log(1000), found[7], 1e-6 * 300 * math.log(1000))
  end)

  it("gives a leaf's gradient in f32 from any operation that takes it in", function()
    local found = numbers [[
local function leaf(shape) return core.normal(shape, { seed = 3, dtype = "bf16" })
                                    :requires_gradient_(true) end
local a, b = leaf { 3, 4 }, leaf { 2, 4 }
local all = a:concatenate { b }
local w = leaf { 5, 4 }
local y = all:linear(w):gelu():add(core.ones({ 5 }, "bf16"))
y:multiply(y):sum():backward()
-- The same in f32, of the same numbers.
local a32, b32, w32 = a:to("f32"), b:to("f32"), w:to("f32")
for _, t in ipairs { a32, b32, w32 } do t:requires_gradient_(true) end
local z = a32:concatenate { b32 }:linear(w32):gelu():add(core.ones({ 5 }))
z:multiply(z):sum():backward()
for _, pair in ipairs { { a, a32 }, { b, b32 }, { w, w32 } } do
  local narrow, wide = pair[1]:gradient(), pair[2]:gradient()
  local found = core.compare(narrow, wide, { absolute = 0.2, relative = 0.05 })
  print(narrow:dtype() == "f32" and 1 or 0, found.failing, found.max_b > 0.5 and 1 or 0)
end
]]
    assert.same({ 1, 0, 1, 1, 0, 1, 1, 0, 1 }, found)
  end)

  for _, kind in ipairs { "AdamW", "SGD" } do
    it("trains like f32, with " .. kind, function()
      local folder <close> = scratch.folder()
      local words = { "kind=" .. kind, "lr=" .. (kind == "SGD" and 0.1 or 0.01) }
      train(folder, "bf16", 40, {}, "--run", "narrow", table.unpack(words))
      train(folder, "f32", 40, {}, "--run", "wide", table.unpack(words))
      local narrow, wide = losses(folder, "narrow"), losses(folder, "wide")
      assert.equal(40, #narrow)
      assert.near(wide[1], narrow[1], 0.02)
      assert.is_true(wide[40] < 0.5 * wide[1])
      assert.is_true(narrow[40] < 0.5 * narrow[1])
      assert.near(wide[40], narrow[40], 0.05)
      assert.is_true(narrow[1] ~= wide[1])
    end)
  end

  it("resumes with the same bits, from checkpoints of f32", function()
    local folder <close> = scratch.folder()
    train(folder, "bf16", 6, {}, "--run", "whole")
    train(folder, "bf16", 3, {}, "--run", "parts")
    train(folder, "bf16", 6, {}, "--run", "parts", "--resume", "latest")
    for _, part in ipairs { "parameters", "optimizer" } do
      local whole <close> = checkpoint(folder, "whole", 6, part)
      local parts <close> = checkpoint(folder, "parts", 6, part)
      for _, key in ipairs(whole:names()) do assert.equal("f32", whole:dtype(key)) end
      expect_same(whole, parts)
    end
    local weight <close> = checkpoint(folder, "whole", 6, "parameters")
    local held = weight:tensor("head.weight")
    assert.is_true(held:hash() ~= held:to("bf16"):to("f32"):hash())
    local record = json.decode(scratch.read(folder.path .. "/whole/run.json"))
    assert.equal("bf16", record.config.dtype)
  end)

  it("trains on two ranks, each time with the same bits", function()
    local folder <close> = scratch.folder()
    train(folder, "bf16", 3, { ranks = 2 }, "--run", "two", "batch_size_per_rank=2")
    train(folder, "bf16", 3, { ranks = 2 }, "--run", "again", "batch_size_per_rank=2")
    local two <close> = checkpoint(folder, "two", 3, "parameters")
    local again <close> = checkpoint(folder, "again", 3, "parameters")
    expect_same(two, again)
  end)

  it("passes parity, which is proved in f32 and f64", function()
    local folder <close> = scratch.folder()
    local code, output, errors = run({ ranks = 2 }, {
      "parity", "spec/recipes/counting.lua", "dtype=bf16", "ranks=2", "--json", "--outputs",
      folder.path })
    assert.equal(0, code, errors)
    local result = json.decode(output)
    assert.is_true(result.pass)
    assert.same({ 0, 0 }, { result.f32.failing, result.f64.failing })
  end)
end)
