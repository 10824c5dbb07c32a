-- Weights in a tensor file of their own: what fits a model, what is converted, what is refused.

local core = require "marea.core"
local fault = require "marea.fault"
local nn = require "marea.nn"
local scratch = dofile "spec/support/scratch.lua"
local state = require "marea.state"
local weights = require "marea.weights"

local alone = { rank = function() return 0 end, size = function() return 1 end }

local function model(dtype, seed)
  local linear = nn.Linear { input = 3, output = 2 }
  return linear:materialize { seed = seed or 1, dtype = dtype or "f32" }
end

-- Writes a safetensors file as another tool might: an own header, no padding.
local function foreign(path, entries, metadata)
  local header, data, at = {}, {}, 0
  if metadata then header[1] = '"__metadata__":{"format":"pt"}' end
  for _, entry in ipairs(entries) do
    header[#header + 1] = ('"%s":{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}'):format(
      entry.name, entry.dtype, table.concat(entry.shape, ","), at, at + #entry.data)
    data[#data + 1], at = entry.data, at + #entry.data
  end
  local text = "{" .. table.concat(header, ",") .. "}"
  scratch.write(path, string.pack("<I8", #text) .. text .. table.concat(data))
end

local function pack(kind, values)
  local parts = {}
  for i, value in ipairs(values) do parts[i] = string.pack(kind, value) end
  return table.concat(parts)
end

local function entry(name, dtype, shape, data)
  return { name = name, dtype = dtype, shape = shape, data = data }
end

local values = { 1, -2, 3.5, 1 / 3, -0.0, 1e-30 }

describe("weights", function()
  local folder, path

  before_each(function()
    folder = scratch.folder()
    path = folder.path .. "/w.safetensors"
  end)

  after_each(function() getmetatable(folder).__close(folder) end)

  local function refusal(target)
    local before = target:values():hash()
    local good, raised = pcall(weights.load, target, alone, path)
    assert.is_false(good)
    assert.are.equal(before, target:values():hash())
    return fault.of(raised)
  end

  it("come back in every bit, and the file names what it holds", function()
    for _, dtype in ipairs { "f32", "f64" } do
      local one, other = model(dtype, 1), model(dtype, 2)
      weights.write(path, state.parameters(one), { metadata = { recipe = "tide" } })
      assert.are.equal(core.file.sha256_of(path), weights.load(other, alone, path))
      assert.are.equal(one:values():hash(), other:values():hash())
      local file <close> = core.safetensors.open(path)
      assert.are.same({ "weight", "bias" }, file:names())
      assert.are.same({ kind = "marea weights", format = "pt", recipe = "tide" }, file:metadata())
    end
  end)

  it("are converted when they are written, and when they are read", function()
    local wide = model("f64")
    wide.unit:parameter("weight"):copy_(core.from(values, "f64", { 2, 3 }))
    weights.write(path, state.parameters(wide), { dtype = "f32", metadata = {} })
    local file <close> = core.safetensors.open(path)
    assert.are.equal("f32", file:dtype("weight"))
    assert.are.equal(string.unpack("<f", string.pack("<f", 1 / 3)), file:tensor("weight"):get(4))
    weights.load(wide, alone, path) -- f32 into f64
    assert.are.equal(string.unpack("<f", string.pack("<f", 1 / 3)),
                     wide.unit:parameter("weight"):get(4))
    foreign(path, { entry("bias", "F64", { 2 }, pack("<d", { 0.1, 7 })),
                    entry("weight", "F32", { 2, 3 }, pack("<f", values)) }, true)
    local narrow = model "f32" -- f64 into f32, in another order
    weights.load(narrow, alone, path)
    assert.are.equal(string.unpack("<f", string.pack("<f", 0.1)),
                     narrow.unit:parameter("bias"):get(1))
    assert.are.equal(3.5, narrow.unit:parameter("weight"):get(3))
  end)

  it("that the published library wrote are read", function()
    local target = model "f64"
    weights.load(target, alone, "spec/golden/linear_weights.safetensors")
    assert.are.same({ 1, -2, 3.5, 0.25, -0.0, (string.unpack("<f", string.pack("<f", 1e-30))) },
                    target.unit:parameter("weight"):values())
    assert.are.same({ 0.1, 7 }, target.unit:parameter("bias"):values())
  end)

  it("of another model are refused with all that does not fit", function()
    foreign(path, { entry("bias", "F32", { 1, 2 }, pack("<f", { 1, 2 })),
                    entry("gain", "F32", { 1 }, pack("<f", { 1 })) })
    local message, code = refusal(model())
    assert.are.equal(2, code)
    assert.are.equal(path .. " does not fit the recipe's model: weight is missing; bias has the " ..
                     "shape [1, 2], the model's is [2]; gain is no parameter of the model", message)
    local many = {}
    for i = 1, 20 do many[i] = entry("x" .. i, "F32", { 1 }, pack("<f", { 1 })) end
    foreign(path, many)
    message = refusal(model())
    assert.is_truthy(message:find("; and 17 more$"), message)
  end)

  it("of other dtypes are refused by name", function()
    for dtype, bytes in pairs { F16 = 2, I32 = 4, I64 = 8, U8 = 1, BOOL = 1 } do
      foreign(path, { entry("weight", dtype, { 2, 3 }, ("\0"):rep(6 * bytes)),
                      entry("bias", "F32", { 2 }, pack("<f", { 1, 2 })) })
      local message, code = refusal(model())
      assert.are.equal(2, code)
      local expected = "weight is " .. dtype .. ", and F32, F64 or BF16 is read"
      assert.is_truthy(message:find(expected, 1, true), message)
    end
  end)

  it("that are damaged, foreign or missing are refused", function()
    weights.write(path, state.parameters(model()), { metadata = {} })
    local text = scratch.read(path)
    for _, bad in ipairs { text:sub(1, -2), text .. "x", "", "PK\3\4 a zip file of torch.save" } do
      scratch.write(path, bad)
      local message, code = refusal(model())
      assert.are.equal(3, code, message)
      assert.is_truthy(message:find(path, 1, true))
    end
    os.remove(path)
    local message, code = refusal(model())
    assert.are.equal(2, code)
    assert.are.equal("there is no file " .. path, message)
  end)
end)
