-- Errors at the top of a command, on one rank and on several: who prints what, and the exit code.

local launch = require "marea.launch"
local scratch = dofile "spec/support/scratch.lua"

-- Runs a script on so many ranks (nil: without mpirun).
local function run(ranks, text, ...)
  local folder <close> = scratch.folder()
  local path = folder.path .. "/script.lua"
  scratch.write(path, text)
  local code, output, errors = launch.run({ ranks = ranks, time_limit = 30 }, { path, ... })
  return code, errors:gsub(folder.path .. "/", ""), output
end

describe("an error at the top", function()
  it("is one line and code 1 in one process", function()
    local code, errors, output = run(nil, 'error "low tide"')
    assert.are.equal(1, code)
    assert.are.equal("marea: script.lua:1: low tide\n", errors)
    assert.are.equal("", output)
  end)

  it("is printed once when all ranks fail alike", function()
    for _, ranks in ipairs { 1, 2, 3 } do
      local code, errors = run(ranks, 'error "low tide"')
      assert.are.equal(1, code, ranks)
      assert.are.equal("marea: script.lua:1: low tide\n", errors, ranks)
    end
  end)

  it("is printed by its rank when the others wait for it", function()
    local code, errors = run(2, [[
      local world = require "marea.world".get()
      if world:rank() == 1 then error "low tide" end
      world:barrier()]])
    assert.are.equal(1, code)
    assert.are.equal("marea: rank 1: script.lua:2: low tide\n", errors)
  end)

  it("is printed by each rank when they fail differently", function()
    local code, errors = run(2, [[
      local rank = require "marea.world".get():rank()
      error("tide " .. rank)]])
    assert.are.equal(1, code)
    assert.is_truthy(errors:find("marea: rank 0: script.lua:2: tide 0\n", 1, true), errors)
    assert.is_truthy(errors:find("marea: rank 1: script.lua:2: tide 1\n", 1, true), errors)
    assert.are.equal(2, select(2, errors:gsub("\n", "")), errors)
  end)

  it("keeps the code of a fault", function()
    local text = 'require "marea.fault".raise(5, "window %d", 3)'
    for _, ranks in ipairs { false, 2 } do
      local code, errors = run(ranks or nil, text)
      assert.are.equal(5, code)
      assert.are.equal("marea: script.lua:1: window 3\n", errors)
    end
  end)

  it("ends a rank that finished while another failed", function()
    local code, errors = run(2, [[
      if require "marea.world".get():rank() == 0 then error "low tide" end]])
    assert.are.equal(1, code)
    assert.are.equal("marea: rank 0: script.lua:1: low tide\n", errors)
  end)

  it("shows where it came from when asked", function()
    local code, errors = run(nil, 'error "low tide"', "--trace")
    assert.are.equal(1, code)
    assert.is_truthy(errors:find("stack traceback:\n", 1, true))
  end)
end)
