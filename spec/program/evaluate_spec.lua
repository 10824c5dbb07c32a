-- marea evaluate: the same bits on any number of ranks, and what a checkpoint must be of.

local core = require "marea.core"
local json = require "marea.json"
local scratch = dofile "spec/support/scratch.lua"
local tiny = dofile "spec/support/tiny.lua"

local function shows(text, part)
  assert.is_truthy(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
end

describe("evaluate", function()
  it("gives the same bits on 1, 2 and 3 ranks, and leaves them in evaluate.json", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, 2, "x")
    local outputs = {}
    for ranks = 1, 3 do
      local code, output, errors = tiny.run(folder.path, ranks > 1 and ranks or nil,
        { "evaluate", tiny.recipe, "--run", "x", "--json", "batch_size_per_rank=" .. ranks })
      assert.are.equal(0, code, errors)
      outputs[ranks] = output
    end
    assert.are.equal(outputs[1], outputs[2])
    assert.are.equal(outputs[1], outputs[3])
    local result = json.decode(outputs[1])
    assert.are.equal("test", result.split)
    assert.are.equal(38, result.sequences)
    assert.is_true(result.loss > 0.5 and result.loss < 2)
    assert.is_true(result.accuracy > 0 and result.accuracy < 1)
    assert.are.same(result, json.decode(scratch.read(folder.path .. "/x/evaluate.json")))
    local _, text = tiny.run(folder.path, nil, { "evaluate", tiny.recipe, "--run", "x", "--split",
                                                 "validation" })
    shows(text, "validation split, 10 sequences, ")
    shows(text, " a token, accuracy ")
  end)

  it("reads a checkpoint of a run that goes on, and leaves its lock alone", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, nil, "x")
    local held = core.file.lock(folder.path .. "/x") -- as a training holds it
    local code, output, errors = tiny.run(folder.path, nil,
                                          { "evaluate", tiny.recipe, "--run", "x", "--json" })
    assert.are.equal(0, code, errors)
    assert.are.same(json.decode(output),
                    json.decode(scratch.read(folder.path .. "/x/evaluate.json")))
    assert.is_truthy(core.file.lock_holder(folder.path .. "/x"))
    code = tiny.train(folder.path, nil, "x", "--resume", "latest")
    assert.are.equal(4, code)
    held:close()
  end)

  it("asks for the same corpus and shapes, and for nothing else of the lock", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, nil, "x", "--until", "2")
    local function try(...)
      return tiny.run(folder.path, nil, { "evaluate", tiny.recipe, "--run", "x", ... })
    end
    local code, output = try("lr=9", "seed=3", "dropout=0.9", "objective=per_sequence")
    assert.are.equal(0, code)
    local _, same = try()
    assert.are.equal(same, output)
    local errors
    code, _, errors = try("width=32")
    assert.are.equal(3, code)
    shows(errors, "embedding.weight: the recipe's model expects the shape [6, 32], the file has " ..
          "[6, 16]")
    local text = scratch.read(tiny.recipe)
    scratch.write(folder.path .. "/other.lua", (text:gsub("number %% 6", "number %% 5")))
    code, _, errors = tiny.run(folder.path, nil, { "evaluate", folder.path .. "/other.lua", "--run",
                                                   "x" })
    assert.are.equal(3, code)
    shows(errors, "was trained on another corpus: hash ")
    code, _, errors = tiny.run(folder.path, nil, { "evaluate", tiny.recipe, "--run", "nix" })
    assert.are.equal(2, code)
    shows(errors, "there is no run " .. folder.path .. "/nix")
    assert.is_nil(scratch.read(folder.path .. "/nix/evaluate.json"))
  end)

  it("reads a checkpoint of f32 in f64, to about the same loss", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, nil, "x")
    local losses = {}
    for _, dtype in ipairs { "f32", "f64" } do
      local code, output, errors = tiny.run(folder.path, nil,
        { "evaluate", tiny.recipe, "--run", "x", "--json", "dtype=" .. dtype, "--checkpoint",
          folder.path .. "/x/checkpoints/step-000004" })
      assert.are.equal(0, code, errors)
      losses[dtype] = json.decode(output).loss
    end
    assert.is_true(losses.f32 ~= losses.f64)
    assert.is_true(math.abs(losses.f32 - losses.f64) < 1e-5)
  end)
end)
