-- `marea test` itself, on made-up specs that pass, fail, skip, die and disagree.

local launch = require "marea.launch"
local scratch = dofile "spec/support/scratch.lua"

local header = [[
local rank = tonumber(os.getenv "OMPI_COMM_WORLD_RANK")
local size = tonumber(os.getenv "OMPI_COMM_WORLD_SIZE")
]]

-- Runs made-up spec files: {["spec/world/a_spec.lua"] = text, ...}.
local function run(files, ...)
  local folder <close> = scratch.folder()
  for name, text in pairs(files) do scratch.write(folder.path .. "/" .. name, header .. text) end
  local words = { "test", ... }
  words[#words + 1] = folder.path
  local code, output, errors = launch.run({ time_limit = 60 }, words)
  return code, output:gsub(folder.path .. "/", ""), errors
end

local function closing(output) return output:match("([^\n]*)\n$") end

local function shows(output, text)
  assert.is_truthy(output:find(text, 1, true), ("no %q in:\n%s"):format(text, output))
end

describe("marea test", function()
  it("counts a test of several worlds once", function()
    local code, output = run({
      ["spec/world/a_spec.lua"] = 'it("agrees", function() end) it("too", function() end)',
      ["spec/unit/b_spec.lua"] = 'it("is alone", function() assert.is_nil(size) end)',
      ["spec/program/c_spec.lua"] = 'it("is alone too", function() assert.is_nil(size) end)',
    }, "--ranks", "1,2,3")
    assert.are.equal("4 passed, 0 failed, 0 skipped", closing(output))
    assert.are.equal(0, code)
  end)

  it("fails a test that fails on one rank of one world, and says where", function()
    local code, output = run({ ["spec/world/a_spec.lua"] = [[
      describe("tide", function()
        it("turns", function() assert.is_false(size == 2 and rank == 1) end)
        it("comes", function() end)
      end)]] }, "--ranks", "1,2")
    assert.are.equal("1 passed, 1 failed, 0 skipped", closing(output))
    assert.are.equal(3, code)
    shows(output, "FAILED spec/world/a_spec.lua: tide turns\n  on 2 ranks, rank 1\n" ..
                  "    spec/world/a_spec.lua:4: ")
  end)

  it("skips a test only if it is skipped everywhere", function()
    local code, output = run({ ["spec/world/a_spec.lua"] = [[
      it("needs two", function() if size == 1 then pending("two ranks") end end)
      it("never runs", function() pending("later") end)]] }, "--ranks", "1,2")
    assert.are.equal("1 passed, 0 failed, 1 skipped", closing(output))
    assert.are.equal(0, code)
  end)

  it("is not good when nothing ran", function()
    local code, output = run { ["spec/unit/a_spec.lua"] = 'pending("all of it")' }
    assert.are.equal("0 passed, 0 failed, 1 skipped", closing(output))
    assert.are.equal(3, code)
  end)

  it("fails a test that did not run on every rank", function()
    local code, output = run({ ["spec/world/a_spec.lua"] = [[
      it("is everywhere", function() end)
      if rank == 0 then it("is on one", function() end) end]] }, "--ranks", "2")
    assert.are.equal("1 passed, 1 failed, 0 skipped", closing(output))
    assert.are.equal(3, code)
    shows(output, "a_spec.lua: is on one\n  on 2 ranks, rank 1\n")
  end)

  it("fails for a worker that dies, and names the test", function()
    local code, output = run({ ["spec/world/a_spec.lua"] = [[
      it("lives", function() end)
      it("dies", function()
        if size == 2 and rank == 1 then os.execute("kill -9 $PPID") end
        if size == 2 then os.execute("sleep 20") end
      end)
      it("comes after", function() end)]] }, "--ranks", "1,2")
    assert.are.equal("1 passed, 3 failed, 0 skipped", closing(output))
    assert.are.equal(3, code)
    shows(output, "this worker ended during 'dies', and the program ended with exit code 137")
    shows(output, "FAILED spec/world/a_spec.lua: comes after\n")
  end)

  it("fails for a worker that ends early with 0", function()
    local code, output = run {
      ["spec/unit/a_spec.lua"] = 'it("leaves", function() os.exit(0) end)',
    }
    assert.are.equal("0 passed, 2 failed, 0 skipped", closing(output))
    assert.are.equal(3, code)
  end)

  it("fails when the time limit ends a run", function()
    local code, output = run({
      ["spec/unit/a_spec.lua"] = 'it("waits", function() os.execute("sleep 20") end)',
    }, "--time-limit", "1")
    assert.are.equal("0 passed, 2 failed, 0 skipped", closing(output))
    assert.are.equal(3, code)
    shows(output, "the program was ended at the time limit")
  end)

  it("fails for files that cannot be loaded, raise outside tests or hold no test", function()
    local code, output = run {
      ["spec/unit/a_spec.lua"] = "it(",
      ["spec/unit/b_spec.lua"] = 'error "ebb"',
      ["spec/unit/c_spec.lua"] = "local x",
      ["spec/unit/d_spec.lua"] = [[describe("d", function()
        setup(function() error("ground") end)
        it("does not run", function() end)
      end)]],
      ["spec/unit/e_spec.lua"] = 'it("runs", function() end)',
    }
    assert.are.equal("1 passed, 4 failed, 0 skipped", closing(output))
    assert.are.equal(3, code)
    shows(output, "FAILED spec/unit/a_spec.lua: (file)")
    shows(output, "ebb")
    shows(output, "FAILED spec/unit/c_spec.lua: (the file)\n  on one process\n    it holds no test")
    shows(output, "FAILED spec/unit/d_spec.lua: d ")
  end)

  it("counts tests of one name apart", function()
    local code, output = run { ["spec/unit/a_spec.lua"] = [[
      it("same", function() end) it("same", function() error("low") end)]] }
    assert.are.equal("1 passed, 1 failed, 0 skipped", closing(output))
    assert.are.equal(3, code)
    shows(output, "FAILED spec/unit/a_spec.lua: same (2)")
  end)

  it("runs only tests with the filter's text in their full names", function()
    local files = { ["spec/unit/a_spec.lua"] = [[
      describe("12/36", function() it("is 2.5", function() end) it("is 2", function() end) end)
      it("is 2.5 elsewhere", function() error("must not run") end)]] }
    local code, output = run(files, "--filter", "12/36 is 2.5")
    assert.are.equal("1 passed, 0 failed, 0 skipped", closing(output))
    assert.are.equal(0, code)
    local none, nothing, errors = run(files, "--filter", "no such text")
    assert.are.equal(2, none)
    assert.are.equal("", nothing)
    shows(errors, "no spec matches 'no such text'")
  end)

  it("refuses paths without specs", function()
    local code, _, errors = launch.run({}, { "test", "no/such/folder" })
    assert.are.equal(2, code)
    shows(errors, "no file or folder 'no/such/folder'")
    local folder <close> = scratch.folder()
    code, _, errors = launch.run({}, { "test", folder.path })
    assert.are.equal(2, code)
    shows(errors, "no spec file under " .. folder.path)
  end)

  it("keeps specs apart: what one file loads or sets, the next does not see", function()
    local code, output = run {
      ["spec/unit/a_spec.lua"] = [[it("sets", function()
        _G.moon = 1
        package.loaded["moon"] = 1
      end)]],
      ["spec/unit/b_spec.lua"] = [[it("sees nothing", function()
        assert.is_nil(rawget(_G, "moon"))
        assert.is_nil(package.loaded["moon"])
      end)]],
    }
    assert.are.equal("2 passed, 0 failed, 0 skipped", closing(output))
    assert.are.equal(0, code)
  end)
end)
