-- What clean finds, what it removes, and above all what it does not.

local clean = require "marea.clean"
local core = require "marea.core"
local fault = require "marea.fault"
local run_of = require "marea.run"
local scratch = dofile "spec/support/scratch.lua"
local small = dofile "spec/support/small_checkpoint.lua"
local stored = dofile "spec/support/stored_runs.lua"

local dead = "99999999" -- a process id that no kernel gives

local folder, outputs

before_each(function()
  folder = scratch.folder()
  outputs = folder.path .. "/outputs"
end)

after_each(function() getmetatable(folder).__close(folder) end)

local function run(options)
  options.outputs, options.runs = options.outputs or outputs, options.runs or {}
  return clean.run(options)
end

-- Names of what would go, and reasons by name of what is left alone.
local function found(options)
  local result = run(options or {})
  local names, left = {}, {}
  for i, item in ipairs(result.waste) do names[i] = item.name end
  table.sort(names)
  for _, item in ipairs(result.left) do left[item.path:sub(#outputs + 2)] = item.reason end
  return names, left
end

local function listing()
  local _, text = scratch.shell(("cd %s && find . | LC_ALL=C sort"):format(folder.path))
  return text
end

describe("clean", function()
  it("finds nothing where there is nothing", function()
    assert.are.same({}, (found()))
    stored.run(outputs, "tide", { updates = { 4 } })
    assert.are.same({}, (found()))
  end)

  it("keeps the newest checkpoint, and finds those before it", function()
    stored.run(outputs, "tide", { updates = { 2, 4, 6 } })
    local result = run {}
    assert.are.equal(2, #result.waste)
    local first = result.waste[1]
    assert.are.equal("tide/checkpoints/step-000002", first.name)
    assert.are.equal("checkpoint", first.kind)
    assert.are.equal("older than step-000006", first.reason)
    local _, size = scratch.shell(("cat %s/* | wc -c"):format(first.path))
    assert.are.equal(tonumber(size), first.bytes)
  end)

  it("lists, and removes only when told", function()
    stored.run(outputs, "tide", { updates = { 2, 4 } })
    stored.run(outputs, "tide.1", { run = "tide" })
    local before = listing()
    local names = found()
    assert.are.same({ "tide.1", "tide/checkpoints/step-000002" }, names)
    assert.are.equal(before, listing())
    assert.are.same(names, (found { yes = true }))
    assert.are.same({ "tide" }, core.file.list(outputs))
    assert.are.same({ "step-000004" }, core.file.list(outputs .. "/tide/checkpoints"))
    assert.are.same({}, (found { yes = true }))
  end)

  it("counts from the newest that verifies: damaged newer ones go", function()
    local tide = stored.run(outputs, "tide", { updates = { 2, 4, 6 } })
    stored.damage(tide .. "/checkpoints/step-000006/parameters.safetensors")
    assert.are.same({ "tide/checkpoints/step-000002", "tide/checkpoints/step-000006" },
                    (found { yes = true }))
    assert.are.same({ "step-000004" }, core.file.list(tide .. "/checkpoints"))
  end)

  it("touches no checkpoint where none verifies", function()
    local tide = stored.run(outputs, "tide", { updates = { 2, 4 } })
    stored.damage(tide .. "/checkpoints/step-000002/state.json")
    stored.damage(tide .. "/checkpoints/step-000004/state.json")
    local names, left = found { yes = true }
    assert.are.same({}, names)
    assert.are.equal("none of its checkpoints verifies", left["tide/checkpoints"])
    assert.are.same({ "step-000002", "step-000004" }, core.file.list(tide .. "/checkpoints"))
  end)

  it("leaves what another run wrote, and finds what a resume passed", function()
    local tide = stored.run(outputs, "tide", { updates = { 4, 6 }, foreign = { 2, 8 } })
    core.file.move(tide .. "/checkpoints/step-000006", tide .. "/checkpoints/step-000006.1")
    core.file.make_folder(tide .. "/checkpoints/notes")
    local names, left = found { yes = true }
    assert.are.same({ "tide/checkpoints/step-000006.1" }, names)
    assert.are.equal("it was written by another run", left["tide/checkpoints/step-000002"])
    assert.are.equal("it was written by another run", left["tide/checkpoints/step-000008"])
    assert.are.same({ "notes", "step-000002", "step-000004", "step-000008" },
                    core.file.list(tide .. "/checkpoints"))
  end)

  it("takes a run for moved aside by its record, not by its name", function()
    stored.run(outputs, "tide", { updates = { 4 } })
    stored.run(outputs, "tide.1", { updates = { 4 } }) -- trained with --run tide.1
    stored.run(outputs, "tide.2", { run = "tide" })
    stored.run(outputs, "tide.1.1", { run = "tide.1" })
    assert.are.same({ "tide.1.1", "tide.2" }, (found()))
  end)

  it("takes no run for moved aside that somebody gave a name himself", function()
    stored.run(outputs, "ok", { updates = { 4 } })
    stored.run(outputs, "ok-lr0.1", { run = "ok", updates = { 4 }, renamed = true })
    stored.run(outputs, "ok.1", { run = "ok", updates = { 4 }, renamed = true })
    stored.run(outputs, "ok.2", { run = "ok", updates = { 4 } })
    core.file.move(outputs .. "/ok.2", outputs .. "/best.2") -- moved aside, and then renamed
    stored.run(outputs, "ok.3", { run = "ok", updates = { 4 } })
    core.file.move(outputs .. "/ok.3", outputs .. "/ok.30")
    local before = listing()
    assert.are.same({}, (found { yes = true }))
    assert.are.equal(before, listing())
  end)

  it("finds what a fresh start moved aside", function()
    local world = require("marea.world").get()
    stored.run(outputs, "tide", { updates = { 4 } })
    do local _ <close> = run_of.open { name = "tide", way = "fresh", outputs = outputs,
                                       world = world } end
    assert.are.same({}, (found())) -- the newest state there is
    stored.run(outputs, "tide", { updates = { 4 } })
    assert.are.same({ "tide.1" }, (found()))
  end)

  it("keeps the newest run moved aside where nothing newer has a state", function()
    stored.run(outputs, "tide.1", { run = "tide", started = "2026-01-01T00:00:00Z" })
    stored.run(outputs, "tide.2", { run = "tide", started = "2026-01-03T00:00:00Z" })
    local third = stored.run(outputs, "tide.3", { run = "tide", started = "2026-01-04T00:00:00Z",
                                                  updates = { 2 } })
    stored.damage(third .. "/checkpoints/step-000002/state.json")
    stored.run(outputs, "tide", { updates = {} })
    local names, left = found()
    assert.are.same({ "tide.1", "tide.3" }, names)
    assert.are.equal("it has the newest state of tide", left["tide.2"])
    core.file.remove_folder(outputs, "tide")
    assert.are.same({ "tide.1", "tide.3" }, (found { yes = true }))
    assert.are.same({ "tide.2" }, core.file.list(outputs))
  end)

  it("removes whole runs with --all, of those that are named", function()
    stored.run(outputs, "tide", { updates = { 4 } })
    stored.run(outputs, "tide.1", { run = "tide" })
    stored.run(outputs, "moon", { updates = { 4 } })
    assert.are.same({ "tide", "tide.1" }, (found { all = true, yes = true, runs = { "tide" } }))
    assert.are.same({ "moon" }, core.file.list(outputs))
  end)

  it("looks at named runs only, and names the nearest where there is none", function()
    stored.run(outputs, "tide")
    stored.run(outputs, "moon")
    assert.are.same({ "moon/checkpoints/step-000002" }, (found { runs = { "moon" } }))
    assert.are.same({ "moon/checkpoints/step-000002" }, (found { runs = { outputs .. "/moon/" } }))
    local good, raised = pcall(found, { runs = { "mon" } })
    assert.is_false(good)
    local message, code = fault.of(raised)
    assert.are.equal(2, code)
    assert.is_truthy(message:find("there is no run 'mon' in " .. outputs ..
                                  "; did you mean 'moon'?", 1, true), message)
  end)

  it("finds what dead processes left, and not what running ones write", function()
    local tide = stored.run(outputs, "tide", { updates = { 4 } })
    local id = tostring(1) -- which always runs
    for _, owner in ipairs { dead, id } do
      core.file.write(tide .. "/.run.json.partial-" .. owner, "")
      core.file.make_folder(tide .. "/checkpoints/.step-000006.partial-" .. owner)
      small.write(tide .. "/checkpoints/.step-000002.old-" .. owner)
    end
    core.file.write(tide .. "/.report.html.partial-" .. dead .. "-3", "")
    core.file.write(tide .. "/checkpoints/.step-000006.partial-" .. dead ..
                    "/.state.json.partial-" .. dead, "")
    core.file.make_folder(outputs .. "/.hidden")
    core.file.write(outputs .. "/.moon.lock", "process " .. dead .. " on elsewhere\n")
    local before = listing()
    local names = found { yes = true }
    assert.are.same({ ".moon.lock", "tide/.report.html.partial-" .. dead .. "-3",
                      "tide/.run.json.partial-" .. dead,
                      "tide/checkpoints/.step-000002.old-" .. dead,
                      "tide/checkpoints/.step-000006.partial-" .. dead }, names)
    local gone = {}
    local after = listing()
    for line in before:gmatch("[^\n]+") do
      local name = line:match("outputs/(.*)")
      if not after:find(line .. "\n", 1, true) and not name:find("%-" .. dead .. "/") and
          not name:find("old%-%d+/") then
        gone[#gone + 1] = name
      end
    end
    assert.are.same(names, gone)
  end)
end)

describe("clean leaves alone", function()
  it("a run in use", function()
    stored.run(outputs, "tide")
    stored.run(outputs, "moon")
    local lock <close> = core.file.lock(outputs .. "/tide")
    assert(lock)
    for _, all in ipairs { false, true } do
      local names, left = found { yes = true, all = all, runs = { "tide" } }
      assert.are.same({}, names)
      assert.is_truthy(left.tide:find("it is in use by process %d+ on "), left.tide)
    end
    assert.are.same({ "moon/checkpoints/step-000002" }, (found { yes = true }))
    assert.are.same({ "step-000002", "step-000004" },
                    core.file.list(outputs .. "/tide/checkpoints"))
  end)

  it("a run that is taken between the look and the removal", function()
    stored.run(outputs, "tide")
    local holder = core.file.lock_holder
    finally(function() core.file.lock_holder = holder end)
    local lock <close> = core.file.lock(outputs .. "/tide")
    assert(lock)
    core.file.lock_holder = function() return nil end -- the look came too early
    local names, left = found { yes = true, runs = { "tide" } }
    assert.are.same({}, names)
    assert.is_truthy(left.tide:find("in use by process", 1, true), left.tide)
    assert.are.equal(2, #core.file.list(outputs .. "/tide/checkpoints"))
  end)

  it("links, whatever they lead to", function()
    local real = stored.run(folder.path .. "/elsewhere", "tide")
    stored.run(outputs, "moon", { updates = { 2, 4 } })
    local function link(to, name) assert(os.execute(("ln -s '%s' '%s'"):format(to, name))) end
    link(real, outputs .. "/tide")
    link(real, outputs .. "/tide.1")
    link(real, outputs .. "/.x.partial-" .. dead)
    link(real .. "/checkpoints/step-000002", outputs .. "/moon/checkpoints/step-000001")
    local elsewhere = core.file.list(real .. "/checkpoints")
    for _, all in ipairs { false, true } do
      local _, left = found { yes = true, all = all }
      assert.are.equal("it is a link", left.tide)
      assert.are.equal("it is a link", left["tide.1"])
      assert.are.same(elsewhere, core.file.list(real .. "/checkpoints"))
      assert.is_truthy(core.file.exists(real .. "/run.json"))
    end
    assert.is_true(core.file.is_link(outputs .. "/tide"))
  end)

  it("checkpoints behind a link", function()
    local real = stored.run(folder.path .. "/elsewhere", "tide")
    stored.run(outputs, "moon", { updates = {}, id = "id of tide" })
    assert(os.execute(("ln -s '%s/checkpoints' '%s/moon/checkpoints'"):format(real, outputs)))
    local names, left = found { yes = true }
    assert.are.same({}, names)
    assert.are.equal("it is a link", left["moon/checkpoints"])
    assert.are.equal(2, #core.file.list(real .. "/checkpoints"))
  end)

  it("a root that is a link, refused with what to do", function()
    stored.run(outputs, "tide")
    assert(os.execute(("ln -s outputs '%s/link'"):format(folder.path)))
    for _, name in ipairs { "/link", "/link/" } do
      local good, raised = pcall(found, { yes = true, outputs = folder.path .. name })
      assert.is_false(good)
      local message, code = fault.of(raised)
      assert.are.equal(2, code)
      assert.is_truthy(message:find("is a link; name the folder itself with --outputs", 1, true))
    end
    assert.are.equal(2, #core.file.list(outputs .. "/tide/checkpoints"))
  end)

  it("folders and files that are not marea's", function()
    stored.run(outputs, "tide", { updates = { 4 } })
    core.file.make_folder(outputs .. "/photos/2026")
    core.file.write(outputs .. "/photos/2026/a.png", "x")
    core.file.write(outputs .. "/notes.1", "x")
    core.file.make_folder(outputs .. "/photos.1")
    local before = listing()
    assert.are.same({}, (found { yes = true }))
    found { yes = true, all = true, runs = { "tide" } }
    assert.are.same({ "notes.1", "photos", "photos.1" }, core.file.list(outputs))
    assert.is_truthy(before:find("a.png", 1, true) and listing():find("a.png", 1, true))
  end)

  it("hidden files and folders that only look as if they were marea's", function()
    local tide = stored.run(outputs, "tide", { updates = { 4 } })
    local names = {
      outputs .. "/.backup.old-2024", outputs .. "/.moon.old-" .. dead,
      outputs .. "/.x.partial-9-notes", tide .. "/.notes.partial-" .. dead,
      tide .. "/.run.json.partial-" .. dead .. "-notes", tide .. "/.run.json.old-2024-01",
      tide .. "/checkpoints/.mine.partial-" .. dead,
      tide .. "/checkpoints/.step-000006.partial-" .. dead,
    }
    for _, path in ipairs(names) do
      core.file.make_folder(path)
      core.file.write(path .. "/mine", "x")
    end
    core.file.make_folder(tide .. "/.plan.json.partial-" .. dead)
    core.file.write(outputs .. "/.notes.lock", "what I have to do\n")
    core.file.write(outputs .. "/.list.lock", "process 1 on paper\nand more\n")
    core.file.write(outputs .. "/.empty.lock", "")
    core.file.make_folder(outputs .. "/.dir.lock")
    local before = listing()
    assert.are.same({}, (found { yes = true }))
    assert.are.equal(before, listing())
  end)

  it("a run whose lock is none, and goes on with the others", function()
    stored.run(outputs, "moon", { updates = { 2, 4 } })
    stored.run(outputs, "tide", { updates = { 2, 4 } })
    core.file.make_folder(outputs .. "/.moon.lock")
    local names, left = found { yes = true }
    assert.are.same({ "tide/checkpoints/step-000002" }, names)
    assert.is_truthy(left.moon:find("moon.lock is no regular file", 1, true), left.moon)
  end)

  it("checkpoints into which somebody put something", function()
    local tide = stored.run(outputs, "tide", { updates = { 2, 4 } })
    core.file.make_folder(tide .. "/checkpoints/step-000001")
    core.file.write(tide .. "/checkpoints/step-000001/mine", "x")
    core.file.make_folder(tide .. "/checkpoints/step-000002/photos")
    core.file.make_folder(tide .. "/checkpoints/step-000099/notes")
    core.file.write(tide .. "/checkpoints/step-000098", "x")
    local before = listing()
    local names, left = found { yes = true }
    assert.are.same({}, names)
    for name, what in pairs { ["1"] = "mine", ["2"] = "photos", ["99"] = "notes" } do
      assert.are.equal(("it holds %s, which is not marea's"):format(what),
                       left[("tide/checkpoints/step-%06d"):format(name)])
    end
    assert.are.equal(before, listing())
  end)

  it("pipes, and waits for none", function()
    local tide = stored.run(outputs, "tide", { updates = { 2, 4 } })
    local moon = stored.run(outputs, "moon", { updates = { 2, 4 } })
    stored.run(outputs, "sun", { updates = { 2, 4 } })
    for _, path in ipairs { tide .. "/run.json", moon .. "/checkpoints/step-000004/manifest.json",
                            outputs .. "/sun/checkpoints/step-000002/state.json",
                            outputs .. "/sun/metrics.jsonl", outputs .. "/.x.lock" } do
      assert(os.execute(("rm -f '%s' && mkfifo '%s'"):format(path, path)))
    end
    local names, left = found { yes = true }
    assert.are.same({}, names)
    assert.is_truthy(left.tide:find("run.json is no regular file", 1, true), left.tide)
    assert.is_truthy(left["moon/checkpoints/step-000004"])
    assert.is_truthy(left["sun/checkpoints/step-000002"])
    assert.is_true(core.file.exists(moon .. "/checkpoints/step-000002/manifest.json"))
  end)

  it("a run whose record cannot be read", function()
    local tide = stored.run(outputs, "tide")
    core.file.write(tide .. "/run.json", "{")
    local names, left = found { yes = true, all = true }
    assert.are.same({}, names)
    assert.is_truthy(left.tide:find("run.json is damaged: ", 1, true), left.tide)
    assert.are.equal(2, #core.file.list(tide .. "/checkpoints"))
  end)
end)
