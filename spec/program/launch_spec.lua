-- `marea launch`: real mpirun, real ranks.

local core = require "marea.core"
local launch = require "marea.launch"
local scratch = dofile "spec/support/scratch.lua"

local function run(...) return launch.run({ time_limit = 60 }, { "launch", ... }) end

-- A script that marea runs on each rank.
local function script(folder, text)
  local path = folder.path .. "/script.lua"
  scratch.write(path, text)
  return path
end

-- Whether a process is gone within five seconds, or waits only to be collected by its parent.
local function ends(id)
  for _ = 1, 100 do
    local state = (scratch.read(("/proc/%s/stat"):format(id)) or "gone) Z"):match("%) (%a)")
    if state == "Z" then return true end
    os.execute("sleep 0.05")
  end
  return false
end

describe("marea launch", function()
  it("runs a command on every rank, and prints results once", function()
    local code, output = run("-n", "2", "test", "--help")
    assert.are.equal(0, code)
    assert.are.equal(1, select(2, output:gsub("Usage: marea test", "")))
  end)

  it("hands the command's own words and options on", function()
    local code, _, errors = run("-n", "1", "--threads", "1", "test", "--ranks", "none")
    assert.are.equal(2, code)
    assert.is_truthy(errors:find("--ranks must be whole numbers such as 1,2, not none", 1, true))
  end)

  it("ends with the command's exit code, its message printed once", function()
    local code, output, errors = run("-n", "2", "trian")
    assert.are.equal(2, code)
    assert.are.equal("", output)
    assert.are.equal(1, select(2, errors:gsub("unknown command 'trian'", "")), errors)
  end)

  it("works inside a launched program", function()
    local code, output = launch.run({ ranks = 1, time_limit = 60 },
                                    { "launch", "-n", "2", "test", "--help" })
    assert.are.equal(0, code)
    assert.are.equal(1, select(2, output:gsub("Usage: marea test", "")))
  end)

  it("gives every rank its share of the cores", function()
    local folder <close> = scratch.folder()
    local path = script(folder, [[
      local rank = os.getenv "OMPI_COMM_WORLD_RANK"
      local file <close> = io.open(os.getenv "FOLDER" .. "/" .. rank, "w")
      file:write(os.getenv "OMP_NUM_THREADS")]])
    local code = launch.run({ time_limit = 60, set = { FOLDER = folder.path } },
                            { "launch", "-n", "2", path })
    assert.are.equal(0, code)
    local share = tostring(math.max(1, core.process.cores() // 2))
    assert.are.equal(share, scratch.read(folder.path .. "/0"))
    assert.are.equal(share, scratch.read(folder.path .. "/1"))
  end)

  it("lets waiting threads sleep soon, unless the environment says how they wait", function()
    local folder <close> = scratch.folder()
    local path = script(folder, [[
      local file <close> = io.open(os.getenv "FOLDER" .. "/waiting", "w")
      file:write(os.getenv "GOMP_SPINCOUNT")]])
    for set, expected in pairs { [""] = launch.spin_count, ["77"] = "77" } do
      local code, _, errors = launch.run({
        time_limit = 60,
        set = { FOLDER = folder.path, OMP_WAIT_POLICY = "", GOMP_SPINCOUNT = set },
      }, { "launch", "-n", "1", path })
      assert.are.equal(0, code, errors)
      assert.are.equal(expected, scratch.read(folder.path .. "/waiting"))
    end
  end)

  it("ends a run at the time limit with 6 and a message", function()
    local folder <close> = scratch.folder()
    local path = script(folder, "while true do end")
    local began = core.seconds()
    local code, _, errors = run("-n", "2", "--time-limit", "1", path)
    assert.are.equal(6, code)
    assert.is_true(core.seconds() - began < 10)
    assert.is_truthy(errors:find("the time limit of 1 seconds ended the run", 1, true), errors)
  end)

  it("ends with 6 when a rank is killed", function()
    local folder <close> = scratch.folder()
    local path = script(folder, [[
      if os.getenv "OMPI_COMM_WORLD_RANK" == "1" then os.execute("kill -9 $PPID") end
      while true do end]])
    local code = run("-n", "2", path)
    assert.are.equal(6, code)
  end)

  it("hands signals on, so that nothing stays behind", function()
    local folder <close> = scratch.folder()
    local path = script(folder, [[
      local rank = os.getenv "OMPI_COMM_WORLD_RANK"
      local stream = assert(io.popen("echo $PPID"))
      local file = io.open(os.getenv "FOLDER" .. "/" .. rank, "w")
      file:write(stream:read("a"))
      file:close()
      while true do end]])
    local process <close> = launch.start({ input = "/dev/null", output = "/dev/null",
                                           errors = "/dev/null", set = { FOLDER = folder.path } },
                                         { "launch", "-n", "2", path })
    local began = core.seconds()
    while core.seconds() - began < 30 and
        not (scratch.read(folder.path .. "/0") and scratch.read(folder.path .. "/1")) do
      os.execute("sleep 0.05")
    end
    os.execute("kill -TERM " .. process:id())
    process:wait(20)
    for rank = 0, 1 do
      local id = scratch.read(folder.path .. "/" .. rank):match("%d+")
      assert.is_true(ends(id), "rank " .. rank .. " still runs")
    end
  end)
end)
