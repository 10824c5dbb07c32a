local config = require "marea.config"
local fault = require "marea.fault"

local function refusal(options)
  local ok, raised = pcall(config.resolve, options)
  assert.is_false(ok)
  return fault.of(raised)
end

local function resolved(options)
  local values, rules = config.resolve(options)
  return config.read_only(values, rules)
end

describe("a config", function()
  it("has marea's defaults", function()
    assert.same({
      seed = 20, ranks = 3, updates = 100, accumulation = 1, batch_size_per_rank = 4, lr = 0.1,
      objective = "global_token", reduction = "mean", dtype = "f32", device = "cpu", dropout = 0,
      layout = "packed", keep = 3, nonfinite = "stop",
    }, config.values(resolved { world_size = 3 }))
  end)

  it("lets the recipe override defaults and the command line override both", function()
    local c = resolved { given = { lr = 0.5, width = 8, updates = 7 },
                         overrides = { "lr=0.05", "width=16", "stop=3" } }
    assert.equal(0.05, c.lr)
    assert.equal(16, c.width)
    assert.equal(7, c.updates)
    assert.equal(3, c.stop)
  end)

  it("types words by the default's type", function()
    local c = resolved {
      given = { flag = false, word = "x", rate = 1 },
      overrides = { "flag=true", "word=12", "rate=2.5", "updates=1e3", "dtype=f64" },
    }
    assert.is_true(c.flag)
    assert.equal("12", c.word)
    assert.equal(2.5, c.rate)
    assert.equal("integer", math.type(c.updates))
    assert.equal(1000, c.updates)
    assert.equal("f64", c.dtype)
  end)

  it("takes overrides as a map, too", function()
    local c = resolved { given = { flag = true }, overrides = { dtype = "f64", flag = false } }
    assert.equal("f64", c.dtype)
    assert.is_false(c.flag)
  end)

  it("lets none take an optional key away", function()
    local c = resolved { given = { stop = 50, clip_norm = 1 }, overrides = { "stop=none" } }
    assert.is_nil(c.stop)
    assert.equal(1, c.clip_norm)
    assert.truthy(refusal({ overrides = { "updates=none" } }):find('got "none"', 1, true))
  end)

  for _, case in ipairs {
    { "updates=0", "config.updates must be an integer of at least 1, got 0" },
    { "updates=1.5", "config.updates must be an integer of at least 1, got 1.5" },
    { "updates=many", 'config.updates must be an integer of at least 1, got "many"' },
    { "accumulation=-1", "config.accumulation must be an integer of at least 1, got -1" },
    { "batch_size_per_rank=0",
      "config.batch_size_per_rank must be an integer of at least 1, got 0" },
    { "ranks=0", "config.ranks must be an integer of at least 1, got 0" },
    { "keep=0", "config.keep must be an integer of at least 1, got 0" },
    { "stop=0", "config.stop must be an integer of at least 1, got 0" },
    { "save_every=0", "config.save_every must be an integer of at least 1, got 0" },
    { "evaluate_every=0", "config.evaluate_every must be an integer of at least 1, got 0" },
    { "seed=-1", "config.seed must be an integer of at least 0, got -1" },
    { "lr=0", "config.lr must be a number above 0, got 0" },
    { "lr=nan", 'config.lr must be a number above 0, got "nan"' },
    { "lr=1e999", "config.lr must be a number above 0, got inf" },
    { "clip_norm=0", "config.clip_norm must be a number above 0, got 0" },
    { "dropout=1", "config.dropout must be a number of at least 0 and below 1, got 1" },
    { "dtype=f16", 'config.dtype must be "f32" or "f64" or "bf16", got "f16"' },
    { "layout=loose", 'config.layout must be "packed" or "padded", got "loose"' },
    { "reduction=max", 'config.reduction must be "mean" or "sum", got "max"' },
    { "device=", 'config.device must be "cpu", "cuda", "cuda:N" or "auto", got ""' },
    { "device=gpu", 'config.device must be "cpu", "cuda", "cuda:N" or "auto", got "gpu"' },
    { "nonfinite=go", 'config.nonfinite must be "stop" or "skip", got "go"' },
    { "global_batch_size=0", "config.global_batch_size must be an integer of at least 1, got 0" },
    { "global_batch_size=10",
      "config.global_batch_size must be a multiple of ranks x batch_size_per_rank = 1 x 4 = 4, " ..
      "got 10" },
    { "stop_below=1", "config.stop_below is compared with the validation loss of evaluations, " ..
      "and needs config.evaluate_every" },
  } do
    it("refuses " .. case[1], function()
      local message, code = refusal { overrides = { case[1] } }
      assert.equal(case[2], message)
      assert.equal(2, code)
    end)
  end

  it("makes the accumulation of a global batch, and refuses two that differ", function()
    local overrides = { "global_batch_size=24", "batch_size_per_rank=2" }
    assert.equal(4, resolved({ world_size = 3, overrides = overrides }).accumulation)
    assert.equal(4, resolved({ world_size = 3, overrides = overrides,
                               given = { accumulation = 4 } }).accumulation)
    local message, code = refusal { world_size = 3, overrides = { "accumulation=1",
                                                                 table.unpack(overrides) } }
    assert.equal("config.global_batch_size = 24 asks for an accumulation of 4 on 3 ranks, and " ..
                 "config.accumulation is 1: give one of the two", message)
    assert.equal(2, code)
    assert.equal(message, (refusal { world_size = 3, given = {
      accumulation = 1, global_batch_size = 24, batch_size_per_rank = 2 } }))
    local place = function(key) return key == "global_batch_size" and "recipes/x.lua:4" or "" end
    assert.equal("recipes/x.lua:4: config.global_batch_size must be",
                 refusal({ given = { global_batch_size = 3 }, place = place }):match("^.-must be"))
  end)

  it("lets the command line's global batch or accumulation go before the recipe's other", function()
    local whole = resolved { world_size = 3, given = { accumulation = 1, batch_size_per_rank = 2 },
                             overrides = { "global_batch_size=24" } }
    assert.equal(4, whole.accumulation)
    local cut = resolved { world_size = 3, overrides = { "accumulation=2" },
                           given = { global_batch_size = 24, batch_size_per_rank = 2 } }
    assert.same({ 2, 12 }, { cut.accumulation, cut.global_batch_size })
  end)

  it("gives the nearest name of an unknown key", function()
    local message, code = refusal { overrides = { "dropuot=0.1" } }
    assert.equal('config has no key "dropuot"; did you mean "dropout"?', message)
    assert.equal(2, code)
    assert.truthy(refusal({ given = { width = 1 }, overrides = { "widht=2" } })
      :find('did you mean "width"', 1, true))
    assert.truthy(refusal({ overrides = { "zzzzzzzz=2" } }):find("it has accumulation, ", 1, true))
  end)

  it("refuses words that are no key=value", function()
    local message, code = refusal { overrides = { "lr" } }
    assert.equal('expected key=value on the command line, got "lr"', message)
    assert.equal(2, code)
  end)

  it("refuses own values that are tables or functions", function()
    assert.equal("config.betas must be a number, a string or a boolean, got a table",
                 (refusal { given = { betas = { 1, 2 } } }))
  end)

  it("blames the recipe's line for the recipe's values", function()
    local place = function(key) return key == "updates" and "recipes/x.lua:4" or "" end
    assert.equal("recipes/x.lua:4: config.updates must be an integer of at least 1, got 0",
                 (refusal { given = { updates = 0 }, place = place }))
    assert.equal("config.updates must be an integer of at least 1, got -2",
                 (refusal { given = { updates = 1 }, overrides = { "updates=-2" }, place = place }))
  end)
end)

describe("its read-only view", function()
  it("refuses writes", function()
    local c = resolved {}
    for _, key in ipairs { "lr", "unheard_of" } do
      local ok, raised = pcall(function() c[key] = 1 end)
      assert.is_false(ok)
      assert.truthy(fault.of(raised):find("config is read-only: config." .. key, 1, true))
    end
    assert.equal(0.1, c.lr)
  end)

  it("refuses reads of keys that nobody declared, with the reader's line", function()
    local reader = assert(load("local c = ...\nlocal x = c.batch_size\nreturn x", "@recipes/r.lua"))
    local ok, raised = pcall(reader, resolved {})
    assert.is_false(ok)
    assert.equal('recipes/r.lua:2: config has no key "batch_size";',
                 fault.of(raised):match("^[^;]*;"))
    assert.is_nil(resolved({}).stop)
  end)

  it("walks its keys in sorted order", function()
    local keys = {}
    for key in pairs(resolved { given = { aa = 1 } }) do keys[#keys + 1] = key end
    local sorted = table.move(keys, 1, #keys, 1, {})
    table.sort(sorted)
    assert.same(sorted, keys)
    assert.equal("aa", keys[1])
  end)
end)
