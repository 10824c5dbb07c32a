local core = require "marea.core"
local fault = require "marea.fault"
local scratch = dofile "spec/support/scratch.lua"

local file = core.file

-- The message and exit code that a call raises.
local function refusal(call, ...)
  local ok, raised = pcall(call, ...)
  assert.is_false(ok)
  return fault.of(raised)
end

local function assert_refused(code, expected, call, ...)
  local message, found = refusal(call, ...)
  assert.truthy(message:find(expected, 1, true), message)
  assert.equal(code, found)
end

-- Runs `attempt` with the first system call failing, then the second, ... until it succeeds;
-- `check` sees each failed state. Returns how often it failed.
local function fail_everywhere(prepare, attempt, check)
  for n = 1, 1000 do
    prepare()
    file.fail_at(n)
    local ok, raised = pcall(attempt)
    file.fail_at(0)
    check(ok)
    if ok then return n - 1 end
    local message, code = fault.of(raised)
    assert.truthy(message:find("disk full", 1, true), message)
    assert.equal(1, code)
  end
  error("an operation of the file layer failed 1000 times")
end

describe("files", function()
  local folder, root

  before_each(function()
    folder = scratch.folder()
    root = folder.path .. "/"
  end)

  after_each(function()
    file.fail_at(0)
    getmetatable(folder).__close(folder)
  end)

  describe("reading and writing", function()
    it("give back every byte", function()
      local bytes = {}
      for i = 0, 255 do bytes[#bytes + 1] = string.char(i) end
      local text = table.concat(bytes):rep(1000)
      file.write(root .. "a", text)
      assert.is_true(file.read(root .. "a") == text)
      file.write(root .. "a", "")
      assert.equal("", file.read(root .. "a"))
    end)

    it("read files that do not tell their length", function()
      assert.truthy(file.read("/proc/self/status"):find("Name:", 1, true))
    end)

    it("name the path and the reason", function()
      assert_refused(1, root .. "none: No such file", file.read, root .. "none")
      assert_refused(1, root .. "no/a: No such file", file.write, root .. "no/a", "x")
      assert_refused(1, root .. " is no regular file", file.read, root)
      assert_refused(1, "expected a path, got no value", file.read)
      assert_refused(1, "without NUL", file.read, root .. "a\0b")
    end)

    it("are no pipes, folders or devices, and nothing waits for them", function()
      assert(os.execute(("mkfifo '%spipe'"):format(root)))
      for _, path in ipairs { root .. "pipe", "/dev/zero", root } do
        local says = path .. " is no regular file"
        assert_refused(1, says, file.read, path)
        assert_refused(1, says, file.sha256_of, path)
        assert_refused(1, says, core.safetensors.open, path)
        assert.is_nil(file.bytes(path))
      end
      assert_refused(1, root .. "pipe is no regular file", file.append, root .. "pipe")
      assert.is_nil(file.bytes(root .. "none"))
      file.write(root .. "a", "four")
      assert.equal(4, file.bytes(root .. "a"))
    end)

    it("blame the line that asked", function()
      local line = debug.getinfo(1, "l").currentline + 1
      local message = refusal(function() file.read(root .. "none") end)
      assert.truthy(message:find("file_spec.lua:" .. line .. ": ", 1, true), message)
    end)

    it("leave the old content or the new one, and nothing else, wherever the disk is full",
       function()
      local failed = fail_everywhere(
        function() file.write(root .. "a", "old") end,
        function() file.write(root .. "a", "the new content") end,
        function(ok)
          local text = file.read(root .. "a")
          assert.truthy(text == "the new content" or not ok and text == "old", text)
          assert.same({ "a" }, file.list(root))
        end)
      assert.is_true(failed >= 5)
    end)

    it("write nothing when there is no memory", function()
      core.memory_fail_at(1)
      local ok = pcall(file.write, root .. "a", "x")
      core.memory_fail_at(0)
      assert.is_false(ok)
      assert.same({}, file.list(root))
    end)
  end)

  describe("a really full disk", function()
    it("keeps the old content and leaves nothing behind", function()
      file.make_folder(root .. "small")
      local mount = ("mount -t tmpfs -o size=64k none '%ssmall' 2>/dev/null"):format(root)
      if not os.execute(mount) then pending("mounting needs root") return end
      finally(function() os.execute(("umount '%ssmall'"):format(root)) end)
      local path = root .. "small/a"
      file.write(path, "old")
      assert_refused(1, "disk full", file.write, path, ("x"):rep(1 << 20))
      assert.equal("old", file.read(path))
      assert.same({ "a" }, file.list(root .. "small"))
      local lines = file.append(root .. "small/lines")
      lines:write("first")
      assert_refused(1, "disk full", lines.write, lines, ("x"):rep(1 << 20))
      lines:write("second")
      assert.equal("first\nsecond\n", file.read(root .. "small/lines"))
      lines:close()
    end)
  end)

  describe("an appender", function()
    it("writes lines, each at once", function()
      do
        local lines <close> = file.append(root .. "log")
        lines:write("one")
        assert.equal("one\n", file.read(root .. "log"))
        lines:write("")
        lines:sync()
      end
      local lines <close> = file.append(root .. "log")
      lines:write("three")
      assert.equal("one\n\nthree\n", file.read(root .. "log"))
    end)

    it("cuts off a line that was never finished", function()
      file.write(root .. "log", "whole\n" .. ("half"):rep(3000))
      file.append(root .. "log"):close()
      assert.equal("whole\n", file.read(root .. "log"))
      file.write(root .. "log", "half")
      file.append(root .. "log"):close()
      assert.equal("", file.read(root .. "log"))
    end)

    it("refuses newlines inside, and lines once closed", function()
      local lines = file.append(root .. "log")
      assert_refused(1, "holds a newline", lines.write, lines, "a\nb")
      lines:close()
      assert_refused(1, "this appender is closed", lines.write, lines, "a")
      assert.equal("", file.read(root .. "log"))
    end)

    it("leaves whole lines wherever the disk is full", function()
      fail_everywhere(
        function() file.write(root .. "log", "one\ntw") end,
        function()
          local lines <close> = file.append(root .. "log")
          lines:write("two")
        end,
        function(ok)
          local text = file.read(root .. "log")
          local fine = ok and text == "one\ntwo\n" or text == "one\n" or text == "one\ntw"
          assert.truthy(fine, text)
        end)
    end)

    it("reports a device that takes nothing", function()
      local lines <close> = file.append("/dev/full")
      assert_refused(1, "disk full", lines.write, lines, "a")
    end)
  end)

  describe("folders", function()
    it("are made with their parents, once or again", function()
      file.make_folder(root .. "a/b/c/")
      file.make_folder(root .. "a/b/c")
      assert.is_true(file.is_folder(root .. "a/b/c"))
      file.write(root .. "f", "")
      assert.is_false(file.is_folder(root .. "f"))
      assert.is_true(file.exists(root .. "f"))
      assert.is_false(file.exists(root .. "g"))
      assert_refused(1, "f", file.make_folder, root .. "f/g")
    end)

    it("are told from links", function()
      file.make_folder(root .. "a")
      os.execute(("ln -s a '%sgood'; ln -s none '%sbroken'"):format(root, root))
      assert.is_true(file.is_link(root .. "good") and file.is_folder(root .. "good"))
      assert.is_true(file.is_link(root .. "broken") and not file.exists(root .. "broken"))
      assert.is_false(file.is_link(root .. "a") or file.is_link(root .. "none"))
    end)

    it("are listed in the order of bytes", function()
      for _, name in ipairs { "b", "a", ".c", "B", "é" } do file.write(root .. name, "") end
      assert.same({ ".c", "B", "a", "b", "é" }, file.list(root))
    end)

    it("move, but never onto something", function()
      file.make_folder(root .. "a/inner")
      file.move(root .. "a", root .. "b")
      assert.same({ "b" }, file.list(root))
      file.make_folder(root .. "a")
      assert_refused(1, "File exists", file.move, root .. "b", root .. "a")
      assert.same({ "inner" }, file.list(root .. "b"))
      assert_refused(1, root .. "none", file.move, root .. "none", root .. "c")
    end)
  end)

  describe("remove_folder", function()
    before_each(function()
      file.make_folder(root .. "out/x/y")
      file.write(root .. "out/x/y/f", "")
      file.make_folder(root .. "safe")
      file.write(root .. "safe/kept", "kept")
      os.execute(("ln -s ../../safe '%sout/x/link'; ln -s ../safe '%sout/link'"):format(root, root))
    end)

    after_each(function() assert.equal("kept", file.read(root .. "safe/kept")) end)

    it("removes a tree, and links in it without following them", function()
      file.remove_folder(root .. "out", "x")
      assert.same({ "link" }, file.list(root .. "out"))
      file.remove_folder(root .. "out", "link")
      assert.same({}, file.list(root .. "out"))
    end)

    it("refuses to go through a link", function()
      assert_refused(1, "link", file.remove_folder, root .. "out", "link/kept")
    end)

    it("refuses names that do not lie below the root", function()
      for _, name in ipairs { "", ".", "..", "../safe", "x/../../safe", "/tmp", "x/", "x//y" } do
        assert_refused(1, "does not lie below", file.remove_folder, root .. "out", name)
      end
      assert.same({ "link", "x" }, file.list(root .. "out"))
    end)
  end)

  describe("a lock", function()
    it("keeps others out and says who holds it", function()
      local _ <close> = file.lock(root .. "run")
      local message, code = refusal(file.lock, root .. "run")
      assert.equal(4, code)
      assert.truthy(message:find("folder " .. root .. "run is in use by process %d+ on %S+$"),
                    message)
      file.lock(root .. "other"):close()
    end)

    it("is free again once closed, and leaves no file", function()
      do local _ <close> = file.lock(root .. "run") end
      file.lock(root .. "run"):close()
      assert.same({}, file.list(root))
    end)

    it("is asked for without being taken", function()
      assert.is_nil(file.lock_holder(root .. "run"))
      assert.same({}, file.list(root))
      do
        local _ <close> = file.lock(root .. "run")
        assert.truthy(file.lock_holder(root .. "run"):find("^process %d+ on %S+$"))
        assert.is_nil(file.lock_holder(root .. "other"))
      end
      assert.is_nil(file.lock_holder(root .. "run"))
      local dead = "process 999999999 on " .. core.process.host() .. "\n"
      for _, left in ipairs { dead, "process 1 on elsewhere\n", "" } do
        file.write(root .. ".run.lock", left)
        assert.is_nil(file.lock_holder(root .. "run"), left)
      end
      assert.same({ ".run.lock" }, file.list(root))
    end)

    it("of a process that was killed is free", function()
      file.write(root .. ".run.lock", "process 1 on elsewhere\n")
      local script = "exec 9>>.run.lock; flock 9; touch held; exec sleep 60"
      local holder <close> = core.process.start {
        arguments = { "sh", "-c", ("cd '%s'; %s"):format(root, script) } }
      while not file.exists(root .. "held") do os.execute("sleep 0.01") end
      assert_refused(4, "in use by process 1 on elsewhere", file.lock, root .. "run")
      assert.equal("process 1 on elsewhere", file.lock_holder(root .. "run"))
      holder:signal(9)
      assert.equal("signal", (holder:wait(10)))
      file.lock(root .. "run"):close()
      assert.same({ "held" }, file.list(root))
    end)
  end)

  describe("hashes", function()
    it("are SHA-256", function()
      assert.equal("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                   file.sha256(""))
      assert.equal("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
                   file.sha256("abc"))
      file.write(root .. "f", ("a"):rep(1000000))
      assert.equal("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
                   file.sha256_of(root .. "f"))
      assert_refused(1, "none", file.sha256_of, root .. "none")
    end)

    it("are of a part of a file where one is given", function()
      local text = ("0123456789"):rep(20000) -- more than one piece
      file.write(root .. "f", text)
      for _, part in ipairs { { 0, 0 }, { 0, 200000 }, { 3, 5 }, { 65536, 65536 }, { 1, 150000 },
                              { 199999, 1 }, { 200000, 0 } } do
        assert.equal(file.sha256(text:sub(part[1] + 1, part[1] + part[2])),
                     file.sha256_of(root .. "f", part[1], part[2]))
      end
      assert_refused(1, "ends 1 bytes too early", file.sha256_of, root .. "f", 100000, 100001)
      assert_refused(1, "begins at byte 0 or later", file.sha256_of, root .. "f", -1, 1)
      assert_refused(1, "begins at byte 0 or later", file.sha256_of, root .. "f", 0, -1)
    end)
  end)

  it("tell the time in UTC", function()
    assert.truthy(core.utc():find("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%dZ$"))
  end)
end)
