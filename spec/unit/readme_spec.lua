-- What the README shows is what lies in the repository.

local core = require "marea.core"
local launch = require "marea.launch"
local main = require "marea.cli.main"

local root = launch.root()
local text = core.file.read(root .. "/README.md")

local function fenced(language)
  local blocks = {}
  for block in text:gmatch("```" .. language .. "\n(.-)```") do blocks[#blocks + 1] = block end
  return blocks
end

describe("the README", function()
  it("shows the minimum recipe as it is", function()
    local recipe = core.file.read(root .. "/recipes/minimum.lua")
    local body = recipe:sub((recipe:find("local marea", 1, true)))
    assert.equal(body, fenced("lua")[1])
  end)

  it("names commands that exist, and all of them", function()
    local listed = {}
    for name in text:gmatch("\n| `([%l-]+)") do listed[name] = true end
    listed.test = text:find("`demo`, `test`", 1, true) ~= nil
    for _, row in ipairs(main.commands) do
      assert.is_true(listed[row[1]] or false, row[1] .. " is not in the table of commands")
      listed[row[1]] = nil
    end
    assert.is_nil(next(listed))
  end)

  it("lists commands that have a module", function()
    for _, row in ipairs(main.commands) do
      assert.equal(row[1], main.module(row[1]).name)
    end
  end)

  it("names files and folders that exist", function()
    local count = 0
    for path in text:gmatch("`([%w_]+/[%w_./-]+)`") do
      if not path:find("^outputs/") and not path:find("^build/") and not path:find("mine") then
        assert.is_true(core.file.exists(root .. "/" .. path), path)
        count = count + 1
      end
    end
    assert.is_true(count > 5)
  end)

  it("gives commands whose words are understood", function()
    local arguments = require "marea.cli.arguments"
    for _, block in ipairs(fenced("sh")) do
      for line in block:gmatch("[^\n]+") do
        local command = line:gsub("%s+#.*$", "")
        local words = {}
        for word in command:gmatch("%S+") do words[#words + 1] = word end
        if words[1] == "./marea" then
          if words[2] == "launch" then table.move(words, 5, #words + 3, 2) end
          local parsed = arguments.parse(main.module(words[2]),
                                         table.move(words, 3, #words, 1, {}))
          assert.is_table(parsed, line)
        end
      end
    end
  end)
end)
