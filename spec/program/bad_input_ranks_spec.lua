-- What one rank does and the others do not: errors, ends without a word, loops, other collectives,
-- other models. The run ends, one rank says why, none is left.

local bad = dofile "spec/support/bad_input.lua"
local core = require "marea.core"

local on_last = "if world:rank() == world:size() - 1 then %s end "
local losses = "return nn.cross_entropy(model(batch), batch.targets)"
local loop = "replica:zero_grad() for _, batch in ipairs(window) do " ..
  "replica:loss(batch, window:weights(batch)):backward() end"

local raising = {
  corpus = "function() %s return corpus.symbols { train = 8 } end",
  plan = "function(rows, c) %s return sampler.shuffled(rows, c) end",
  model = "function() %s return nn.Transformer { vocabulary = 6, classes = 4, context = 128, " ..
    "width = 8, heads = 2, layers = 1 } end",
  optimizer = "function(model) %s return optim.SGD(model, { lr = 0.1 }) end",
  loss = "function(model, batch) %s " .. losses .. " end",
  accumulate = "function(replica, window) %s " .. loop .. " end",
  schedule = "function() %s return function() return 1 end end",
}

-- Fields of a recipe in which the last rank does something in one callback.
local function on_last_rank(callback, statement)
  return { [callback] = raising[callback]:format(on_last:format(statement)) }
end

describe("an error on one rank only", function()
  it("ends all with code 1, told once, in every callback", function()
    local begun = { loss = true, accumulate = true }
    local cases = {}
    for _, callback in ipairs { "corpus", "plan", "model", "optimizer", "schedule", "loss",
                                "accumulate" } do
      table.insert(cases, { callback, fields = on_last_rank(callback, "error 'low tide'"),
                            failed = begun[callback],
                            message = ("@%s: low tide"):format(callback) })
    end
    bad.expect_all(cases, { code = 1, ranks = 2, rank = 1 })
  end)

  it("ends three ranks, wherever it is", function()
    bad.expect_all({
      { "last", rank = 2, fields = on_last_rank("loss", "error 'low tide'"), failed = true,
        message = "@loss: low tide" },
      { "first", rank = 0, failed = true, message = "@loss: low tide", fields = {
          loss = "function(model, batch) if world:rank() == 0 then error 'low tide' end " ..
            losses .. " end" } },
    }, { code = 1, ranks = 3, failed = true })
  end)

  it("in a unit is known to all, who ask it for the same sequences", function()
    bad.expect_all { {
      "unit", ranks = 2, code = 1, failed = true, message = "@units: low tide",
      fields = { objective = '"mine"', units = "{ mine = function(s) if s.rank == 1 then " ..
                 "error 'low tide' end return 1 end }" },
    } }
  end)

  it("is found when it is no error but a step left out", function()
    bad.expect_all({
      { "backward", rank = 1, fields = on_last_rank("accumulate", "return"),
        message = "@accumulate: accumulate ran 0 backwards for the 1 microbatches of the window" },
      { "the reduction", fields = { replicate = "false",
                                    accumulate = "function(replica, window) " .. loop .. " end" },
        message = "@accumulate: accumulate reduced the gradients of the model over the ranks 0 " ..
          "times; a window is reduced once (all_reduce of model:gradients())" },
    }, { code = 1, ranks = 2, failed = true })
  end)
end)

describe("a rank", function()
  local function die(signal)
    return ("local stat <close> = io.open('/proc/self/stat') os.execute('kill -%d ' .. " ..
            "stat:read('n'))"):format(signal)
  end

  it("that calls os.exit is refused", function()
    bad.expect_all { { "os.exit", ranks = 2, rank = 1, code = 2, failed = true,
                       fields = on_last_rank("loss", "os.exit(0)"),
                       message = "@loss: a recipe cannot call os.exit; it can raise an error" } }
  end)

  it("that is killed takes the others with it, code 6", function()
    local place <close> = bad.place(on_last_rank("loss", die(9)))
    local began = core.seconds()
    assert.equal(6, place:run(2).code)
    assert.is_true(core.seconds() - began < 15)
    bad.expect_whole_files(place.outputs .. "/tide")
  end)

  it("that loops while another is killed ends too", function()
    local place <close> = bad.place {
      loss = "function(model, batch) if world:rank() == 1 then while true do end end " .. die(9) ..
        losses .. " end" }
    assert.equal(6, place:run(2).code)
  end)

  it("that loops while another fails ends too, and the failure is told", function()
    local place <close> = bad.place {
      loss = "function() if world:rank() == 1 then while true do end end error 'low tide' end" }
    local result = place:run(2)
    assert.equal(place:resolve "marea: rank 0: @loss: low tide\n", result.errors)
    assert.equal(1, result.code)
  end)
end)

describe("ranks that do not do the same", function()
  it("all stop with code 6 and the lines of both", function()
    bad.expect_all({
      { "collectives", fields = on_last_rank("accumulate", "world:barrier()"), failed = true,
        message = "@accumulate: ranks disagree at operation %d+ of the world: rank 0 all_reduce " ..
          "mean f32 x %d+ at @accumulate; rank 1 barrier at @accumulate" },
      { "models", fields = { model = "function() return nn.Transformer { vocabulary = 6, " ..
          "classes = 4, context = 128, width = 8 + 8 * world:rank(), heads = 2, layers = 1 } end" },
        message = "@model: ranks disagree at operation %d+ of the world: rank 0 broadcast f32 x " ..
          "%d+ from rank 0 at @model; rank 1 broadcast f32 x %d+ from rank 0 at @model" },
    }, { code = 6, ranks = 2, pattern = true })
  end)

  it("in a script end with code 6 as well", function()
    bad.expect_all { { "script", ranks = 2, code = 6, words = { "RECIPE" },
      fields = { text = [[
        local marea = require "marea"
        local world, t = marea.world(), marea.tensor.ones { 4 }
        world:all_reduce(t, world:rank() == 0 and "sum" or "max")]] },
      message = "tide.lua:3: ranks disagree at operation 1 of the world: rank 0 all_reduce sum " ..
        "f32 x 4 at tide.lua:3; rank 1 all_reduce max f32 x 4 at tide.lua:3" } }
  end)

  it("are not asked for where a script is given for a recipe: code 2, told once", function()
    bad.expect_all { { "script", ranks = 2, code = 2, fields = { text = "local x = 1\n" },
                       message = "tide.lua: this file returns no recipe; it must end in " ..
          "return marea.recipe { ... }" } }
  end)
end)
