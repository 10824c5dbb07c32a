-- One gradient, however a window is laid out: packed or padded, cut into microbatches or whole, on
-- one thread or two; and one peak of memory. Models without kinks (GELU, SiLU), so that f32 holds.

local core = require "marea.core"
local loss = require "marea.loss"
local marea = require "marea"
local parity = require "marea.parity"
local Window = require "marea.window"
local training = dofile "spec/support/training.lua"

local nn = marea.nn

-- Models that differ in everything that could mix rows.
local models = {
  ["pre-norm, GELU, causal"] = { activation = "gelu" },
  ["post-norm, SiLU, causal"] = { norm = "post", activation = "silu" },
  ["pre-norm RMS, GELU, every position"] = { norm_kind = "rms", activation = "gelu",
                                             causal = false },
  ["tied head, no biases"] = { activation = "gelu", tied = true, bias = false },
}

local function session_of(options, counts, overrides)
  return training.session(training.small({
    steps = training.dealt(counts),
    model = function(c)
      local whole = { vocabulary = 7, context = 16, width = 16, hidden = 32, heads = 2, layers = 2,
                      dropout = c.dropout }
      for key, value in pairs(options) do whole[key] = value end
      return nn.Transformer(whole)
    end,
  }, overrides))
end

-- The losses of all supervised positions of a window, in order.
local function losses(session)
  local list = {}
  local _ <close> = core.no_grad()
  for rank = 0, #session.plan[1] - 1 do
    for _, batch in ipairs(Window.new(session, 1, rank)) do
      local values = session.recipe.loss(session.model, batch):values()
      for _, rows in ipairs(batch.supervised) do
        for _, row in ipairs(rows) do list[#list + 1] = values[row] end
      end
    end
  end
  return list
end

local function assert_alike(a, b, dtype, what)
  local gate = parity.gates[dtype]
  local found = core.compare(a, b, gate)
  assert(found.failing == 0 and found.dot_bb > 0,
         ("%s in %s: %d of %d differ, by %.3g"):format(what, dtype, found.failing, found.count,
                                                      found.max_abs))
end

local function assert_same_training(one, other, dtype)
  assert_alike(core.from(losses(one), dtype), core.from(losses(other), dtype), dtype, "losses")
  assert_alike(training.play(one), training.play(other), dtype, "gradients")
end

local dtypes = { "f32", "f64" }

describe("the padded layout", function()
  for name, options in pairs(models) do
    it("gives the losses and gradients of the packed one: " .. name, function()
      for _, dtype in ipairs(dtypes) do
        for objective in pairs { global_token = 1, per_sequence = 1 } do
          local function made(layout)
            return session_of(options, { { 5, 3 } }, { dtype = dtype, layout = layout,
                                                       objective = objective })
          end
          assert_same_training(made "padded", made "packed", dtype)
        end
      end
    end)
  end

  it("has the same dropout as the packed one", function()
    local function made(layout, dropout)
      return session_of({}, { { 6 } }, { dtype = "f64", dropout = dropout, layout = layout })
    end
    local packed = training.play(made("packed", 0.3))
    assert_alike(training.play(made("padded", 0.3)), packed, "f64", "gradients")
    local without = training.play(made("packed", 0))
    assert.is_true(core.compare(without, packed, training.gate).failing > 0)
  end)

  it("pads with rows that nothing depends on", function()
    local session = session_of({}, { { 5 } }, { dtype = "f64", layout = "padded" })
    local expected = training.play(session)
    local ended = session.corpus.pad
    session.corpus.pad = 6
    local padded_otherwise = training.play(session)
    session.corpus.pad = ended
    assert.equal(expected:hash(), padded_otherwise:hash())
  end)
end)

describe("sequences that are packed together", function()
  it("do not see each other: each has the losses that it has alone", function()
    for name, options in pairs(models) do
      local alone = losses(session_of(options, { { 1, 1, 1, 1, 1, 1 } }, { dtype = "f64" }))
      local packed = losses(session_of(options, { { 6 } }, { dtype = "f64" }))
      assert_alike(core.from(packed, "f64"), core.from(alone, "f64"), "f64", name)
    end
  end)
end)

describe("microbatches with the same ids in the same order", function()
  for name, options in pairs(models) do
    it("have the gradient of one large microbatch: " .. name, function()
      for _, dtype in ipairs(dtypes) do
        local whole = session_of(options, { { 12 } }, { dtype = dtype })
        for _, counts in ipairs { { { 3, 3, 3, 3 } }, { { 1, 0, 5, 6 } }, { { 6 }, { 2, 4 } } } do
          assert_same_training(session_of(options, counts, { dtype = dtype }), whole, dtype)
        end
      end
    end)
  end

  it("have it with dropout too", function()
    local config = { dtype = "f64", dropout = 0.3 }
    assert_same_training(session_of({}, { { 2, 4 }, { 6 } }, config),
                         session_of({}, { { 12 } }, config), "f64")
  end)

  it("do not have it when one id is another", function()
    local whole = training.play(session_of({}, { { 12 } }, { dtype = "f64" }))
    local other = session_of({}, { { 12 } }, { dtype = "f64" })
    other.plan[1][1][1][12] = 13
    assert.is_true(core.compare(training.play(other), whole, training.gate).failing > 0)
  end)
end)

describe("accumulation 1", function()
  it("has the bits of a loop without accumulation, replica or scopes", function()
    for _, dtype in ipairs(dtypes) do
      local session = session_of({}, { { 8 } }, { dtype = dtype })
      local accumulated = training.run(session)
      local model = session.recipe.model(session.config)
      model:materialize { seed = session.config.seed, dtype = dtype }
      assert.equal(session.model:values():hash(), model:values():hash())
      local window = session:window(1)
      loss.weighted(session, model, window[1], window:weights(window[1])):backward()
      assert.equal(model:gradients():hash(), accumulated:hash())
    end
  end)
end)

-- Peak bytes of a window above what was held before, with the collector stopped.
local function peak(session)
  local window = session:window(1)
  collectgarbage()
  collectgarbage "stop"
  local canary = setmetatable({ {} }, { __mode = "v" })
  core.memory_reset_peak()
  local before = core.memory().live
  session:accumulate(window)
  local grown = core.memory().peak - before
  assert(canary[1], "the collector ran")
  collectgarbage "restart"
  return grown
end

describe("the peak of memory", function()
  it("does not grow with the number of microbatches, though the collector is stopped", function()
    local counts = {}
    for m = 1, 16 do counts[m] = m == 1 and 20 or 1 end
    local wide = { width = 64, hidden = 256 }
    local one, many = session_of(wide, { { 20 } }), session_of(wide, { counts })
    for m = 2, 16 do many.plan[1][1][m] = many.plan[1][1][1] end -- all of the same size
    peak(one)
    local of_one, of_many = peak(one), peak(many)
    -- what is left of a graph is a few hundred bytes an operation, for handles that Lua still holds
    assert(of_many < 1.1 * of_one, ("%d bytes for one, %d for 16"):format(of_one, of_many))
  end)
end)

describe("a whole step", function()
  it("has the same bits on 1 and 2 threads", function()
    local before = core.device().threads
    for _, dtype in ipairs(dtypes) do
      local hashes = {}
      for threads = 1, 2 do
        core.set_threads(threads)
        local session = training.session(training.small({
          steps = training.dealt { { 30, 30 } },
          model = function()
            return nn.Transformer { vocabulary = 7, context = 16, width = 96, heads = 4, layers = 1,
                                    dropout = 0.1 }
          end,
          optimizer = function(model) return marea.optim.AdamW(model, { lr = 0.01 }) end,
        }, { dtype = dtype }))
        training.run(session)
        local norm = session.model.unit:clip(0.01)
        session.optimizer:step()
        hashes[threads] = session.model:values():hash() .. (" %.17g"):format(norm)
      end
      core.set_threads(before)
      assert.equal(hashes[1], hashes[2])
    end
  end)
end)
