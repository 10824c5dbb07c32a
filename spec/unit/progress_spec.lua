-- What a run shows: the rows of its table at several widths, its config, and the next commands.

local config_text = require "marea.config_text"
local core = require "marea.core"
local launch = require "marea.launch"
local next_commands = require "marea.next_commands"
local recipe_of = require "marea.recipe"
local scratch = dofile "spec/support/scratch.lua"
local table_of = require "marea.progress_table"

-- Header and row of one update.
local function rows(width, ranks, last, more)
  local made = table_of.new(width, ranks, last)
  local tokens = {}
  for r = 1, ranks do tokens[r] = 100 * r + 17 end
  local result = { update = 7, loss_per_token = 1.23456, tokens = 1234, rank_tokens = tokens,
                   grad_norm = 0.0123456, lr = 0.1, ms = 8.25, tokens_per_second = 15882.3 }
  for key, value in pairs(more or {}) do result[key] = value end
  local row, widened = made:row(result, { last = last, elapsed = 185, left = 7 })
  return made:header(), row, widened
end

describe("the table of updates", function()
  it("fits 80 columns, with its units above", function()
    local header, row = rows(80, 2, 100)
    assert.equal(" update loss/tok tokens per rank  |grad|      lr   ms tokens/s elapsed   left",
                 header)
    assert.equal("  7/100   1.2346   1234  117+217 0.01235     0.1  8.2    15882   3m05s     7s",
                 row)
  end)

  it("has more room where the terminal is wider", function()
    local header, row = rows(120, 2, 100)
    assert.equal(" update   loss/token   tokens   per rank    |grad|        lr     ms   tokens/s" ..
                 "   elapsed     left", header)
    assert.equal("  7/100       1.2346     1234    117+217   0.01235       0.1    8.2      15882" ..
                 "     3m05s       7s", row)
  end)

  it("has no column of ranks for one, and each rank's tokens only where they fit", function()
    assert.is_nil(rows(80, 1, 100):find("per rank", 1, true))
    local _, narrow = rows(80, 8, 100)
    assert.is_truthy(narrow:find(" 117..817 ", 1, true), narrow)
    local _, wide = rows(160, 8, 100)
    assert.is_truthy(wide:find(" 117+217+317+417+517+617+717+817 ", 1, true), wide)
    local _, many = rows(80, 2, 100, { rank_tokens = { 123456, 234567 } })
    assert.is_truthy(many:find("123k..235k", 1, true), many)
  end)

  it("stays within 80 columns for long runs and large numbers", function()
    for _, last in ipairs { 9, 100, 9999, 20000, 1000000 } do
      for _, ranks in ipairs { 1, 2, 3, 8, 64 } do
        local header, row = rows(80, ranks, last, {
          lr = 0.00028543, tokens_per_second = 12345678, ms = 1234, grad_norm = 1.2345e-5 })
        assert.is_true(#header <= 80 and #row <= 80, row)
        assert.equal(#header, #row)
      end
    end
  end)

  it("widens a column that is too narrow, and says that the titles moved", function()
    local header, row, widened = rows(80, 2, 100, { ms = 123456 })
    assert.is_true(widened)
    assert.equal(#header, #row)
  end)

  it("writes spans of time in few letters", function()
    for seconds, text in pairs { [0] = "0s", [59.4] = "59s", [60] = "1m00s", [3599] = "59m59s",
                                 [7800] = "2h10m", [360000] = "4d04h" } do
      assert.equal(text, table_of.span(seconds))
    end
  end)

  it("shows no loss where there is none", function()
    local made = table_of.new(80, 1, 9)
    local row = made:row({ update = 1, tokens = 3, rank_tokens = { 3 }, grad_norm = 0, lr = 1,
                           ms = 0.04, tokens_per_second = 1 }, { last = 9, elapsed = 0, left = 0 })
    assert.equal("    1/9        -      3       0       1  0.0        1      0s     0s",
                 row)
  end)
end)

local function recipe(overrides, config)
  return recipe_of.resolve(recipe_of.declare {
    name = "tide", config = config or { updates = 4, mine = "x", ranks = 2 },
    corpus = print, model = print, optimizer = print, plan = print,
  }, { overrides = overrides, world_size = 2, context = { files = {}, path = "a/tide.lua" } })
end

describe("a resolved config", function()
  it("marks what is not the default and what the command line gave, in columns", function()
    local lines = config_text.lines(recipe { "lr=0.1", "seed=3" }, 80)
    local text = table.concat(lines, "\n")
    for _, cell in ipairs { "* mine  ", "* updates  ", "= lr  ", "= seed  ", "  ranks  ",
                            "  keep  ", "  clip_norm            none" } do
      assert.is_truthy(text:find(cell, 1, true), cell .. "\n" .. text)
    end
    assert.equal("  * not the default   = given on the command line", lines[#lines])
    for _, line in ipairs(lines) do assert.is_true(#line <= 80, line) end
    assert.is_true(#config_text.lines(recipe(), 160) < #lines)
  end)

  it("puts long values on lines of their own", function()
    local path = ("long/"):rep(20)
    local lines = config_text.lines(recipe(nil, { mine = path }), 80)
    assert.equal("  * mine                 " .. path, lines[#lines - 1])
  end)
end)

describe("the next commands", function()
  local program = next_commands.program()

  local function commands(more)
    local finished = { recipe = recipe(), ranks = 1, outputs = "outputs", name = "tide",
                       result = { update = 4, updates = 4 } }
    for key, value in pairs(more) do finished[key] = value end
    local list = {}
    for _, item in ipairs(next_commands.of(finished)) do
      for i = 2, #item do
        assert.equal(program .. " ", item[i]:sub(1, #program + 1))
        list[#list + 1] = item[i]:sub(#program + 2)
      end
    end
    return list
  end

  it("name what is not the default, and nothing else", function()
    assert.are.same({
      "report tide", "evaluate a/tide.lua", "train a/tide.lua --continuous --run tide-again",
      "compare tide-again tide",
    }, commands {})
  end)

  it("start as many ranks, with the same settings, run and folder, quoted for a shell", function()
    assert.are.same({
      "report high --outputs 'my runs'",
      "launch -n 2 train a/tide.lua lr=0.5 'mine=it'\\''s' --resume latest --run high " ..
        "--outputs 'my runs'",
      "launch -n 2 train a/tide.lua lr=0.5 'mine=it'\\''s' --until 2 --init 'w x' --run " ..
        "high-again --outputs 'my runs'",
      "compare high-again high --outputs 'my runs'",
    }, commands { recipe = recipe { "lr=0.5", "mine=it's" }, ranks = 2, name = "high",
                  outputs = "my runs", init = "w x", result = { update = 2, updates = 4 } })
  end)

  it("compare with the run that was moved aside", function()
    local list = commands { result = { update = 4, updates = 4, moved_to = "outputs/tide.3" } }
    assert.equal("compare tide.3 tide", list[#list])
    assert.equal(3, #list)
  end)

  it("take a name that is free", function()
    local folder <close> = scratch.folder()
    core.file.make_folder(folder.path .. "/tide-again")
    local list = commands { outputs = folder.path }
    assert.equal("train a/tide.lua --continuous --run tide-again2 --outputs " .. folder.path,
                 list[3])
  end)

  it("call marea as it can be called from here", function()
    local _, found = scratch.shell(("cd '%s' && %s --version"):format(launch.root(), program))
    assert.is_truthy(found:find("^marea %d"), found)
  end)
end)
