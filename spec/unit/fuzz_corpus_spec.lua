-- What the fuzzers found once stays mended: their inputs, read again without them.

local core = require "marea.core"
local fault = require "marea.fault"
local launch = require "marea.launch"
local readers = require "spec.fuzz.readers"
local scratch = dofile "spec/support/scratch.lua"

-- Every input of a reader: how many there are, and how many were not refused.
local function read_all(name)
  local folder <close> = scratch.folder()
  local read, root = readers[name](folder.path), launch.root() .. "/spec/fuzz/corpus/" .. name
  local count, accepted = 0, 0
  for _, file in ipairs(core.file.list(root)) do
    local good, raised = xpcall(read, function(problem)
      return fault.is(problem) and problem or debug.traceback(tostring(problem), 2)
    end, core.file.read(root .. "/" .. file))
    if not good and not fault.is(raised) then error(file .. ": " .. raised, 0) end
    count, accepted = count + 1, accepted + (good and 1 or 0)
  end
  return count, accepted
end

describe("the readers of", function()
  for _, name in ipairs { "jsonl", "plan", "checkpoint" } do
    it(name .. " refuse what they do not read", function()
      local count, accepted = read_all(name)
      assert.is_true(count >= 20 and accepted < count, count .. " " .. accepted)
    end)
  end

  it("tensor files refuse what they do not read", function()
    local root = launch.root() .. "/spec/fuzz/corpus/tensors"
    for _, file in ipairs(core.file.list(root)) do
      for _, open in ipairs { core.safetensors.open, core.corpus_open } do
        local good, opened = pcall(open, root .. "/" .. file)
        if good then opened:close() else assert.is_true(fault.is(opened), tostring(opened)) end
      end
    end
  end)
end)
