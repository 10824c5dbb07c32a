-- Choosing a device from outside: what is refused, with its words and code 4; what auto falls back
-- to; and that ranks which would share a GPU are named.

local core = require "marea.core"
local launch = require "marea.launch"
local cuda = dofile "spec/support/cuda.lua"
local scratch = dofile "spec/support/scratch.lua"

local script = [[
local core = require "marea.core"
local t = core.from({ 1, 2, 3 }, "f64")
print(t:device(), t:add(t):get(3))
]]

-- Runs a script, or other words, under variables.
local function run(set, words, ranks)
  local folder <close> = scratch.folder()
  local path = folder.path .. "/script.lua"
  scratch.write(path, script)
  local variables = { MAREA_DEVICE = "", MAREA_SHARE_GPU = "" } -- whatever these specs run on
  for name, value in pairs(set) do variables[name] = value end
  for i, word in ipairs(words) do words[i] = word:gsub("SCRIPT", path):gsub("OUT", folder.path) end
  return launch.run({ ranks = ranks, threads = ranks and 1, set = variables, time_limit = 60 },
                    words)
end

local function refused(message, set, words, ranks)
  local code, output, errors = run(set, words or { "SCRIPT", "--device", "cuda" }, ranks)
  assert.equal("", output)
  assert.equal("marea: " .. message .. "\n", errors)
  assert.equal(4, code)
end

describe("a device that is asked for", function()
  it("is the CPU when nothing is said", function()
    local code, output, errors = run({}, { "SCRIPT" })
    assert.same({ 0, "cpu\t6.0\n", "" }, { code, output, errors })
  end)

  it("must have the name of one", function()
    local code, _, errors = run({}, { "SCRIPT", "--device", "gpu" })
    assert.equal('marea: --device must be "cpu", "cuda", "cuda:N" or "auto", got "gpu"\n', errors)
    assert.equal(2, code)
  end)

  it("is refused where the library cannot be loaded", function()
    refused("device cuda: CUDA's libraries cannot be loaded: /nowhere/x.so: cannot open shared " ..
            "object file: No such file or directory", { MAREA_CUDA_LIBRARY = "/nowhere/x.so" })
  end)

  it("leaves the choice to auto, which says in one line why it computes on the CPU", function()
    local code, output, errors = run({ MAREA_CUDA_LIBRARY = "/nowhere/x.so" },
                                     { "SCRIPT", "--device", "auto" })
    assert.same({ 0, "cpu\t6.0\n" }, { code, output })
    assert.equal("marea: no GPU is used: CUDA's libraries cannot be loaded: /nowhere/x.so: " ..
                 "cannot open shared object file: No such file or directory\n", errors)
  end)

  it("is refused where NVIDIA's library finds no driver", function()
    if not cuda.real then return pending "there was no CUDA toolkit" end
    local code, output, errors = run({ MAREA_CUDA_LIBRARY = cuda.real },
                                     { "SCRIPT", "--device", "cuda" })
    if code == 0 then return assert.equal("cuda:0\t6.0\n", output) end
    assert.equal("marea: device cuda: there is no NVIDIA driver on this machine\n", errors)
    assert.equal(4, code)
  end)
end)

describe("a GPU", function()
  if not cuda.host then
    return pending "was not built for the processor (-DMAREA_CUDA_HOST=ON)"
  end

  it("computes", function()
    local code, output, errors = run(cuda.variables(), { "SCRIPT", "--device", "cuda" })
    assert.same({ 0, "cuda:0\t6.0\n", "" }, { code, output, errors })
  end)

  it("of another number computes", function()
    local code, output, errors = run(cuda.variables(), { "SCRIPT", "--device", "cuda:1" })
    assert.same({ 0, "cuda:1\t6.0\n", "" }, { code, output, errors })
  end)

  it("is chosen by auto where there is one", function()
    local code, output, errors = run(cuda.variables(), { "SCRIPT", "--device", "auto" })
    assert.same({ 0, "cuda:0\t6.0\n", "" }, { code, output, errors })
  end)

  it("that there is not is refused", function()
    refused("device cuda:2: there is no cuda:2: the driver shows 2 GPUs, from 0",
            cuda.variables(), { "SCRIPT", "--device", "cuda:2" })
    refused("device cuda: the NVIDIA driver shows no GPU",
            cuda.variables { MAREA_CUDA_DEVICES = "0" })
  end)

  it("with an old driver is refused with both versions", function()
    refused("device cuda: the NVIDIA driver is too old: it serves CUDA 11.0, and this marea was " ..
            "built with 12.0", cuda.variables { MAREA_CUDA_FAULT = "driver" })
  end)

  it("without memory is refused", function()
    refused("device cuda: no memory on cuda:0 (host) to begin with",
            cuda.variables { MAREA_CUDA_MEMORY = "1000000" })
  end)

  it("whose memory is used up says how much was asked for, and ends with code 4", function()
    local folder <close> = scratch.folder()
    local path = folder.path .. "/much.lua"
    scratch.write(path, 'require("marea").tensor.zeros { 1 << 26 }')
    local code, _, errors = run(cuda.variables { MAREA_CUDA_MEMORY = tostring(1 << 27) },
                                { path, "--device", "cuda" })
    assert.matches("much.lua:1: no memory on cuda:0 %(host%): 268435456 bytes were asked for; " ..
                   "8 are in use by this rank, %d+ of 134217728 are free\n$", errors)
    assert.equal(4, code)
  end)

  it("of its own is taken by each rank of a host", function()
    local code, output = run(cuda.variables(),
                             { "doctor", "--device", "cuda", "--outputs", "OUT" }, 2)
    assert.is_truthy(output:find("cuda:0, host  [rank 0]", 1, true), output)
    assert.is_truthy(output:find("cuda:1, host  [rank 1]", 1, true), output)
    assert.is_truthy(output:find("the ones of 2 ranks add up to 2", 1, true), output)
    assert.equal(0, code)
  end)

  local one = cuda.variables { MAREA_CUDA_DEVICES = "1" }

  it("is not shared by two ranks, which are both named", function()
    local host = core.process.host()
    refused(("device cuda: ranks 0 and 1 would both compute on cuda:0 (host) of %s; start one " ..
             "rank for each GPU, or let them share it with --share-gpu"):format(host), one, nil, 2)
    refused(("device cuda:0: ranks 0 and 1 would both compute on cuda:0 (host) of %s; start one " ..
             "rank for each GPU, or let them share it with --share-gpu"):format(host),
            cuda.variables(), { "SCRIPT", "--device", "cuda:0" }, 2)
  end)

  it("is shared where that is allowed", function()
    local code, output, errors = run(one, { "SCRIPT", "--device", "cuda", "--share-gpu" }, 2)
    assert.same({ 0, "cuda:0\t6.0\ncuda:0\t6.0\n", "" }, { code, output, errors })
  end)
end)
