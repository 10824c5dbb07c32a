-- What goes wrong once a recipe runs: weights, losses, callbacks that raise or return nonsense. All
-- ranks that fail alike say so once, with the line of the recipe; the run's folder says that it
-- failed.

local bad = dofile "spec/support/bad_input.lua"
local json = require "marea.json"
local scratch = dofile "spec/support/scratch.lua"

local both = { false, 2 }
local losses = "nn.cross_entropy(model(batch), batch.targets)"

local function unit(body)
  return { units = ("{ mine = function(s) %s end }"):format(body), objective = '"mine"' }
end

local function loss(value)
  return { loss = ("function(model, batch) return %s end"):format(value) }
end

describe("weights", function()
  local must = "@units: window 1: the unit of loss must give finite weights of at least 0, got " ..
    "%s for sequence %%d on rank %d"

  it("that are negative, not finite, none or zero throughout end with code 5", function()
    bad.expect_all({
      { "negative", ranks = both, fields = unit "return -1", message = must:format("%-1", 0) },
      { "negative on rank 1", ranks = 2, fields = unit "return 1 - 2 * s.rank",
        message = must:format("%-1", 1) },
      { "NaN", ranks = both, fields = unit "return 0 / 0",
        message = must:format("not a number", 0) },
      { "infinite", fields = unit "return 1 / 0", message = must:format("inf", 0) },
      { "nothing", fields = unit "", message = must:format("nothing", 0) },
      { "a string", fields = unit "return 'x'", message = must:format("a string", 0) },
      { "a list of another length", fields = unit "return { 1, 2 }",
        message = "@units: window 1: the unit of loss gave 2 weights for sequence %d, which has " ..
          "%d+ supervised positions" },
      { "zero", ranks = both, fields = unit "return 0",
        message = "@units: window 1: the weights of loss are zero for all %d+ supervised " ..
          "positions" },
    }, { code = 5, failed = true, pattern = true })
  end)

  it("of a window without supervised positions are not defined: code 5", function()
    bad.expect_all({
      { "one rank", fields = { plan = "function() return { { {} }, { {} } } end" } },
      { "two", ranks = 2,
        fields = { plan = "function() return { { {}, { {} } }, { {}, {} } } end" } },
    }, { code = 5, failed = true, message = "@plan: window 1: no rank has a supervised " ..
         "position, so its loss is not defined" })
  end)
end)

describe("a loss", function()
  it("of a wrong shape or kind ends with code 1", function()
    local must = "@loss: recipe.loss must %s %%[%%d+%%] %%(one loss per position%%), got %s"
    bad.expect_all({
      { "a sum", fields = loss(losses .. ":sum()"), message = must:format("have shape", "%[%]") },
      { "too short", fields = loss(losses .. ":slice(1, 3)"),
        message = must:format("have shape", "%[3%]") },
      { "logits", fields = loss "model(batch)",
        message = must:format("have shape", "%[%d+,4%]") },
      { "a number", fields = loss "3", message = must:format("be a tensor", "a number") },
      { "nothing", fields = loss "nil", message = must:format("be a tensor", "nothing") },
    }, { code = 1, failed = true, pattern = true })
  end)

  it("of a wrong shape is told by each rank with what it found", function()
    local must = "@loss: recipe.loss must have shape [%d] (one loss per position), got []"
    bad.expect_all({ {
      "two ranks", ranks = 2, code = 1, failed = true,
      fields = { loss = loss(losses .. ":sum()").loss,
                 plan = "function() return { { { { 1 } }, { { 2 } } }, { { { 1 } }, {} } } end",
                 corpus = "function() return corpus.from { vocabulary = 4, sequences = { " ..
                   "{ inputs = { 1 }, targets = { 1 }, split = 'train' }, " ..
                   "{ inputs = { 1, 1 }, targets = { 1, 1 }, split = 'train' } } } end" },
      message = { must:format(1), must:format(2) },
    } })
  end)

  it("that is not finite ends with code 5 before anybody steps", function()
    local function message(rank, what)
      return ("@loss: update 1: the loss of rank %d is %s; nobody stepped, so the parameters " ..
              "are those of update 0"):format(rank, what)
    end
    bad.expect_all({
      { "NaN", ranks = both, fields = loss(losses .. ":scale(0 / 0)"),
        message = message(0, "not a number") },
      { "infinite on rank 1", ranks = 2,
        fields = loss(losses .. ":scale(world:rank() == 1 and 1 / 0 or 1)"),
        message = message(1, "inf") },
    }, { code = 5, failed = true })
  end)

  it("that is not finite later leaves parameters and checkpoints as they were", function()
    local place <close> = bad.place {
      config = "{ updates = 3, lr = 0.1, save_every = 1 }",
      optimizer = "function(model, c) local made = optim.SGD(model, { lr = c.lr }) " ..
        "local step = made.step function made.step(...) print 'stepped' return step(...) end " ..
        "return made end",
      loss = ("function(model, batch) return %s:scale(batch.update == 2 and 0 / 0 or 1) end")
        :format(losses),
    }
    local result = place:run(2)
    assert.equal(5, result.code)
    assert.equal(place:resolve("marea: @loss: update 2: the loss of rank 0 is not a number; " ..
                               "nobody stepped, so the parameters are those of update 1\n"),
                 result.errors)
    assert.equal(("stepped\n"):rep(2), result.output)
    local run = place.outputs .. "/tide/"
    assert.is_string(scratch.read(run .. "checkpoints/step-000001/manifest.json"))
    assert.is_nil(scratch.read(run .. "checkpoints/step-000002/manifest.json"))
    assert.equal("failed", json.decode(scratch.read(run .. "run.json")).outcome)
    bad.expect_whole_files(run)
  end)
end)

describe("an error", function()
  -- A callback that raises, for every callback; nothing is written by those that come first.
  local raising = {
    { "corpus" }, { "plan" }, { "model" }, { "optimizer" }, { "schedule" }, { "loss", true },
    { "accumulate", true }, { "units", true }, { "schedule", true, "function() return %s end" },
  }

  local function cases(statement, message)
    local list = {}
    for _, row in ipairs(raising) do
      local body = ("function() %s end"):format(statement)
      local fields = row[1] == "units" and unit(statement) or
        { [row[1]] = row[3] and row[3]:format(body) or body }
      table.insert(list, { row[1], fields = fields, failed = row[2],
                           message = ("@%s: %s"):format(row[1], message) })
    end
    return list
  end

  it("in a callback names its line, once for all ranks", function()
    bad.expect_all(cases("error 'low tide'", "low tide"), { code = 1, ranks = 2 })
  end)

  it("whose value is a table or nothing names its line too", function()
    bad.expect_all(cases("error {}", "an error whose value is a table and no text"), { code = 1 })
    bad.expect_all({
      { "nothing", ranks = both, fields = { loss = "function() error() end" },
        message = "@loss: an error without a message" },
      { "a table", ranks = 2, fields = unit "error {}",
        message = "@units: an error whose value is a table and no text" },
      { "text without a place", fields = { loss = "function() error('low tide', 0) end" },
        message = "@loss: low tide" },
      { "a slip", ranks = both, fields = unit "return s.bok.x",
        message = "@units: attempt to index a nil value (field 'bok')" },
    }, { code = 1, failed = true })
  end)

  it("is what a callback makes that returns nonsense", function()
    local function nothing(field, message, code, failed)
      return { field, ranks = both, fields = { [field] = "function() end" }, code = code or 2,
               failed = failed, message = ("@%s: %s"):format(field, message) }
    end
    bad.expect_all {
      nothing("model", "the recipe's model must return a module of nn, got nothing"),
      nothing("optimizer", "the recipe's optimizer must return an optimizer of optim, got nothing"),
      nothing("schedule", "the recipe's schedule must return a function from the update to a " ..
              "factor of lr, got nothing"),
      nothing("accumulate", "accumulate ran 0 backwards for the 1 microbatches of the window", 1,
              true),
      { "factor", fields = { schedule = "function() return function() return -1 end end" },
        code = 2, failed = true, message = "@schedule: the recipe's schedule must give a finite " ..
          "factor of at least 0, got -1 for update 1" },
      { "option", code = 2,
        fields = { model = "function() return nn.Transformer { hedas = 2 } end" },
        message = '@model: nn.Transformer has no option "hedas"; did you mean "heads"?' },
      { "rate", code = 2,
        fields = { optimizer = "function(model) return optim.SGD(model, { lr = -1 }) end" },
        message = "@optimizer: optim.SGD: lr must be a finite number of at least 0, got -1" },
    }
  end)
end)
