-- The frame of the command line: what it prints, what it refuses, and its exit codes.

local launch = require "marea.launch"
local main = require "marea.cli.main"
local scratch = require "spec.support.scratch"

local function run(...) return launch.run({ time_limit = 60 }, { ... }) end

describe("the command line", function()
  it("lists every command with what it does", function()
    local code, output, errors = run("--help")
    assert.are.equal(0, code)
    assert.are.equal("", errors)
    for _, row in ipairs(main.commands) do
      assert.is_truthy(output:find("\n   " .. row[1]:gsub("%-", "%%-") .. " +%a[^\n]+"), row[1])
    end
  end)

  it("has a module behind every command, with a summary and an example", function()
    for _, row in ipairs(main.commands) do
      local command = main.module(row[1])
      assert.are.equal(row[1], command.name)
      assert.are.equal("string", type(command.summary))
      assert.is_truthy(command.example:find("^marea [%w%- ]*" .. row[1]:gsub("%-", "%%-")), row[1])
      assert.are.equal("function", type(command.run))
    end
  end)

  it("explains each command, whatever else is given", function()
    for _, row in ipairs(main.commands) do
      local code, output = run(row[1], "--help")
      assert.are.equal(0, code, row[1])
      assert.is_truthy(output:find("^Usage: marea " .. row[1]:gsub("%-", "%%-")), row[1])
      assert.is_truthy(output:find("\n%-%-json", 1) or output:find("--json", 1, true), row[1])
    end
  end)

  it("helps as a command as well", function()
    local _, overview = run("--help")
    assert.are.equal(overview, select(2, run("help")))
    local _, of_train = run("train", "--help")
    assert.are.equal(of_train, select(2, run("help", "train")))
    local code, _, errors = run("help", "trian")
    assert.are.equal(2, code)
    assert.is_truthy(errors:find("unknown command 'trian'; did you mean 'train'?", 1, true))
  end)

  it("says what is expected where a recipe's file is none", function()
    local folder <close> = scratch.folder()
    scratch.write(folder.path .. "/low/run.json", '{"name":"tide","recipe":"recipes/tide.lua"}')
    scratch.write(folder.path .. "/tide/run.json", '{"name":"tide","recipe":"recipes/tide.lua"}')
    for _, case in ipairs {
      { { "evaluate", "tide", "lr=1" }, "evaluate: expected a recipe's file, and tide is a run " ..
        "of recipes/tide.lua: marea evaluate recipes/tide.lua lr=1" },
      { { "parity", folder.path .. "/low" }, ("parity: expected a recipe's file, and %s/low is " ..
        "a run of recipes/tide.lua: marea parity recipes/tide.lua --run low"):format(folder.path) },
      { { "train", "ranks=1", "recipes/minimum.lua", "lr=2" }, "train: the recipe's file comes " ..
        "first, then key=value: marea train recipes/minimum.lua ranks=1 lr=2" },
      { { "train", "ranks=1" }, "train: the recipe's file comes first, then key=value: marea " ..
        "train RECIPE.lua ranks=1" },
      { { "weigh", "recipes" }, "weigh: expected a recipe's file, such as recipes/minimum.lua, " ..
        "got recipes" },
      { { "weigh", "recipes/minimum" }, "weigh: there is no file recipes/minimum; did you mean " ..
        "recipes/minimum.lua?" },
      { { "weigh", "minimum" }, "weigh: there is no file minimum; did you mean " ..
        "recipes/minimum.lua?" },
    } do
      local words = { "--outputs", folder.path, table.unpack(case[1]) }
      local code, output, errors = run(table.unpack(words))
      assert.are.equal("marea: " .. case[2] .. "\n", errors)
      assert.are.same({ 2, "" }, { code, output })
    end
  end)

  it("says its version", function()
    local code, output = run("--version")
    assert.are.equal(0, code)
    assert.are.equal("marea " .. require "marea.version" .. "\n", output)
  end)

  it("refuses unknown commands and options with the nearest name", function()
    local cases = {
      { { "trian" }, "marea: unknown command 'trian'; did you mean 'train'?" },
      { { "check" }, "marea: unknown command 'check'; did you mean 'check-loss'?" },
      { { "zzzzzz" }, "marea: unknown command 'zzzzzz' (see marea --help)" },
      { { "--outptus", "x" }, "marea: unknown option '--outptus'; did you mean '--outputs'?" },
      { { "test", "--fliter", "x" }, "marea: unknown option '--fliter'; did you mean '--filter'?" },
      { { "test", "--jsno" }, "marea: unknown option '--jsno'; did you mean '--json'?" },
      { { "test", "--qqqqqqqq" }, "marea: unknown option '--qqqqqqqq' (see marea test --help)" },
      { { "--outputs" }, "marea: option '--outputs' requires an argument" },
      { { "launch", "doctor" }, "marea: missing option '-n'" },
      { { "launch", "-n", "2" }, "marea: launch: which command?" },
      { { "launch", "-n", "x", "doctor" }, "marea: -n must be a whole number of 1 or more, not x" },
      { { "launch", "-n", "2", "--time-limit", "soon", "doctor" },
        "marea: --time-limit must be a number of seconds, not soon" },
      { {}, "marea: no command given" },
    }
    for _, case in ipairs(cases) do
      local code, output, errors = run(table.unpack(case[1]))
      local what = table.concat(case[1], " ")
      assert.are.equal(2, code, what)
      assert.are.equal("", output, what)
      assert.are.equal(case[2], errors:sub(1, #case[2]), what)
      assert.are.equal(1, select(2, errors:gsub("\n", "")), what)
    end
  end)

  it("takes common options before the command as well", function()
    local code, _, errors = run("--json", "--outputs", "nowhere", "--run", "x", "test", "no/such")
    assert.are.equal(2, code)
    assert.are.equal("marea: test: no file or folder 'no/such'\n", errors)
  end)
end)
