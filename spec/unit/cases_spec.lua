-- Every public case has specs of its own, named by its id, with a note of how it is prevented.

local core = require "marea.core"
local launch = require "marea.launch"

-- Those of kind sharding (B53, B54, B56, B57, B58, B59) wait for parallel modes.
local ids = [[B01 B02 B05 B08 B09 B11 B13 B14 B15 B17 B18 B19 B20 B22 B23 B25 B27 B31 B32 B33 B34
              B35 B36 B38 B39 B40 B41 B43 B44 B46 B48 B49 B51 B52]]

-- The lines of a folder's spec files.
local function lines_of(folder)
  local lines = {}
  for _, name in ipairs(core.file.list(folder)) do
    if name:find("_spec%.lua$") then
      for line in core.file.read(folder .. "/" .. name):gmatch("[^\n]*") do
        lines[#lines + 1] = line
      end
    end
  end
  return lines
end

describe("public cases", function()
  local root, said = launch.root() .. "/spec/cases", {}
  for _, folder in ipairs { root, root .. "/world" } do
    local lines = lines_of(folder)
    for i, line in ipairs(lines) do
      local id = line:match('^describe%("(B%d%d)')
      if id then
        local first = i
        while lines[first - 1]:find("^%-%-") do first = first - 1 end
        said[id] = (said[id] or "") .. table.concat(lines, " ", first, i - 1)
      end
    end
  end

  it("have specs named by id, all of them and no other", function()
    local wanted = {}
    for id in ids:gmatch("B%d%d") do
      wanted[id] = true
      assert.is_string(said[id], id .. " has no spec")
    end
    for id in pairs(said) do assert.is_true(wanted[id], id .. " is no public case") end
  end)

  it("say whether they are prevented by construction, by a refusal or by a check", function()
    for id in ids:gmatch("B%d%d") do
      local note = said[id] or ""
      assert.truthy(note:find("By construction") or note:find("By a refusal") or
                    note:find("By a check"), id)
    end
  end)
end)
