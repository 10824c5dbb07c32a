-- Bad command lines, configs and recipe files: refused before anything is written.

local bad = dofile "spec/support/bad_input.lua"
local train = bad.train

describe("the command line refuses", function()
  it("what it does not know, with the nearest name", function()
    bad.expect_all({
      { "command", words = { "trian" },
        message = "unknown command 'trian'; did you mean 'train'? (see marea --help)" },
      { "flag", words = train("--utnil", "3"),
        message = "unknown option '--utnil'; did you mean '--until'? (see marea train --help)" },
      { "config key", words = train("bacth_size_per_rank=3"),
        message = 'config has no key "bacth_size_per_rank"; did you mean "batch_size_per_rank"?' },
      { "objective", words = train("objective=global_tokn"),
        message = 'there is no objective "global_tokn"; did you mean "global_token"?' },
    }, { code = 2, ranks = { false } })
  end)

  it("a config key that a recipe reads and nobody declared, on all ranks once", function()
    bad.expect_all({
      { "read in plan", ranks = { false, 2 },
        fields = { plan = "function(rows, c) return sampler.shuffled(rows, c, c.acumulation) end" },
        message = '@plan: config has no key "acumulation"; did you mean "accumulation"?' },
      { "on the command line", ranks = { 2 }, words = train("acumulation=1"),
        message = 'config has no key "acumulation"; did you mean "accumulation"?' },
    }, { code = 2 })
  end)

  it("numbers of 0 or less, and words that are none", function()
    local cases = {
      { "batch", words = train("batch_size_per_rank=0"),
        message = "config.batch_size_per_rank must be an integer of at least 1, got 0" },
      { "accumulation", words = train("accumulation=-2"),
        message = "config.accumulation must be an integer of at least 1, got -2" },
      { "ranks", ranks = 2, words = train("ranks=0"),
        message = "config.ranks must be an integer of at least 1, got 0" },
      { "lr", words = train("lr=fast"),
        message = 'config.lr must be a number above 0, got "fast"' },
      { "no value", words = train("lr"),
        message = 'expected key=value on the command line, got "lr"' },
      { "device", words = train("device=gpu"),
        message = 'config.device must be "cpu", "cuda", "cuda:N" or "auto", got "gpu"' },
    }
    for _, count in ipairs { "0", "-1", "two" } do
      table.insert(cases, { "launch", words = { "launch", "-n", count, "train", "RECIPE" },
                            message = "-n must be a whole number of 1 or more, not " .. count })
      table.insert(cases, { "until", words = train("--until", count),
                            message = "--until must be an update of 1 or more, not " .. count ..
                              " (see marea train --help)" })
    end
    bad.expect_all(cases, { code = 2 })
  end)

  it("updates that are none or that the plan does not have, in every command", function()
    local cases = {}
    for _, command in ipairs { "parity", "reference", "weigh" } do
      local function asked(step)
        return { command, "RECIPE", "--outputs", "OUTPUTS", "--step", step }
      end
      table.insert(cases, { command, words = asked "first",
                            message = ("--step must be an update of 1 or more, not first (see " ..
                                       "marea %s --help)"):format(command) })
      table.insert(cases, { command, words = asked "0",
                            message = ("--step must be an update of 1 or more, not 0 (see marea " ..
                                       "%s --help)"):format(command) })
      table.insert(cases, { command, words = asked "3", ranks = 2,
                            message = "the plan has 2 steps, and update 3 was asked for" })
    end
    bad.expect_all(cases, { code = 2 })
  end)

  it("options that do not go together or name nothing", function()
    bad.expect_all({
      { "until and continuous", words = train("--until", "1", "--continuous"),
        message = "train: give either --until or --continuous" },
      { "until behind the end", words = train("--until", "5"),
        message = "--until 5 is behind the last update, 2 (updates=5 plans for more)" },
      { "accept alone", words = train("--accept", "corpus"),
        message = "--accept needs --resume" },
      { "nothing to resume", ranks = { false, 2 }, words = train("--resume", "latest"),
        message = "outputs/tide holds no run that was trained" },
      { "no such checkpoint", words = train("--resume", "PLACE/nowhere"),
        message = "nowhere is neither a checkpoint nor a run" },
      { "run name", words = train("--run", "a/b"),
        message = "a run's name becomes a folder: expected letters, digits, '_', '-' and '.', " ..
          'got "a/b"' },
      { "no outputs", words = { "train", "RECIPE", "--outputs", "" },
        message = '--outputs must name a folder, got ""' },
    }, { code = 2 })
  end)

  it("words that are no UTF-8, as any other", function()
    bad.expect_all({
      { "command", words = { "tr\xff" }, message = "unknown command 'tr\xff' (see marea --help)" },
      { "file", words = { "train", "\xff\xfe.lua" },
        message = "cannot read \xff\xfe.lua: No such file or directory" },
      { "key", words = train("l\xffr=1"),
        message = 'expected key=value on the command line, got "l\xffr=1"' },
      { "value", words = train("objective=\xff"),
        message = 'there is no objective "\xff"; there are global_token, .*', pattern = true },
    }, { code = 2 })
  end)
end)

describe("a recipe's file is refused", function()
  it("when it cannot be read", function()
    bad.expect_all({
      { "missing", ranks = { false, 2 }, words = { "train", "PLACE/no.lua" },
        message = "cannot read no.lua: No such file or directory" },
      { "missing, without a command", words = { "PLACE/no.lua" },
        message = "cannot read no.lua: No such file or directory" },
      { "a folder", words = { "train", "PLACE/dir.lua" }, files = { ["dir.lua/x"] = "" },
        message = "cannot read dir.lua: Is a directory" },
      { "compiled", fields = { text = "\27Lua\0" },
        message = "tide.lua: expected Lua text, got compiled Lua" },
      { "garbage", fields = { text = "\0\1\2" }, message = "tide.lua:1: unexpected symbol" },
      { "empty", fields = { text = "" },
        message = "tide.lua: this file returns no recipe; it must end in " ..
          "return marea.recipe { ... }" },
    }, { code = 2 })
  end)

  it("when its text is wrong, with the line", function()
    bad.expect_all({
      { "syntax", ranks = { false, 2 },
        fields = { plan = "function(rows, c) return sampler.shuffled(rows c) end" },
        message = "@plan: ')' expected near 'c'" },
      { "cut off", fields = { text = "return {\n\n1" },
        message = "tide.lua:3: '}' expected (to close '{' at line 1) near <eof>" },
      { "unknown name", fields = { head = "local x = nn.Transformr {}" },
        message = '@head: marea.nn has no "Transformr"; did you mean "Transformer"?' },
      { "error", ranks = { false, 2 }, fields = { head = "error 'low tide'" },
        message = "@head: low tide" },
      { "assert without a place", fields = { head = "\nassert(false, 'low tide')" },
        message = "@head+1: low tide" },
      { "an error of nil", fields = { head = "error()" },
        message = "@head: an error without a message" },
      { "an error of a table", ranks = { false, 2 }, fields = { head = "error { code = 7 }" },
        message = "@head: an error whose value is a table and no text" },
      { "a message with control characters", fields = { head = 'error("a\\27[2Jb\\rc", 0)' },
        message = "@head: a\\x1B[2Jb\\x0Dc" },
      { "the real os.exit", fields = { head = "_G.os.exit(0)" },
        message = "@head: a recipe cannot call os.exit; it can raise an error" },
      { "the required os.exit", fields = { head = "require('os').exit(0)" },
        message = "@head: a recipe cannot call os.exit; it can raise an error" },
      { "os.exit", ranks = { false, 2 }, fields = { head = "os.exit(0)" },
        message = "@head: a recipe cannot call os.exit; it can raise an error" },
    }, { code = 2 })
  end)

  it("when fields are missing, unknown or of a wrong type, with the line", function()
    local cases = {
      { "no recipe", fields = { text = "local x = 1\n" },
        message = "tide.lua: this file returns no recipe; it must end in " ..
          "return marea.recipe { ... }" },
      { "nothing declared", fields = { text = "\nreturn require('marea').recipe()" },
        message = "tide.lua:2: marea.recipe expects one table, got nothing" },
      { "unknown", ranks = { false, 2 }, fields = { tail = "optimiser = 1," },
        message = '@tail: a recipe has no field "optimiser"; did you mean "optimizer"?' },
      { "no folder's name", fields = { name = [["../x"]] },
        message = "@name: the recipe's name becomes a folder: expected letters, digits, '_', " ..
          [['-' and '.', got "../x"]] },
      { "unit", fields = { units = "{ mine = 3 }" },
        message = "@units: the recipe's unit mine must be a function or a list of terms, got a " ..
          "number" },
      { "objective", fields = { objective = '"mien"', units = "{ mine = function() end }" },
        message = '@objective: there is no objective "mien"; did you mean "mine"?' },
      { "terms", fields = { objective = "{}" },
        message = "@objective: an objective is a function or a list of terms, got table" },
    }
    for _, name in ipairs { "name", "corpus", "model", "optimizer", "plan" } do
      local kind = name == "name" and "string" or "function"
      table.insert(cases, { "no " .. name, fields = { [name] = false },
                            message = ("@recipe: the recipe has no %s: expected a %s")
                              :format(name, kind) })
      table.insert(cases, { name, fields = { [name] = "12" },
                            message = ("@%s: the recipe's %s must be a %s, got a number")
                              :format(name, name, kind) })
    end
    bad.expect_all(cases, { code = 2 })
  end)

  it("when its config is out of range, with the line", function()
    local cases = {
      { "type", fields = { config = "{ updates = 'x' }" },
        message = '@config: config.updates must be an integer of at least 1, got "x"' },
      { "no value", fields = { config = "{ mine = {} }" },
        message = "@config: config.mine must be a number, a string or a boolean, got a table" },
    }
    for _, key in ipairs { "updates", "accumulation", "batch_size_per_rank", "ranks" } do
      for _, value in ipairs { "0", "-3", "1.5" } do
        table.insert(cases, { key, fields = { config = ("{ %s = %s }"):format(key, value) },
                              message = ("@config: config.%s must be an integer of at least 1, " ..
                                         "got %s"):format(key, value) })
      end
    end
    bad.expect_all(cases, { code = 2 })
  end)

  it("when it is planned for another number of ranks, with both", function()
    local message = "the recipe is planned for 2 ranks and was started on %d; start it on 2, or " ..
      "plan for these with ranks=%d:" -- and the command, on a line that begins with a space
    bad.expect_all({
      { "one", message = "@config: " .. message:format(1, 1) },
      { "three", ranks = 3, message = "@config: " .. message:format(3, 3) },
    }, { code = 2, fields = { config = "{ ranks = 2 }" } })
  end)
end)
