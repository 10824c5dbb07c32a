-- Ten AdamW steps of a small GPT with masked prompts against spec/golden/gpt_adamw.safetensors,
-- which another program computed in f64: losses, gradient norms before clipping, gradient,
-- parameters.

local core = require "marea.core"
local json = require "marea.json"
local marea = require "marea"
local training = dofile "spec/support/training.lua"

local nn, optim = marea.nn, marea.optim

local file = core.safetensors.open "spec/golden/gpt_adamw.safetensors"
local metadata = file:metadata()
local losses = json.decode(metadata.losses)
local norms = json.decode(metadata.gradient_norms_before_clipping_to_1)
local steps = 10

-- The file's name of each of our parameters.
local function name_in_file(name)
  local renamed = name:gsub("^embedding%.", "wte."):gsub("^position%.", "wpe.")
    :gsub("^norm%.", "ln_f."):gsub("^layers%.", "h."):gsub("%.norm1%.", ".ln_1.")
    :gsub("%.norm2%.", ".ln_2."):gsub("%.attention%.", ".attn.")
  return renamed
end

local function corpus_of_file()
  local inputs, targets = file:tensor("inputs"):values(), file:tensor("targets"):values()
  local sequences, first = {}, 1
  for s, length in ipairs(file:tensor("lengths"):values()) do
    sequences[s] = { inputs = table.move(inputs, first, first + length - 1, 1, {}),
                     targets = table.move(targets, first, first + length - 1, 1, {}),
                     split = "train" }
    first = first + length
  end
  return marea.corpus.from { sequences = sequences, vocabulary = 61 }
end

-- The same window at every step.
local function plan()
  local list = {}
  for step = 1, steps do list[step] = training.dealt({ { 3 } })[1] end
  return list
end

local function new_session(dtype)
  local session = training.session(training.recipe({
    corpus = corpus_of_file(), steps = plan(),
    model = function()
      return nn.Transformer { vocabulary = 61, context = 64, width = 48, heads = 3, layers = 2,
                              norm = "pre", activation = "gelu", tied = true }
    end,
    optimizer = function(model)
      return optim.AdamW(model, { lr = 0.01, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, decay = 0.1,
                                  decay_all = true })
    end,
  }, { dtype = dtype }))
  for _, range in ipairs(session.model.unit:ranges()) do
    local stored = file:tensor("param." .. name_in_file(range.name))
    session.model.unit:parameter(range.name):copy_(stored:to(dtype))
  end
  return session
end

-- Ten steps; the gradient is that of the first, before clipping.
local function train(dtype)
  local session, run = new_session(dtype), { losses = {}, norms = {} }
  local unit = session.model.unit
  run.unit = unit
  for step = 1, steps do
    local window = session:window(step)
    session.statistics = {}
    session:accumulate(window)
    run.losses[step] = session.statistics.loss_sum / window.tokens
    run.gradient = run.gradient or unit:gradients():copy()
    run.norms[step] = unit:clip(1)
    session.optimizer:step()
  end
  run.tokens = session:window(1).tokens
  return run
end

local function largest_difference(a, b)
  return core.compare(a, b, { absolute = 1 }).max_abs
end

-- Largest differences of all parameters but the key third of qkv.bias, and of that third: its
-- gradient is 0 in theory, so Adam's division makes it noise.
local function compare_parameters(unit)
  local others, keys = 0, 0
  for _, range in ipairs(unit:ranges()) do
    local mine = unit:parameter(range.name)
    local theirs = file:tensor("after10." .. name_in_file(range.name))
    if range.name:find("qkv%.bias$") then
      local third = range.count // 3
      for part = 0, 2 do
        local difference = largest_difference(mine:slice(part * third + 1, third),
                                              theirs:slice(part * third + 1, third))
        if part == 1 then
          keys = math.max(keys, difference)
        else
          others = math.max(others, difference)
        end
      end
    else
      others = math.max(others, largest_difference(mine, theirs))
    end
  end
  return others, keys
end

local function assert_all_near(expected, found, bound)
  assert.equal(steps, #expected)
  for step, value in ipairs(expected) do
    assert(math.abs(found[step] - value) <= bound * value,
           ("step %d: %.17g, expected %.17g"):format(step, found[step], value))
  end
end

describe("ten steps of a GPT with masked prompts", function()
  it("in f64 have the losses and norms of another program", function()
    local run = train "f64"
    assert.equal(tonumber(metadata.supervised), run.tokens)
    assert_all_near(losses, run.losses, 1e-12)
    assert_all_near(norms, run.norms, 1e-12)
    for _, range in ipairs(run.unit:ranges()) do
      local found = core.compare(run.gradient:slice(range.offset + 1, range.count),
                                 file:tensor("grad." .. name_in_file(range.name)),
                                 { absolute = 1e-13, relative = 1e-10 })
      assert(found.failing == 0, range.name .. " has another gradient")
    end
    local others, keys = compare_parameters(run.unit)
    assert(others <= 1e-10, ("parameters differ by %.3g"):format(others))
    assert(keys <= 1e-10, ("the key third differs by %.3g"):format(keys))
  end)

  it("in f32 stay close, but for the key third of qkv.bias", function()
    local run = train "f32"
    assert_all_near(losses, run.losses, 1e-5)
    assert_all_near(norms, run.norms, 1e-5)
    local others, keys = compare_parameters(run.unit)
    assert(others <= 1e-4, ("parameters differ by %.3g"):format(others))
    assert(keys <= 5e-3, ("the key third differs by %.3g"):format(keys))
  end)
end)
