local core = require "marea.core"
local fault = require "marea.fault"
local scratch = dofile "spec/support/scratch.lua"

local file = core.file

describe("a staged folder", function()
  local folder, root

  before_each(function()
    folder = scratch.folder()
    root = folder.path .. "/"
  end)

  after_each(function()
    file.fail_at(0)
    getmetatable(folder).__close(folder)
  end)

  -- Two files that belong together, one in a folder inside.
  local function put(name, value)
    local staging <close> = file.begin_folder(root .. name)
    file.write(staging:path() .. "/a", value)
    file.make_folder(staging:path() .. "/inner")
    file.write(staging:path() .. "/inner/b", value)
    staging:commit()
  end

  -- The value that both files hold; nil when there is no folder.
  local function get(name)
    if not file.exists(root .. name) then return nil end
    assert.same({ "a", "inner" }, file.list(root .. name))
    local a, b = file.read(root .. name .. "/a"), file.read(root .. name .. "/inner/b")
    assert.equal(a, b)
    return a
  end

  it("appears with the commit, with its parents", function()
    local staging = file.begin_folder(root .. "out/step/")
    assert.truthy(staging:path():find(root .. "out/.step.partial-", 1, true))
    assert.is_false(file.exists(root .. "out/step"))
    staging:discard()
    assert.same({}, file.list(root .. "out"))
    put("out/step", "1")
    assert.equal("1", get("out/step"))
    assert.same({ "step" }, file.list(root .. "out"))
  end)

  it("replaces the folder of its name", function()
    put("step", "1")
    put("step", "2")
    assert.equal("2", get("step"))
    assert.same({ "step" }, file.list(root))
  end)

  it("is gone when its variable ends without a commit, on an error too", function()
    pcall(function()
      local staging <close> = file.begin_folder(root .. "step")
      file.write(staging:path() .. "/a", "1")
      error("stop")
    end)
    assert.same({}, file.list(root))
  end)

  it("ends with its commit", function()
    local staging = file.begin_folder(root .. "step")
    staging:commit()
    assert.has_error(function() staging:commit() end)
    assert.has_error(function() staging:path() end)
    staging:discard()
    assert.is_true(file.is_folder(root .. "step"))
  end)

  it("does not take the place of a file", function()
    file.write(root .. "step", "file")
    assert.has_error(function() put("step", "1") end)
    assert.equal("file", file.read(root .. "step"))
    assert.same({ "step" }, file.list(root))
  end)

  it("goes out of the way of another of the same name", function()
    local first <close> = file.begin_folder(root .. "step")
    local second <close> = file.begin_folder(root .. "step")
    assert.not_equal(first:path(), second:path())
  end)

  -- Fails every system call once; whatever stands under the name is whole.
  local function fail_everywhere(prepare, name, old, new)
    for n = 1, 1000 do
      prepare()
      file.fail_at(n)
      local ok, raised = pcall(put, name, new)
      file.fail_at(0)
      local found = get(name)
      assert.truthy(found == new or not ok and found == old, tostring(found))
      assert.same(found and { name } or {}, file.list(root))
      if ok then return n - 1 end
      assert.truthy(fault.of(raised):find("disk full", 1, true), fault.of(raised))
    end
    error("a folder failed 1000 times")
  end

  it("is there whole or not at all, wherever the disk is full", function()
    local failed = fail_everywhere(function()
      if file.exists(root .. "step") then file.remove_folder(root, "step") end
    end, "step", nil, "1")
    assert.is_true(failed > 30)
  end)

  it("leaves the old folder or the new one whole, wherever the disk is full", function()
    local failed = fail_everywhere(function() put("step", "1") end, "step", "1", "2")
    assert.is_true(failed > 40)
  end)
end)
