-- marea bench on a GPU, with a recipe and without: fields, not figures.

local device = require "marea.device"
local json = require "marea.json"
local launch = require "marea.launch"
local scratch = dofile "spec/support/scratch.lua"
local torch = require "marea.bench.torch"
local cuda = dofile "spec/support/cuda.lua"

local asked = device.asked()
local set = not asked and cuda.variables { MAREA_CUDA_DEVICES = "1" } or nil

local function bench(folder, variables, ...)
  return launch.run({ threads = 1, time_limit = 150, set = variables },
                    { "bench", "--outputs", folder.path, ... })
end

local function on_device(folder, ...)
  return bench(folder, set, "--device", asked or "cuda", ...)
end

local function check(record, parameters, tokens)
  assert.is_nil(record.problem)
  assert.equal(parameters, record.parameters)
  assert.equal(tokens, record.tokens)
  assert.is_true(record.ms.low > 0 and record.ms.low <= record.ms.high)
  for _, name in ipairs { "tokens_per_second", "gflops", "ceiling_gflops", "ceiling_share",
                          "copy_bytes_per_second", "copy_share" } do
    assert.is_true(record[name] > 0, name)
  end
  -- the share is of the least traffic in the median step
  local rate = record.least_bytes / record.ms.median * 1000
  assert.is_true(math.abs(rate / record.copy_bytes_per_second / record.copy_share - 1) < 1e-9)
end

describe("marea bench without a recipe", function()
  it("is refused where no GPU is named, and with what needs a recipe", function()
    local folder <close> = scratch.folder()
    local none = { MAREA_DEVICE = "" }
    local code, _, errors = bench(folder, none)
    assert.equal(2, code)
    assert.is_truthy(errors:find("name a recipe, or --device cuda", 1, true), errors)
    code = bench(folder, none, "--device", "cpu")
    assert.equal(2, code)
    code, _, errors = bench(folder, none, "--device", "cuda", "--profile")
    assert.equal(2, code)
    assert.is_truthy(errors:find("--profile needs a recipe", 1, true), errors)
    code = bench(folder, none, "recipes/gpt.lua", "--sizes", "tiny")
    assert.equal(2, code)
  end)

  it("tells of each subject that cannot be measured, with its exit code", function()
    local folder <close> = scratch.folder()
    local code, output = bench(folder, { MAREA_CUDA_LIBRARY = "/nowhere/libmarea_cuda.so" },
                               "--device", "cuda", "--sizes", "tiny", "--json")
    assert.equal(4, code)
    local record = json.decode(output)
    assert.equal(3, #record.subjects)
    for _, subject in ipairs(record.subjects) do
      assert.is_truthy(subject.problem:find("/nowhere/libmarea_cuda.so", 1, true), subject.problem)
    end
  end)
end)

describe("marea bench on a GPU", function()
  if not asked and not cuda.host then
    return pending "was not built for the processor (-DMAREA_CUDA_HOST=ON)"
  end

  it("measures the minimum recipe and a GPT in both dtypes", function()
    local folder <close> = scratch.folder()
    local code, output, errors = on_device(folder, "--sizes", "tiny", "--json")
    assert.equal(0, code, errors .. output)
    local record = json.decode(output)
    assert.same(record, json.decode(scratch.read(folder.path .. "/device/bench.json")))
    if not asked then -- no PyTorch finds a GPU of the processor
      local reason = torch.find() and "no eager PyTorch beside this: this PyTorch finds no GPU" or
        "no python3 here can import torch"
      assert.is_truthy(errors:find(reason, 1, true), errors)
    end
    local minimum, f32, bf16 = table.unpack(record.subjects)
    check(minimum, 282628, 62)
    check(f32, 112384, 1024)
    check(bf16, 112384, 1024)
    -- SGD: parameter and gradient; AdamW: two moments; beside bf16 a master weight
    assert.equal(282628 * 24, minimum.least_bytes)
    assert.equal(112384 * (24 + 16), f32.least_bytes)
    assert.equal(112384 * (12 + 24), bf16.least_bytes)
    -- the GPU holds at least parameters, gradients and the optimizer's state
    assert.is_true(f32.memory_peak > 112384 * 16 and bf16.memory_peak > 112384 * 16)
    assert.is_true(bf16.memory_peak < f32.memory_peak)
  end)
end)
