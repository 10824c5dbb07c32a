-- Training on a device, whole: the same recipes, parity on ranks that share it, resumes with the
-- same bits, and checkpoints that go from one kind of device to the other. It is the device that
-- was asked for (marea test --device NAME), or a GPU of the processor where one was built.

local core = require "marea.core"
local device = require "marea.device"
local json = require "marea.json"
local launch = require "marea.launch"
local cuda = dofile "spec/support/cuda.lua"
local scratch = dofile "spec/support/scratch.lua"

local asked = device.asked()
local set = not asked and cuda.variables { MAREA_CUDA_DEVICES = "1" } or nil
local name = asked or "cuda"

-- Runs a command on the device, or on `options.on`, and returns its output as JSON.
local function run(folder, options, words)
  local argv = table.move(words, 1, #words, 1, {})
  for _, word in ipairs { "--device", options.on or name, "--share-gpu", "--json", "--outputs",
                          folder.path } do
    argv[#argv + 1] = word
  end
  local code, output, errors = launch.run({ ranks = options.ranks, threads = 1, set = set,
                                            time_limit = 300 }, argv)
  assert.equal(0, code, errors .. output)
  return json.decode(output)
end

local function train(folder, options, until_update, ...)
  return run(folder, options, { "train", "recipes/minimum.lua", "--until", tostring(until_update),
                                "--progress", "none", "batch_size_per_rank=1",
                                "ranks=" .. (options.ranks or 1), ... })
end

local function weights(folder, run_name, update)
  local path = ("%s/%s/checkpoints/step-%06d/parameters.safetensors"):format(folder.path, run_name,
                                                                             update)
  return core.safetensors.open(path)
end

-- The largest difference between the parameters of two checkpoints.
local function difference(a, b)
  local largest = 0
  for _, key in ipairs(a:names()) do
    local found = core.compare(a:tensor(key), b:tensor(key), { absolute = 0, relative = 0 })
    largest = math.max(largest, found.max_abs)
  end
  return largest
end

describe("a device", function()
  if not asked and not cuda.host then
    return pending "was not built for the processor (-DMAREA_CUDA_HOST=ON)"
  end

  it("trains on two ranks that share it, and resumes with the same bits", function()
    local folder <close> = scratch.folder()
    local two = { ranks = 2 }
    train(folder, two, 3, "--run", "whole")
    train(folder, two, 2, "--run", "parts")
    train(folder, two, 3, "--run", "parts", "--resume", "latest")
    assert.equal(0, difference(weights(folder, "whole", 3), weights(folder, "parts", 3)))
    local record = json.decode(scratch.read(folder.path .. "/whole/run.json"))
    assert.equal(name, record.config.device)
    assert.equal(core.file.exists(folder.path .. "/whole/metrics.jsonl"), true)
  end)

  it("goes on from checkpoints of the CPU, and the CPU from its own", function()
    local folder <close> = scratch.folder()
    local cpu = { on = "cpu" }
    train(folder, cpu, 3, "--run", "cpu")
    train(folder, cpu, 2, "--run", "there")
    train(folder, {}, 3, "--run", "there", "--resume", "latest")
    train(folder, {}, 2, "--run", "back")
    train(folder, cpu, 3, "--run", "back", "--resume", "latest")
    local whole = weights(folder, "cpu", 3)
    -- f32, three updates of lr 0.1: a few roundings of 6e-8 of values below 1
    assert.is_true(difference(whole, weights(folder, "there", 3)) < 1e-5)
    assert.is_true(difference(whole, weights(folder, "back", 3)) < 1e-5)
  end)

  it("passes parity on two ranks that share it", function()
    local folder <close> = scratch.folder()
    local result = run(folder, { ranks = 2 }, { "parity", "recipes/minimum.lua",
                                                "batch_size_per_rank=1" })
    assert.is_true(result.pass)
    assert.same({ 0, 0 }, { result.f32.failing, result.f64.failing })
  end)
end)
