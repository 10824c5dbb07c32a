-- Ranks that disagree, stop, vanish or wait for each other: what the program prints, its exit
-- code, and that no rank is left behind.

local json = require "marea.json"
local launch = require "marea.launch"
local scratch = dofile "spec/support/scratch.lua"

local header = [[
local core = require "marea.core"
local world = core.world()
local rank, size = world:rank(), world:size()
local last = rank == size - 1
]]
local header_lines = 4

-- Runs a script on `ranks` ranks; its lines count from the end of the header in what is returned.
local function run(ranks, text, board)
  local folder <close> = scratch.folder()
  local path = folder.path .. "/x.lua"
  scratch.write(path, header .. text)
  local began = os.time()
  local code, output, errors, ending = launch.run(
    { ranks = ranks, threads = 1, time_limit = 40, set = { MAREA_BOARD = board } }, { path })
  assert.are.equal("exit", ending)
  assert.is_true(os.time() - began < 20, "it took longer than 20 seconds")
  errors = errors:gsub(folder.path:gsub("%p", "%%%0") .. "/x%.lua:(%d+)", function(line)
    return ("x:%d"):format(tonumber(line) - header_lines)
  end)
  return code, errors, output
end

local function shows(text, ...)
  for _, part in ipairs { ... } do
    assert.is_truthy(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
  end
end

for _, board in ipairs { "shared", "control" } do
  describe("over the " .. board .. " board, ranks", function()
    it("that disagree all say so and exit with 6", function()
      for _, ranks in ipairs { 2, 3 } do
        local code, errors = run(ranks, [[
          if last then world:barrier() else
          world:all_reduce(core.zeros { 4 }, "sum") end]], board)
        assert.are.equal(6, code)
        local who = ranks == 2 and "rank 0" or "ranks 0, 1"
        for rank = 0, ranks - 1 do
          shows(errors, ("rank %d: x:%d: ranks disagree at operation 1 of the world: %s "
            .. "all_reduce sum f32 x 4 at "):format(rank, rank == ranks - 1 and 1 or 2, who))
        end
        shows(errors, ("; rank %d barrier at x:1"):format(ranks - 1))
      end
    end)

    it("end with the code of the one that raised, whatever they wait in", function()
      local waits = { 'world:all_reduce_async(core.zeros { 4000000 }, "sum"):wait()',
                      "world:receive(core.zeros { 4 }, size - 1)", "world:split(0)" }
      for _, wait in ipairs(waits) do
        local code, errors = run(2, [[
          if last then error "ebb" end
          ]] .. wait, board)
        assert.are.equal(1, code)
        shows(errors, "rank 1: x:1: ebb\n")
        assert.is_nil(errors:find("rank 0: ", 1, true))
      end
    end)

    it("that all raise the same exit with its code", function()
      local code, errors = run(3, 'require("marea.fault").raise(5, "no water")', board)
      assert.are.equal(5, code)
      shows(errors, "x:1: no water\n")
    end)

    it("that end too early or too late are told apart from errors", function()
      local code, errors = run(3, 'if not last then world:all_reduce(core.zeros { 4 }, "sum") end',
                               board)
      assert.are.equal(6, code)
      -- whichever of the two leaves first says so; the other one then stops because of it
      assert.is_truthy(errors:find("rank [01]: x:1: rank 2 has finished while ranks 0, 1 wait " ..
                                   "for all_reduce sum f32 x 4 at x:1\n"), errors)
    end)

    it("complete what is pending when they end", function()
      local code, errors, output = run(2, [[
        local t = core.ones { 100000 }
        local handle = world:all_reduce_async(t, "sum")
        local lost = world:all_reduce_async(core.ones { 3 }, "sum")
        print(handle:wait():get(100000), world:board())]], board)
      assert.are.equal("", errors)
      assert.are.equal(0, code)
      assert.are.equal(("2.0\t%s\n"):format(board):rep(2), output)
    end)
  end)
end

-- Whether a process runs whose command line has this text.
local function is_running(path)
  local pattern = path:gsub("^(.*/)(.)", "%1[%2]") -- does not match the shell that asks
  return scratch.shell(("pgrep -f '%s'"):format(pattern)) == 0
end

describe("ranks", function()
  it("are not left behind when one is killed", function()
    local folder <close> = scratch.folder()
    local path = folder.path .. "/killed.lua"
    scratch.write(path, header .. [[
      world:barrier()
      if last then os.execute("kill -9 $PPID") end
      world:all_reduce(core.zeros { 4 }, "sum")]])
    local code = launch.run({ ranks = 3, threads = 1, time_limit = 40 }, { path })
    assert.are.equal(6, code)
    local deadline = os.time() + 5
    while is_running(path) and os.time() < deadline do os.execute "sleep 0.1" end
    assert.is_false(is_running(path))
  end)

  it("notice one that ended without a word", function()
    local code, errors = run(2, [[
      if last then os.exit(0) end
      world:barrier()]])
    assert.is_true(code ~= 0)
    shows(errors, "rank 0: x:2: rank 1 is lost: process ")
  end)

  it("that wait for each other in a circle find it", function()
    local code, errors = run(3, [[
      if last then world:receive(core.zeros { 4 }, 0) end
      if rank == 0 then world:receive(core.zeros { 4 }, 2) end
      world:barrier()]])
    assert.are.equal(6, code)
    shows(errors, "ranks wait for each other: ", "rank 0 receive f32 x 4 from rank 2 at x:2",
          "rank 2 receive f32 x 4 from rank 0 at x:1")
  end)

  it("that wait on different groups in different orders find it", function()
    local code, errors = run(2, [[
      local group = world:split(0)
      if rank == 0 then world:barrier() group:barrier() end
      group:barrier() world:barrier()]])
    assert.are.equal(6, code)
    shows(errors, "ranks wait for each other: ", "rank 0 barrier at x:2", "rank 1 barrier at x:3")
  end)

  it("that finish while a message to them waits are named", function()
    local code, errors = run(2, "if rank == 0 then world:send(core.zeros { 4 }, 1) end")
    assert.are.equal(6, code)
    shows(errors, "rank 0: x:1: rank 1 has finished while rank 0 waits for send f32 x 4 to rank 1")
  end)

  it("cannot wait for a message of their own that was never sent", function()
    local code, errors = run(1, "world:receive(core.zeros { 4 }, 0)")
    assert.are.equal(6, code)
    shows(errors, "rank 0 waits for itself: receive f32 x 4 from rank 0 at x:1")
  end)

  it("may be slow", function()
    local code, errors = run(2, [[
      if last then os.execute "sleep 3" end
      world:barrier()]])
    assert.are.equal("", errors)
    assert.are.equal(0, code)
  end)

  it("on several hosts, where records travel, pass the specs of one host", function()
    local folder <close> = scratch.folder()
    local results = folder.path .. "/results"
    local code, _, errors = launch.run(
      { ranks = 3, threads = 1, time_limit = 100, set = { MAREA_BOARD = "control" } },
      { "test", "--worker", results, "--", "spec/world/comm_spec.lua",
        "spec/world/disagreement_spec.lua", "spec/world/group_spec.lua" })
    assert.are.equal("", errors)
    assert.are.equal(0, code)
    for rank = 0, 2 do
      local passed = 0
      for line in io.lines(("%s.%d"):format(results, rank)) do
        local entry = json.decode(line)
        assert.is_not.equal("error", entry.event)
        if entry.event == "end" then
          assert.are.equal("success", entry.status, entry.message)
          passed = passed + 1
        end
      end
      assert.is_true(passed > 20)
    end
  end)

  it("are one process, without MPI, unless there are several", function()
    local text = [[
      local maps = io.open("/proc/self/maps"):read("a")
      print(size, world:board(), maps:find("mca_pml") == nil)]]
    for _, ranks in ipairs { false, 1 } do
      local code, errors, output = run(ranks or nil, text)
      assert.are.equal("", errors)
      assert.are.equal(0, code)
      assert.are.equal("1\tone process\ttrue\n", output)
    end
    local _, _, output = run(2, text)
    assert.are.equal("2\tshared\tfalse\n2\tshared\tfalse\n", output)
  end)
end)
