-- A full disk: a small file system in memory, where this user may mount one.

local checkpoint = require "marea.checkpoint"
local core = require "marea.core"
local saves = require "marea.saves"
local scratch = dofile "spec/support/scratch.lua"
local tiny = dofile "spec/support/tiny.lua"

-- A folder with room for so many KiB; nil where mounting is not allowed.
local function small_disk(folder, kib)
  local path = folder .. "/disk"
  core.file.make_folder(path)
  local code = scratch.shell(("mount -t tmpfs -o size=%dk tmpfs '%s'"):format(kib, path))
  if code ~= 0 then return nil end
  return setmetatable({ path = path }, {
    __close = function() scratch.shell(("umount '%s'"):format(path)) end,
  })
end

local function fill(path, kib)
  scratch.shell(("head -c %dk /dev/zero > '%s'"):format(kib, path))
end

local function count(text, part)
  return select(2, text:gsub(part:gsub("%p", "%%%0"), ""))
end

describe("training on a disk that fills up", function()
  for _, ranks in ipairs { 1, 2 } do
    it(("ends with code 1, one message and the older checkpoint, on %d ranks"):format(ranks),
       function()
      local folder <close> = scratch.folder()
      local disk <close> = small_disk(folder.path, 512)
      if not disk then pending("this user may not mount") end
      local world = ranks > 1 and ranks or nil
      tiny.must_train(disk.path, world, "x", "--until", "2")
      local run = disk.path .. "/x"
      fill(disk.path .. "/ballast", 1024)
      local code, _, errors = tiny.train(disk.path, world, "x", "--resume", "latest")
      assert.are.equal(1, code)
      assert.are.equal(1, count(errors, "No space left on device"), errors)
      os.remove(disk.path .. "/ballast")
      local latest = saves.latest(run, saves.id_of(run))
      assert.are.equal(2, checkpoint.verify(latest).update)
      for _, name in ipairs(core.file.list(run .. "/checkpoints")) do
        assert.are.equal("step-000002", name)
      end
      tiny.must_train(disk.path, world, "x", "--resume", "latest", "--continuous")
      tiny.must_train(folder.path, world, "once", "--continuous")
      assert.are.equal(0, (tiny.compare(folder.path, "once", run)))
    end)
  end

  it("has no room for a first run, and leaves no checkpoint", function()
    local folder <close> = scratch.folder()
    local disk <close> = small_disk(folder.path, 64)
    if not disk then pending("this user may not mount") end
    local code, _, errors = tiny.train(disk.path, 2, "x", "width=64")
    assert.are.equal(1, code)
    assert.are.equal(1, count(errors, "No space left on device"), errors)
    assert.are.equal(0, #saves.list(disk.path .. "/x"))
  end)
end)
