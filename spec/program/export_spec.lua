-- Weights out of a run and into another one.

local core = require "marea.core"
local json = require "marea.json"
local scratch = dofile "spec/support/scratch.lua"
local tiny = dofile "spec/support/tiny.lua"

local function shows(text, ...)
  for _, part in ipairs { ... } do
    assert.is_truthy(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
  end
end

-- {dtype, shape, elements} of a tensor file by name, read without marea's reader.
local function read_apart(path)
  local text = scratch.read(path)
  local length = string.unpack("<I8", text)
  local header, tensors = json.decode(text:sub(9, 8 + length)), {}
  for name, info in pairs(header) do
    if name ~= "__metadata__" then
      local first, last = info.data_offsets[1], info.data_offsets[2]
      tensors[name] = { dtype = info.dtype, shape = info.shape,
                        elements = text:sub(9 + length + first, 8 + length + last) }
    end
  end
  return tensors, header.__metadata__
end

describe("marea export", function()
  local folder, outputs

  setup(function()
    folder = scratch.folder()
    outputs = folder.path
    tiny.must_train(outputs, 2, "tiny", "save_every=2")
  end)

  teardown(function() getmetatable(folder).__close(folder) end)

  local function export(ranks, ...) return tiny.run(outputs, ranks, { "export", ... }) end

  it("writes the weights of a run's newest checkpoint, bit for bit", function()
    local code, output = export(nil, "tiny", "--json")
    assert.are.equal(0, code)
    local result = json.decode(output)
    assert.are.equal(outputs .. "/tiny/weights.safetensors", result.file)
    assert.are.equal(outputs .. "/tiny/checkpoints/step-000004", result.checkpoint)
    assert.are.equal(2565, result.parameters)
    assert.are.equal(core.file.sha256_of(result.file), result.sha256)
    local found, metadata = read_apart(result.file)
    local saved = read_apart(result.checkpoint .. "/parameters.safetensors")
    assert.are.same(saved, found)
    assert.are.same({ 48, 16 }, found["layers.0.attention.qkv.weight"].shape)
    assert.are.equal("F32", found["head.bias"].dtype)
    assert.are.equal("4", metadata.update)
    assert.are.equal("pt", metadata.format)
    assert.are.equal(0.02, json.decode(metadata.config).lr)
  end)

  it("overwrites an earlier export, and another file only when it is forced to", function()
    local to = outputs .. "/mine.safetensors"
    local parameters = outputs .. "/tiny/checkpoints/step-000004/parameters.safetensors"
    for _, text in ipairs { "precious", scratch.read(parameters) } do
      scratch.write(to, text)
      local code, _, errors = export(nil, "tiny", "--to", to)
      assert.are.equal(2, code)
      shows(errors, to .. " is there and is no earlier export; --force overwrites it")
      assert.are.equal(text, scratch.read(to))
    end
    assert.are.equal(0, (export(nil, "tiny", "--to", to, "--force")))
    assert.are.equal(0, (export(nil, "tiny", "--to", to, "--dtype", "f64")))
    assert.are.equal("F64", read_apart(to)["head.bias"].dtype)
  end)

  it("takes a recipe, checked against model and corpus, or a checkpoint, on any ranks", function()
    local to = outputs .. "/given.safetensors"
    local code, output = export(3, tiny.recipe, "--to", to)
    assert.are.equal(0, code)
    shows(output, to .. ": ", "2565 parameters, f32, of " .. outputs ..
          "/tiny/checkpoints/step-000004")
    local whole = scratch.read(to)
    code = export(nil, outputs .. "/tiny/checkpoints/step-000004", "--to", to)
    assert.are.equal(0, code)
    assert.are.equal(whole, scratch.read(to))
    code = export(nil, tiny.recipe, "--checkpoint", outputs .. "/tiny/checkpoints/step-000002",
                  "--to", to, "--dtype", "f64")
    assert.are.equal(0, code)
    local found, metadata = read_apart(to)
    assert.are.equal("2", metadata.update)
    assert.are.equal("F64", found["head.bias"].dtype)
    local saved = read_apart(outputs .. "/tiny/checkpoints/step-000002/parameters.safetensors")
    for i = 1, 5 do
      assert.are.equal((string.unpack("<f", saved["head.bias"].elements, 4 * i - 3)),
                       (string.unpack("<d", found["head.bias"].elements, 8 * i - 7)))
    end
  end)

  it("refuses what does not belong together", function()
    local cases = {
      { { "nobody" }, 2, "nobody is neither a checkpoint nor a run" },
      { { "tiny", "lr=1" }, 2, "export: key=value is for a recipe, and tiny is a run" },
      { { tiny.recipe, "width=32" }, 3, "the recipe's model expects the shape [6, 32]" },
      { { "tiny", "--to", outputs .. "/no/such/folder/x" }, 1, "No such file" },
      { { "tiny", "--dtype", "f16" }, 2, "--dtype" },
    }
    for _, case in ipairs(cases) do
      local code, output, errors = export(nil, table.unpack(case[1]))
      assert.are.equal(case[2], code, errors)
      assert.are.equal("", output)
      shows(errors, case[3])
    end
  end)
end)

describe("train --init", function()
  local folder, outputs, file

  setup(function()
    folder = scratch.folder()
    outputs, file = folder.path, folder.path .. "/first.safetensors"
    tiny.must_train(outputs, 2, "first")
    assert(tiny.run(outputs, nil, { "export", "first", "--to", file }) == 0)
  end)

  teardown(function() getmetatable(folder).__close(folder) end)

  local function record_of(name) return json.decode(scratch.read(outputs .. "/" .. name ..
                                                                 "/run.json")) end

  it("begins with the file's weights on every rank, and says so in lock and record", function()
    tiny.must_train(outputs, 2, "next", "--init", file, "--until", "1", "lr=1e-30", "seed=8")
    local after = scratch.read(outputs .. "/next/checkpoints/step-000001/parameters.safetensors")
    local before = scratch.read(outputs .. "/first/checkpoints/step-000004/parameters.safetensors")
    assert.are.equal(before, after) -- a learning rate that moves nothing
    local hash = core.file.sha256_of(file)
    assert.are.same({ file = file, sha256 = hash }, record_of("next").init)
    local state = json.decode(scratch.read(outputs .. "/next/checkpoints/step-000001/state.json"))
    assert.are.equal(hash, state.lock.init)
    assert.are.equal(hash, json.decode(scratch.read(outputs .. "/next/lock.json")).init)
    assert.is_nil(record_of("first").init)
  end)

  it("stays in the lock when the run goes on, and is told apart by compare", function()
    tiny.must_train(outputs, nil, "a", "--init", file, "--continuous")
    tiny.must_train(outputs, nil, "b", "--init", file)
    local words = { "prepare", tiny.recipe, "ranks=1", "--run", "b" }
    local code, output, errors = tiny.run(outputs, nil, words)
    assert.are.equal(0, code, output .. errors)
    tiny.must_train(outputs, nil, "b", "--resume", "latest")
    assert.are.equal(0, (tiny.compare(outputs, "a", "b")))
    assert.are.equal(core.file.sha256_of(file), record_of("b").init.sha256)
    tiny.must_train(outputs, nil, "c", "--continuous")
    local parts
    code, parts = tiny.compare(outputs, "a", "c")
    assert.are.equal(3, code)
    shows(parts.lock.first, "init: " .. core.file.sha256_of(file):sub(1, 12))
    assert.is_false(parts.parameters.equal)
  end)

  it("refuses a file that does not fit before anything is written", function()
    local bad = outputs .. "/bad.safetensors"
    scratch.write(bad, scratch.read(file):sub(1, -2))
    local cases = {
      { { "--init", file, "width=32" }, 2, "embedding.weight has the shape [6, 16], the model's " ..
        "is [6, 32]" },
      { { "--init", bad }, 3, "bad.safetensors" },
      { { "--init", outputs .. "/none" }, 2, "there is no file " .. outputs .. "/none" },
      { { "--init", file, "--resume", "latest" }, 2, "--init begins a run and --resume goes on" },
      { { "--init", bad, "--dry-run" }, 3, "bad.safetensors" },
    }
    for _, case in ipairs(cases) do
      for _, ranks in ipairs { false, 2 } do
        local code, _, errors = tiny.train(outputs, ranks or nil, "refused",
                                           table.unpack(case[1]))
        assert.are.equal(case[2], code, errors)
        shows(errors, case[3])
        assert.are.equal(1, select(2, errors:gsub("marea: ", "")), errors)
        assert.is_false(core.file.exists(outputs .. "/refused"))
      end
    end
  end)
end)
