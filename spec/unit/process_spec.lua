local core = require "marea.core"
local scratch = dofile "spec/support/scratch.lua"

local function shell(script, options)
  local all = { arguments = { "sh", "-c", script } }
  for key, value in pairs(options or {}) do all[key] = value end
  return core.process.start(all)
end

describe("a child process", function()
  it("ends with its exit code", function()
    local process <close> = shell("exit 3")
    assert.are.same({ "exit", 3 }, { process:wait() })
    assert.is_true(process:ended())
  end)

  it("ends with the signal that killed it", function()
    local process <close> = shell("kill -9 $$")
    assert.are.same({ "signal", 9 }, { process:wait() })
  end)

  it("is ended at the time limit, with what it started", function()
    local folder <close> = scratch.folder()
    local late = folder.path .. "/late"
    local process <close> = shell(("sleep 1; touch %s"):format(late), { input = "/dev/null" })
    local began = core.seconds()
    assert.are.same({ "limit", 0 }, { process:wait(0.2) })
    assert.is_true(core.seconds() - began < 0.9)
    assert(os.execute("sleep 1.2"))
    assert.is_nil(scratch.read(late))
  end)

  it("is killed at the time limit when it does not listen", function()
    local process <close> = shell("trap '' TERM; while :; do sleep 0.1; done",
                                  { input = "/dev/null" })
    local began = core.seconds()
    assert.are.same({ "limit", 0 }, { process:wait(0.2) })
    assert.is_true(core.seconds() - began < 8)
  end)

  it("is told from one that is no more", function()
    local process <close> = shell("read line", { input = "/dev/zero" })
    assert.is_true(core.process.is_running(process:id()))
    process:signal(9)
    process:wait()
    assert.is_false(core.process.is_running(process:id()))
    assert.is_true(core.process.is_running(1)) -- somebody else's, perhaps
    assert.has_error(function() core.process.is_running(0) end)
  end)

  it("reads and writes the files that it was given", function()
    local folder <close> = scratch.folder()
    local from, out, err = folder.path .. "/in", folder.path .. "/out", folder.path .. "/err"
    scratch.write(from, "tide\n")
    local process <close> = shell("cat; echo low >&2", { input = from, output = out, errors = err })
    assert.are.same({ "exit", 0 }, { process:wait() })
    assert.are.equal("tide\n", scratch.read(out))
    assert.are.equal("low\n", scratch.read(err))
    local both <close> = shell("echo 1; echo 2 >&2; echo 3", { output = out, errors = out })
    both:wait()
    assert.are.equal("1\n2\n3\n", scratch.read(out))
  end)

  it("gets the variables that are set, and not those that are taken out", function()
    local folder <close> = scratch.folder()
    local out = folder.path .. "/out"
    local process <close> = shell("echo \"$MOON\"; env | grep -c '^HOM'; echo $PATH | wc -l",
      { output = out, set = { MOON = "a b" }, unset = { "HOM" } })
    process:wait()
    assert.are.equal("a b\n0\n1\n", (scratch.read(out):gsub(" +(%d)", "%1")))
  end)

  it("gets a first request to stop as SIGUSR1, the next as SIGTERM, where it is gentle", function()
    local folder <close> = scratch.folder()
    local out = folder.path .. "/out"
    -- The parent is asked by its child, while it waits.
    local process <close> = shell([[
      trap 'echo gentle; kill -TERM $PPID' USR1
      trap 'echo ended; exit 9' TERM INT
      sleep 0.3; kill -INT $PPID
      while :; do sleep 0.05; done]], { output = out, input = "/dev/null", gentle = true })
    assert.are.same({ "exit", 9, 15 }, { process:wait(10) })
    assert.are.equal("gentle\nended\n", scratch.read(out))
  end)

  it("is killed when nobody holds it any more", function()
    local folder <close> = scratch.folder()
    local late = folder.path .. "/late"
    do
      local _ <close> = shell(("sleep 1; touch %s"):format(late), { input = "/dev/null" })
    end
    assert(os.execute("sleep 1.3"))
    assert.is_nil(scratch.read(late))
  end)

  it("cannot be started when there is no such program", function()
    local good, problem = pcall(core.process.start, { arguments = { "no-such-program" } })
    assert.is_false(good)
    assert.are.equal(4, problem.code)
    assert.is_truthy(problem.message:find("cannot start no-such-program: No such file", 1, true))
  end)

  it("refuses wrong arguments with a message", function()
    for _, case in ipairs {
      { {}, "needs arguments" }, { { arguments = {} }, "needs arguments" },
      { { arguments = { "sh", 1 } }, "item 2 is a number" },
      { { arguments = { "sh" }, stdin = "x" }, "no option 'stdin'" },
      { { arguments = { "sh" }, set = { A = 1 } }, "table of strings" },
    } do
      local good, problem = pcall(core.process.start, case[1])
      assert.is_false(good)
      assert.is_truthy(tostring(problem):find(case[2], 1, true), tostring(problem))
    end
  end)
end)
