-- `marea doctor`: what it reports of a good machine, and that it finds what is bad.

local core = require "marea.core"
local json = require "marea.json"
local launch = require "marea.launch"
local scratch = dofile "spec/support/scratch.lua"

local items = { "blas", "device", "kernel", "mpi", "all_reduce", "threads", "memory", "disk",
                "shared_memory" }

local function run(options, folder, ...)
  options.time_limit = 60
  return launch.run(options, { "doctor", "--outputs", folder.path .. "/outputs", ... })
end

local function report(folder)
  return assert(json.decode(scratch.read(folder.path .. "/outputs/doctor/doctor.json")))
end

describe("marea doctor", function()
  it("finds a good machine good, and tries two ranks", function()
    local folder <close> = scratch.folder()
    local code, output, errors = run({}, folder)
    assert.are.equal(0, code, output .. errors)
    for _, name in ipairs(items) do
      assert.is_truthy(("\n" .. output):find("\nok +" .. name .. " +%g"), name)
    end
    assert.is_truthy(output:find("ok   two_ranks", 1, true))
    assert.is_true(report(folder).good)
  end)

  it("reports every rank of several", function()
    local folder <close> = scratch.folder()
    local code, output = run({ ranks = 2, threads = 1 }, folder)
    assert.are.equal(0, code, output)
    assert.is_truthy(output:find("the ones of 2 ranks add up to 2", 1, true))
    local found = report(folder)
    assert.are.equal(2, #found.rows)
    for rank, row in ipairs(found.rows) do
      assert.are.equal(rank - 1, row.rank)
      for i, name in ipairs(items) do assert.are.equal(name, row.items[i].name) end
    end
  end)

  it("prints its report as JSON", function()
    local folder <close> = scratch.folder()
    local code, output = run({ ranks = 2, threads = 1 }, folder, "--json")
    assert.are.equal(0, code)
    assert.are.same(report(folder), json.decode(output))
  end)

  it("finds more threads than cores, with a remedy, and ends with 4", function()
    local folder <close> = scratch.folder()
    local code, output = run({ ranks = 1, threads = core.process.cores() + 1 }, folder)
    assert.are.equal(4, code)
    assert.is_truthy(("\n" .. output):find("\nbad +threads +[^\n]*; use marea launch"), output)
    assert.is_false(report(folder).good)
  end)

  it("finds a missing mpirun", function()
    local folder <close> = scratch.folder()
    for _, tool in ipairs { "sh", "df", "getconf" } do
      os.execute(("mkdir -p %s/bin && ln -s $(command -v %s) %s/bin/"):format(folder.path, tool,
                                                                           folder.path))
    end
    local code, output = run({ set = { PATH = folder.path .. "/bin" } }, folder)
    assert.are.equal(4, code)
    assert.is_truthy(("\n" .. output):find("\nbad +mpi +mpirun was not found; install"), output)
    assert.is_truthy(("\n" .. output):find("\nbad +two_ranks "), output)
  end)
end)
