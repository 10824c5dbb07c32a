-- Public cases of checkpoints: whole or not there, and each part to whom it belongs.

local checkpoint = require "marea.checkpoint"
local core = require "marea.core"
local marea = require "marea"
local run_of = require "marea.run"
local saves = require "marea.saves"
local state_of = require "marea.state"
local cases = dofile "spec/support/cases.lua"
local scratch = dofile "spec/support/scratch.lua"
local small = dofile "spec/support/small_checkpoint.lua"

local check = cases.check

-- By construction: a fresh run has a folder and an identity of its own, and a checkpoint appears
-- whole or not at all.
describe("B18 c: a checkpoint of that name is there from an older run", function()
  local function root(folder) return folder.path .. "/x/checkpoints/" end

  it("it counts for the older run only, while the fresh one is half-way through its own", function()
    local folder <close> = scratch.folder()
    small.write(root(folder) .. "step-000010", "fresh", 10)
    small.write(root(folder) .. "step-000020", "older", 20)
    local staging = core.file.begin_folder(root(folder) .. "step-000020")
    core.file.write(staging:path() .. "/parameters.safetensors", "half of it")
    local found = saves.latest(folder.path .. "/x", "fresh")
    check(10, tonumber(found:match("%d+$")), { { 20, "the older run's vouched for it" } })
    assert.equal("older", checkpoint.verify(root(folder) .. "step-000020").run)
    staging:discard()
  end)

  it("it is moved aside with its run before the fresh one writes anything", function()
    local folder <close> = scratch.folder()
    scratch.write(folder.path .. "/x/run.json", '{"id": "older"}')
    small.write(root(folder) .. "step-000020", "older", 20)
    local run <close> = run_of.open { outputs = folder.path, name = "x", way = "fresh",
                                      world = cases.alone() }
    assert.equal(folder.path .. "/x.1", run.moved_to)
    assert.same({}, saves.list(run.folder))
    assert.equal(1, #saves.list(run.moved_to))
  end)
end)

-- By construction: all parts have one manifest with the hash of each, and one rename or exchange.
describe("B19: a save that ends half-way", function()
  -- Two checkpoints of one name, of update 10 and of update 20.
  local function both(folder)
    small.write(folder .. "/10/step", "spec", 10, 10)
    small.write(folder .. "/20/step", "spec", 20, 20)
  end
  local parts = small.files

  it("of which some parts are new: (10, 10, 10), (20, 20, 20), or refused by name", function()
    local folder <close> = scratch.folder()
    both(folder.path)
    local target, refused = folder.path .. "/mixed/step", 0
    for subset = 0, 2 ^ #parts - 1 do
      local updates = {}
      for i, name in ipairs(parts) do
        updates[i] = subset // 2 ^ (i - 1) % 2 == 1 and 20 or 10
        scratch.write(target .. "/" .. name,
                      scratch.read(("%s/%d/step/%s"):format(folder.path, updates[i], name)))
      end
      local good, opened = pcall(checkpoint.open, target)
      if good then
        local update = opened.manifest.update
        assert.same({ update, update, update, update }, {
          opened.state.update, opened.history:count(),
          opened.parameters:tensor("weight"):get(1) - 1,
          opened.optimizer:tensor("m.weight"):get(1) })
        opened.parameters:close()
        opened.optimizer:close()
      else
        refused = refused + 1
        local named = false
        for _, name in ipairs(parts) do
          named = named or tostring(opened):find("step/" .. name, 1, true) ~= nil
        end
        assert.is_true(named, tostring(opened))
      end
    end
    assert.equal(32 - 2, refused)
  end)

  it("whichever call it ends at: what stands there is one of the two, whole", function()
    local folder <close> = scratch.folder()
    local target, failures, seen = folder.path .. "/step", 0, {}
    small.write(target, "spec", 10)
    repeat
      core.file.fail_at(failures + 1)
      local good = pcall(small.write, target, "spec", 20)
      core.file.fail_at(0)
      failures = failures + (good and 0 or 1)
      local update = checkpoint.verify(target).update
      seen[update] = true
      if not good and update == 20 then small.write(target, "spec", 10) end
    until good
    assert.is_true(failures > 20)
    assert.same({ [10] = true, [20] = true }, seen)
  end)

  it("with a part that is a byte short is refused, not filled up", function()
    for _, name in ipairs(parts) do
      local folder <close> = scratch.folder()
      small.write(folder.path .. "/step", "spec", 10)
      local path = folder.path .. "/step/" .. name
      scratch.write(path, scratch.read(path):sub(1, -2))
      local message, code = cases.refusal(checkpoint.open, folder.path .. "/step")
      assert.equal(3, code)
      assert.truthy(message:find(name, 1, true), message)
    end
  end)
end)

-- By construction: state is saved and restored under the names of the parameters.
describe("B39: parameters that are declared in another order", function()
  local function model_of(names)
    local Named = marea.nn.class "spec.Named"
    function Named:init()
      for _, name in ipairs(names) do self:parameter(name, { 2 }) end
    end
    local model = Named():materialize { seed = 1, dtype = "f32" }
    return model, marea.optim.AdamW(model, { lr = 0.1 })
  end

  local function values_of(model, optimizer)
    local found = {}
    for _, item in ipairs(state_of.optimizer(model, optimizer)) do
      found[item[1]] = item[2]:values()
    end
    return found
  end

  -- Writes first moments by name, and reads them into another model.
  local function through_file(names, moments, others)
    local folder <close> = scratch.folder()
    local model, optimizer = model_of(names)
    for _, item in ipairs(state_of.optimizer(model, optimizer)) do
      local name = item[1]:match("^m%.(.*)$")
      if name then item[2]:fill_(moments[name]) end
    end
    core.safetensors.write(folder.path .. "/o", state_of.optimizer(model, optimizer),
                           state_of.optimizer_metadata(optimizer))
    local other, its = model_of(others)
    local file <close> = core.safetensors.open(folder.path .. "/o")
    state_of.restore_optimizer(other, its, file)
    return values_of(other, its)
  end

  it("a: q before p: each keeps its own moments", function()
    local found = through_file({ "p", "q" }, { p = 1, q = 9 }, { "q", "p" })
    assert.are_not.same({ 9, 9 }, found["m.p"]) -- exchanged
    assert.same({ 1, 1 }, found["m.p"])
    assert.same({ 9, 9 }, found["m.q"])
  end)

  it("b: the first without state: the second and third keep their own", function()
    local found = through_file({ "a", "b", "c" }, { a = 0, b = 2, c = 3 }, { "a", "b", "c" })
    assert.same({ { 0, 0 }, { 2, 2 }, { 3, 3 } }, { found["m.a"], found["m.b"], found["m.c"] })
  end)

  it("one that only the file or only the recipe has is refused by name", function()
    for _, names in ipairs { { "b", "c" }, { "a", "b", "c", "d" } } do
      local message, code = cases.refusal(through_file, { "a", "b", "c" }, { a = 0, b = 2, c = 3 },
                                          names)
      assert.equal(3, code)
      assert.truthy(message:find(#names == 2 and "m.a" or "m.d", 1, true), message)
    end
  end)
end)
