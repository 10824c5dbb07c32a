-- What users see of what runs left: runs, checkpoints, clean.

local core = require "marea.core"
local json = require "marea.json"
local launch = require "marea.launch"
local scratch = dofile "spec/support/scratch.lua"
local stored = dofile "spec/support/stored_runs.lua"

local folder, outputs

before_each(function()
  folder = scratch.folder()
  outputs = folder.path .. "/outputs"
end)

after_each(function() getmetatable(folder).__close(folder) end)

local function run(ranks, ...)
  local words = { ... }
  table.move({ "--outputs", outputs }, 1, 2, #words + 1, words)
  local code, output, errors = launch.run({ ranks = ranks, threads = 1, time_limit = 30 }, words)
  return code, (output:gsub(outputs:gsub("%p", "%%%0"), "OUT")), errors
end

-- The decoded result of a command that ended well.
local function result(...)
  local code, output, errors = run(nil, ...)
  assert.are.equal("", errors)
  return json.decode(output), code
end

local function shows(text, ...)
  for _, part in ipairs { ... } do
    assert.is_truthy(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
  end
end

describe("marea runs", function()
  it("lists runs with how far they came and how they ended", function()
    stored.run(outputs, "tide", { updates = { 4 } })
    stored.run(outputs, "tide.10", { run = "tide", updates = {} })
    stored.run(outputs, "tide.2", { run = "tide", outcome = "stopped" })
    core.file.make_folder(outputs .. "/photos")
    local code, output = run(nil, "runs")
    assert.are.equal(0, code)
    local lines = {}
    for line in output:gmatch("[^\n]+") do lines[#lines + 1] = line end
    assert.are.equal(4, #lines)
    assert.is_truthy(lines[1]:find("^run +recipe +update +loss +state +when %(UTC%) +size"))
    assert.is_truthy(lines[2]:find("^tide +recipes/tide%.lua +4/8 +0%.5000 +complete +" ..
                                   "2026%-01%-02 03:05 +[%d.]+ kB$"), lines[2])
    assert.is_truthy(lines[3]:find("^tide%.2 .* stopped .* moved aside$"), lines[3])
    assert.is_truthy(lines[4]:find("^tide%.10 .* moved aside$"), lines[4])
  end)

  it("tells who uses a run, which was broken off, and which is none", function()
    stored.run(outputs, "moon", { outcome = "running" })
    stored.run(outputs, "tide", { outcome = "running" })
    core.file.make_folder(outputs .. "/plan")
    core.file.write(outputs .. "/plan/lock.json", "{}")
    core.file.make_folder(outputs .. "/bad")
    core.file.write(outputs .. "/bad/run.json", "{")
    assert(os.execute(("ln -s tide '%s/zlink'"):format(outputs)))
    local lock <close> = core.file.lock(outputs .. "/tide")
    assert(lock)
    local states = {}
    for _, row in ipairs(result("runs", "--all", "--json").runs) do states[row.run] = row end
    assert.are.equal("broken off", states.moon.state)
    assert.are.equal("running", states.tide.state)
    assert.is_truthy(states.tide.in_use:find("^process %d+ on "))
    assert.is_nil(states.moon.in_use)
    assert.are.equal("not trained", states.plan.state)
    assert.are.equal("damaged", states.bad.state)
    shows(states.bad.problem, "run.json is damaged: ")
    assert.are.equal("a link", states.zlink.state)
    assert.are.equal(4, states.tide.update)
    assert.are.equal(0.5, states.tide.loss_per_token)
    assert.are.equal(8, states.tide.updates)
    local _, output = run(nil, "runs", "tide")
    shows(output, "in use by process ")
    assert.is_nil(output:find("moon", 1, true))
    _, output = run(nil, "runs")
    shows(output, "\nbad ", "\nzlink ", "\n1 folder that was never trained: --all lists it\n")
    assert.is_nil(output:find("\nplan ", 1, true))
    _, output = run(nil, "runs", "plan") -- which was asked for
    shows(output, "not trained")
  end)

  it("says so where there are none, and on several ranks only once", function()
    local code, output = run(nil, "runs")
    assert.are.equal(0, code)
    assert.are.equal("no runs in OUT\n", output)
    assert.is_false(core.file.exists(outputs))
    stored.run(outputs, "tide")
    local _, one = run(nil, "runs")
    local _, two = run(2, "runs")
    assert.are.equal(one, two)
    local errors
    code, _, errors = run(nil, "runs", "tid")
    assert.are.equal(2, code)
    shows(errors, "there is no run 'tid' in ", "did you mean 'tide'?")
  end)
end)

describe("marea checkpoints", function()
  it("passes what is whole, of all runs or of one", function()
    stored.run(outputs, "tide")
    stored.run(outputs, "moon", { updates = { 4 }, foreign = { 2 } })
    local code, output = run(nil, "checkpoints")
    assert.are.equal(0, code)
    assert.is_truthy(output:find("OUT/moon/checkpoints/step%-000002 +good +[%d.]+ kB +of " ..
                                 "another run\n"), output)
    assert.is_truthy(output:find("OUT/tide/checkpoints/step%-000004 +good +[%d.]+ kB\n"), output)
    shows(output, "\n4 checkpoints, 0 damaged\n")
    output = select(2, run(2, "checkpoints", "tide"))
    shows(output, "\n2 checkpoints, 0 damaged\n")
    assert.is_nil(output:find("moon", 1, true))
    output = select(2, run(nil, "checkpoints", outputs .. "/moon/checkpoints/step-000004/"))
    shows(output, "\n1 checkpoint, 0 damaged\n")
  end)

  it("names the damaged file and tensor, with exit code 3", function()
    local tide = stored.run(outputs, "tide")
    local file = tide .. "/checkpoints/step-000002/parameters.safetensors"
    stored.damage(file)
    local code, output = run(nil, "checkpoints")
    assert.are.equal(3, code)
    assert.is_truthy(output:find("step%-000002 +DAMAGED +[%d.]+ kB +OUT/tide/checkpoints/" ..
      "step%-000002/parameters%.safetensors is damaged: expected sha%-256 %x+, found %x+, in " ..
      "tensor bias\n"), output)
    assert.is_truthy(output:find("step%-000004 +good "), output)
    shows(output, "\n2 checkpoints, 1 damaged\n")
    local found
    found, code = result("checkpoints", "tide", "--json")
    assert.are.equal(3, code)
    assert.are.equal(1, found.damaged)
    assert.is_false(found.checkpoints[1].good)
    assert.are.equal("bias", found.checkpoints[1].tensor)
    assert.are.equal((file:gsub(outputs:gsub("%p", "%%%0"), "OUT")), found.checkpoints[1].file)
    assert.is_true(found.checkpoints[2].good)
  end)

  it("sees what the hashes of files cannot: parts that do not belong together", function()
    local tide = stored.run(outputs, "tide", { updates = { 2, 3 } })
    local one, two = tide .. "/checkpoints/step-000002", tide .. "/checkpoints/step-000003"
    assert(os.execute(("cp '%s/manifest.json' '%s/'"):format(one, two)))
    local code, output = run(nil, "checkpoints")
    assert.are.equal(3, code)
    shows(output, "step-000003/", "is damaged: expected ")
  end)

  it("needs nothing but the folder: no recipe, and no lock of a run in use", function()
    stored.run(outputs, "tide")
    local lock <close> = core.file.lock(outputs .. "/tide")
    assert(lock)
    assert.are.equal(0, (run(nil, "checkpoints", "tide")))
    local code, output = run(nil, "checkpoints", "--run", "x")
    assert.are.equal(0, code, output)
  end)
end)

describe("marea clean", function()
  it("says what would go, and that nothing went", function()
    stored.run(outputs, "tide")
    stored.run(outputs, "tide.1", { run = "tide" })
    local code, output = run(nil, "clean")
    assert.are.equal(0, code)
    assert.is_truthy(output:find("OUT/tide/checkpoints/step%-000002 +[%d.]+ kB +older than " ..
                                 "step%-000004\n"), output)
    assert.is_truthy(output:find("OUT/tide%.1 +[%d.]+ kB +an older run, moved aside\n"), output)
    assert.is_truthy(output:find("kB in 2 places; nothing was removed, %-%-yes removes it\n"))
    assert.are.same({ "tide", "tide.1" }, core.file.list(outputs))
  end)

  it("removes with --yes, once for all ranks, and then has nothing to do", function()
    stored.run(outputs, "tide")
    local code, output = run(2, "clean", "tide", "--yes")
    assert.are.equal(0, code)
    shows(output, "kB in 1 place removed")
    assert.are.same({ "step-000004" }, core.file.list(outputs .. "/tide/checkpoints"))
    local found = result("clean", "--yes", "--json")
    assert.are.same({}, found.items)
    assert.is_true(found.removed)
    output = select(2, run(nil, "clean"))
    assert.are.equal("nothing to remove\n", output)
    assert.are.equal(0, (run(nil, "checkpoints")))
  end)

  it("tells what it leaves alone, and why", function()
    stored.run(outputs, "tide")
    local lock <close> = core.file.lock(outputs .. "/tide")
    assert(lock)
    local code, output = run(nil, "clean", "--yes")
    assert.are.equal(0, code)
    assert.is_truthy(output:find("^left alone  OUT/tide: it is in use by process %d+ on %S+\n" ..
                                 "nothing to remove\n$"), output)
  end)
end)
