-- Requests to stop a run: who can be asked, and which request counts.

local core = require "marea.core"
local stop_request = require "marea.stop_request"
local numeric = dofile "spec/support/numeric.lua"
local scratch = dofile "spec/support/scratch.lua"

-- A run's folder as training leaves it while it is under way.
local function begun(folder, outcome)
  local run = folder.path .. "/x"
  scratch.write(run .. "/run.json", ('{"id": "spec", "outcome": "%s"}'):format(outcome))
  return run
end

describe("a request to stop", function()
  it("is seen by the process that it names, once it is there, and its file goes", function()
    local folder <close> = scratch.folder()
    local run = begun(folder, "running")
    local lock <close> = core.file.lock(run)
    local is_asked = stop_request.watch(run)
    assert.is_false(is_asked())
    assert.equal(core.file.lock_holder(run), stop_request.ask(run))
    assert.same({ "run.json", "stop" }, core.file.list(run))
    assert.is_true(is_asked())
    assert.is_true(is_asked())
    assert.same({ "run.json" }, core.file.list(run))
    assert.is_not_nil(lock)
  end)

  it("that was meant for an earlier process stops nobody", function()
    local folder <close> = scratch.folder()
    local run = begun(folder, "running")
    local lock <close> = core.file.lock(run)
    stop_request.ask(run)
    local is_asked = stop_request.watch(run) -- a new start, of the same process id
    assert.is_false(is_asked())
    scratch.write(run .. "/stop", "process 1 on another\n")
    assert.is_false(is_asked())
    assert.is_not_nil(lock)
  end)

  it("is refused where nobody trains, with code 2, and leaves nothing", function()
    local folder <close> = scratch.folder()
    local message, code = numeric.refusal(function() stop_request.ask(folder.path .. "/nix") end)
    assert.same({ "there is no run " .. folder.path .. "/nix", 2 }, { message, code })
    local run = begun(folder, "running") -- killed: nobody holds the folder
    message, code = numeric.refusal(function() stop_request.ask(run) end)
    assert.same({ "nobody trains " .. run .. " now", 2 }, { message, code })
    begun(folder, "complete") -- held by another command
    local lock <close> = core.file.lock(run)
    assert.equal("nobody trains " .. run .. " now",
                 (numeric.refusal(function() stop_request.ask(run) end)))
    assert.same({ "run.json" }, core.file.list(run))
    assert.is_not_nil(lock)
  end)
end)
