-- The peer of a bench: how it is connected, and what is left when it ends.

local scratch = dofile "spec/support/scratch.lua"
local torch = require "marea.bench.torch"

-- A peer that a shell script plays instead of PyTorch.
local function start(folder, script)
  local path = folder .. "/interpreter"
  scratch.write(path, "#!/bin/sh\n" .. script)
  assert(os.execute("chmod +x " .. path))
  return torch.operations(path, { "scale" }, 4)
end

describe("a bench's peer", function()
  it("is connected by files that have no names any more", function()
    if not io.open("/proc/self/fd") then pending "no /proc here" end
    local folder <close> = scratch.folder()
    local peer <close> = start(folder.path, [[
      echo '{"version":"7"}'
      while read count; do
        printf '{"ns":{"%s":1,"%s":2}}\n' "$(readlink /proc/$$/fd/1)" "$(readlink /proc/$$/fd/2)"
      done]])
    assert.equal("7", peer.version)
    local found = 0
    for path in pairs(peer:nanoseconds(1)) do
      found = found + 1
      assert.is_nil(io.open((path:gsub(" %(deleted%)$", ""))), path)
    end
    assert.equal(2, found)
  end)

  it("that ends is named with its last words, code 4", function()
    local folder <close> = scratch.folder()
    local good, problem = pcall(start, folder.path, "echo first >&2; echo no luck >&2; exit 1")
    assert.is_false(good)
    assert.equal(4, problem.code)
    assert.is_truthy(tostring(problem):find("PyTorch ended: no luck", 1, true))
  end)
end)
