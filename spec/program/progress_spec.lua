-- A run's progress as its reader meets it: on a terminal, in a log, for machines, not at all.

local bad = dofile "spec/support/bad_input.lua"
local json = require "marea.json"
local launch = require "marea.launch"
local scratch = dofile "spec/support/scratch.lua"
local tiny = dofile "spec/support/tiny.lua"

-- What a command shows on a terminal of its own.
local function on_terminal(width, environment, words)
  local parts = {}
  for i, word in ipairs(words) do parts[i] = launch.quote(word) end
  local inner = ("stty cols %d; %s %s"):format(width, launch.quote(launch.program()),
                                              table.concat(parts, " "))
  local _, output = scratch.shell(("env -u NO_COLOR OMP_NUM_THREADS=1 TERM=xterm %s script -qec " ..
                                   "%s /dev/null"):format(environment, launch.quote(inner)))
  return (output:gsub("\r\n", "\n"))
end

local function train(folder, ...)
  return { "train", tiny.recipe, "ranks=1", "--outputs", folder, "--run", "x", ... }
end

local header = " update loss/tok tokens  |grad|      lr   ms tokens/s elapsed   left\n"

describe("progress", function()
  it("is a table without colours in a log, the first and the last update always", function()
    local folder <close> = scratch.folder()
    local _, errors = tiny.must_train(folder.path, nil, "x")
    assert.is_nil(errors:find("\27", 1, true) or errors:find("\r", 1, true))
    local first = errors:find(header, 1, true)
    assert.is_truthy(first, errors)
    assert.is_truthy(errors:find("\n    1/4 ", first, true))
    assert.is_truthy(errors:find("\n    4/4 ", first, true))
  end)

  it("is one line a second for fast updates", function()
    local folder <close> = scratch.folder()
    local _, errors = tiny.must_train(folder.path, nil, "x", "updates=200", "--continuous")
    local _, lines = errors:gsub("\n *%d+/200 ", "")
    assert.is_true(lines >= 2 and lines < 40, lines .. " lines")
  end)

  it("has its header again after twenty rows", function()
    local place <close> = bad.place { -- updates that are skipped are always shown
      config = "{ updates = 41, nonfinite = 'skip', lr = 0.1 }",
      loss = "function(model, batch) return nn.cross_entropy(model(batch), batch.targets)" ..
        ":scale(1 / 0) end" }
    local _, _, errors = launch.run({ time_limit = 60 }, place:words(bad.train()))
    local rows, headers = 0, {}
    for line in errors:gmatch("[^\n]+") do
      if line == header:sub(1, -2) then headers[#headers + 1] = rows end
      if line:find("^ *%d+/41 ") then rows = rows + 1 end
    end
    assert.equal(41, rows)
    assert.are.same({ 0, 20, 40 }, headers)
  end)

  it("has colours on a terminal, within its width, and never a carriage return", function()
    local folder <close> = scratch.folder()
    local text = on_terminal(80, "", train(folder.path, "evaluate_every=4"))
    assert.is_truthy(text:find("\27[2m" .. header:sub(1, -2) .. "\27[0m\n", 1, true), text)
    assert.is_nil(text:find("\r", 1, true))
    for line in text:gsub("\27%[%d*m", ""):match("^(.-)\nnext:"):gmatch("[^\n]+") do
      assert.is_true(#line <= 80 or line:find(folder.path, 1, true), line)
    end
    local wide = on_terminal(160, "", train(folder.path))
    assert.is_truthy(wide:find("loss/token", 1, true), wide)
  end)

  it("has none where NO_COLOR, the terminal or --progress plain say so", function()
    local folder <close> = scratch.folder()
    for _, case in ipairs { { "NO_COLOR=1" }, { "TERM=dumb" }, { "", "--progress", "plain" } } do
      local text = on_terminal(80, case[1], train(folder.path, table.unpack(case, 2)))
      assert.is_truthy(text:find(header, 1, true), text)
      assert.is_nil(text:find("\27", 1, true), case[1])
    end
    local empty = on_terminal(80, "NO_COLOR=", train(folder.path))
    assert.is_truthy(empty:find("\27[2m", 1, true))
  end)

  it("knows the terminal through launch, and is that of rank 0 only", function()
    local folder <close> = scratch.folder()
    local words = train(folder.path)
    words[3] = "ranks=2"
    local text = on_terminal(160, "", { "launch", "-n", "2", table.unpack(words) })
    assert.is_truthy(text:find("\27[2m", 1, true), text)
    assert.is_truthy(text:find("per rank", 1, true), text)
    local _, headers = text:gsub("loss/token", "")
    assert.equal(1, headers)
  end)

  it("is silent when asked, and leaves results and errors", function()
    local folder <close> = scratch.folder()
    for _, words in ipairs { { "--quiet" }, { "--progress", "none" } } do
      local output, errors = tiny.must_train(folder.path, nil, "x", table.unpack(words))
      assert.equal("", errors)
      assert.equal(("%s/x at update 4 of 8"):format(folder.path), output:match("^[^,]*"))
      assert.is_nil(output:find("next:", 1, true))
    end
    local code, _, errors = tiny.train(folder.path, nil, "x", "--quiet", "raise_at=2")
    assert.equal(1, code)
    assert.is_truthy(errors:find("^marea: spec/recipes/tiny.lua:%d+: the tide went out\n$"), errors)
  end)

  it("is lines of JSON for machines: each update, each evaluation, the result", function()
    local folder <close> = scratch.folder()
    local output, errors = tiny.must_train(folder.path, 2, "x", "--json", "evaluate_every=2")
    assert.equal("", errors)
    local lines = {}
    for line in output:gmatch("[^\n]+") do lines[#lines + 1] = json.decode(line) end
    assert.equal(7, #lines)
    local kept = {}
    for line in scratch.read(folder.path .. "/x/metrics.jsonl"):gmatch("[^\n]+") do
      kept[#kept + 1] = json.decode(line)
    end
    assert.are.same(kept, table.move(lines, 1, 6, 1, {}))
    local result = lines[7]
    assert.equal(4, result.update)
    assert.equal("stopped", result.outcome)
    assert.is_true(result.loss_per_token > 0)
    local _, both = tiny.must_train(folder.path, nil, "x", "--json", "--progress", "plain")
    assert.is_truthy(both:find(header, 1, true))
  end)

  it("is refused in an unknown form", function()
    local code, _, errors = tiny.train("/tmp", nil, "x", "--progress", "loud")
    assert.equal(2, code)
    assert.equal("marea: argument for option '--progress' must be one of 'auto', 'plain', " ..
                 "'none' (see marea train --help)\n", errors)
  end)
end)

describe("the next commands of a run", function()
  it("work as they are pasted", function()
    local folder <close> = scratch.folder()
    local outputs = folder.path .. "/it's here"
    local output = tiny.must_train(outputs, 2, "x", "dropout=0")
    local commands = {}
    for line in output:gmatch("\n    ([^\n]+)") do commands[#commands + 1] = line end
    assert.equal(4, #commands)
    for i = 2, 4 do
      local _, printed, errors = scratch.shell(commands[i])
      if i == 2 then
        assert.is_truthy(printed:find("at update 8 of 8", 1, true), commands[i] .. "\n" .. errors)
      elseif i == 3 then
        assert.is_truthy(printed:find("at update 4 of 8", 1, true), commands[i] .. "\n" .. errors)
      else -- eight updates against four
        assert.is_truthy((printed .. errors):find("history", 1, true), printed .. errors)
      end
    end
    local _, _, lacking = scratch.shell(commands[1])
    assert.is_truthy(lacking:find("the report lacks", 1, true), lacking)
  end)
end)
