-- Measured weights: what a recipe's loop weighs with, against what it declares.

local json = require "marea.json"
local launch = require "marea.launch"
local scratch = require "spec.support.scratch"

-- The exercise's recipe, window 1: 12 tokens on rank 0, 12 + 24 in two microbatches on rank 1.
local frame = [[
local loaded = dofile("%s/recipes/exercise.lua")
local recipe = loaded.definition
recipe.plan = function() return { { { { 1 } }, { { 2 }, { 3, 4 } } }, { { { 1 } }, { { 2 } } } } end
recipe.replicate = %s
recipe.accumulate = function(replica, window)
  %s
  for i, batch in ipairs(window) do
    %s
  end
  %s
end
return loaded
]]

local scoped = "local _ <close> = i < #window and replica:no_sync()\n"

local function measure(loop, options)
  options = options or {}
  local folder <close> = scratch.folder()
  local path = folder.path .. "/loop.lua"
  scratch.write(path, frame:format(launch.root(), options.replicate or "true",
                                   options.clear or "replica:zero_grad()",
                                   (options.replicate and "" or scoped) .. loop,
                                   options.after or ""))
  local code, output, errors = launch.run({ ranks = options.ranks or 2, time_limit = 60 }, {
    "weigh", path, "--measured", "--outputs", folder.path, options.text and "--trace" or "--json",
    table.unpack(options.settings or {}) })
  if options.text then return code, output, errors end
  local report = json.decode(output)
  return code, type(report) == "table" and report.measured or nil, errors
end

local right = "replica:loss(batch, window:weights(batch)):backward()"

describe("marea weigh --measured", function()
  it("finds the declared weights in a right loop, under every objective", function()
    for _, name in ipairs { "global_token", "mean_of_means", "per_sequence" } do
      local code, measured, errors = measure(right, { settings = { "objective=" .. name } })
      assert.equal(0, code, errors)
      assert.is_true(measured.pass)
      assert.is_true(measured.worst.off <= 1e-5)
    end
  end)

  it("shows 1 : 1 for the right loop on 12 and 36 tokens and 3 : 1 for a mean of means", function()
    local _, good = measure(right)
    assert.near(1, good.ranks[1].per_token / good.ranks[2].per_token, 1e-5)
    local code, wrong = measure("local share = window.tokens / window.my_tokens / 2 " ..
      "replica:loss(batch, window:weights(batch)):scale(share):backward()")
    assert.equal(3, code)
    assert.near(3, wrong.ranks[1].per_token / wrong.ranks[2].per_token, 1e-4)
    assert.equal("the loop weighs as mean_of_means does", wrong.cause)
  end)

  it("names a second division by the microbatches, and its ratio", function()
    local loop = "replica:loss(batch, window:weights(batch)):scale(1 / 2):backward()"
    local code, wrong = measure(loop)
    assert.equal(3, code)
    assert.near(0.5, wrong.ratio, 1e-5)
    -- with two ranks the factor W, were it missing, would look the same
    assert.equal("the loop divides once more, by its 2 microbatches, or the mean over the ranks " ..
                 "is not undone by the factor W, or is taken twice", wrong.cause)
    local _, text = measure(loop, { text = true })
    assert.is_truthy(text:find("every position has 0.5 times its declared weight", 1, true), text)
  end)

  it("sees gradients that are cleared between microbatches", function()
    local code, wrong = measure("replica:zero_grad() " .. right)
    assert.equal(3, code)
    assert.equal("only the last microbatch counts: gradients are cleared in between", wrong.cause)
    assert.equal(0, wrong.worst.measured)
    assert.equal(1, wrong.worst.rank)
    assert.equal(1, wrong.worst.microbatch)
  end)

  it("sees a factor W that nothing undoes in a loop by hand", function()
    local code, wrong = measure(right, { replicate = "false", after =
      "require('marea').world():all_reduce(replica:gradients(), 'sum')" })
    assert.equal(3, code)
    assert.near(2, wrong.ratio, 1e-5)
  end)

  it("sees gradients of an earlier update that nobody cleared", function()
    local code, wrong = measure(right, { clear = "" })
    assert.equal(3, code)
    assert.equal("gradients are not cleared before the window: call zero_grad first", wrong.cause)
  end)

  it("calls a loop that bypasses loss(batch, weights) not measurable", function()
    local code, wrong = measure([[
      local losses = recipe.loss(replica.model, batch)
      replica.reducer:attach(losses:weighted_sum(window:weights(batch))):backward()]])
    assert.equal(3, code)
    assert.is_false(wrong.measurable)
    assert.is_truthy(wrong.cause:find("^not measurable"))
  end)

  it("asks for the planned ranks", function()
    local code, _, errors = measure(right, { ranks = 3 })
    assert.equal(2, code)
    assert.is_truthy(errors:find("planned for 2 ranks and was started on 3", 1, true), errors)
  end)
end)
