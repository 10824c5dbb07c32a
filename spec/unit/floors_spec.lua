-- The house's rule: a floor includes only from floors that stand before it, and only the last one
-- knows Lua.

local floors = { "kernels", "base", "device", "tensor", "comm", "grad", "train", "store", "lua" }
local lua_headers = {
  ["lua.h"] = true, ["lauxlib.h"] = true, ["lualib.h"] = true, ["luaconf.h"] = true,
}
local height = {}
for i, name in ipairs(floors) do height[name] = i end

-- The floor of a source file; nil for engine/main.c, which stands on all of them.
local function floor_of(path)
  return path:match("^engine/([^/]+)/") or path:match("^(kernels)/")
end

-- What is wrong with the includes of one file: a list of messages.
local function breaches(path, text)
  local floor, found, number = floor_of(path), {}, 0
  for line in (text .. "\n"):gmatch("(.-)\n") do
    number = number + 1
    local own = line:match('^%s*#%s*include%s*"([^"]+)"')
    local system = line:match("^%s*#%s*include%s*<([^>]+)>")
    local target = own and own:match("^([^/]+)/")
    local function breach(format, ...)
      found[#found + 1] = ("%s:%d: "):format(path, number) .. format:format(...)
    end
    if own and (not target or not height[target]) then
      breach('"%s" does not begin with a floor', own)
    elseif own and floor and height[target] > height[floor] then
      breach("%s includes from %s, which stands above it", floor, target)
    elseif lua_headers[system] and floor and floor ~= "lua" then
      breach("only engine/lua includes Lua's headers, not %s", floor)
    end
  end
  return found
end

local function sources()
  local files = {}
  local command = "find engine kernels -name '*.[ch]' -o -name '*.cu' | sort"
  local listing <close> = assert(io.popen(command))
  for path in listing:lines() do files[#files + 1] = path end
  return files
end

describe("the floors of the house", function()
  it("include only from floors that stand before them", function()
    local all, files = {}, sources()
    assert.is_true(#files > 20)
    for _, path in ipairs(files) do
      local stream <close> = assert(io.open(path))
      table.move(breaches(path, stream:read("a")), 1, 1000, #all + 1, all)
    end
    assert.are.equal("", table.concat(all, "\n"))
  end)

  it("are all known", function()
    for _, path in ipairs(sources()) do
      if path ~= "engine/main.c" then
        assert.is_truthy(height[floor_of(path)], path .. " is on no known floor")
      end
    end
  end)

  it("would be refused when one includes from above, or Lua", function()
    local cases = {
      { "kernels/cpu/add.c", '#include "base/status.h"' },
      { "engine/base/file.c", '#include "tensor/tensor.h"' },
      { "engine/comm/group.c", '#  include "grad/tape.h"' },
      { "engine/store/corpus.c", '#include "lua/binding.h"' },
      { "engine/train/unit.c", "#include <lua.h>" },
      { "engine/grad/op.c", "#include <lauxlib.h>" },
      { "engine/grad/op.c", '#include "op.h"' },
    }
    for _, case in ipairs(cases) do
      assert.are.equal(1, #breaches(case[1], case[2]), case[1] .. " with " .. case[2])
    end
    local good = { { "engine/lua/tensor.c", '#include <lua.h>\n#include "tensor/tensor.h"' },
                   { "engine/grad/op.c", '#include <stdint.h>\n#include "kernels/kernels.h"' } }
    for _, case in ipairs(good) do assert.are.same({}, breaches(case[1], case[2])) end
  end)
end)
