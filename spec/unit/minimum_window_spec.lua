-- The published window, by one process through window, objective and the recipe's loop: counts,
-- losses, and every component of the gradient under three objectives.

local core = require "marea.core"
local json = require "marea.json"
local Window = require "marea.window"
local golden = dofile "spec/support/golden_window.lua"
local training = dofile "spec/support/training.lua"

-- |a - b| <= 1e-7 (|b| + 1e-2): the file is f32.
local gate = { absolute = 1e-9, relative = 1e-7 }

-- Gradients of the recipe's loop in a dtype, made once for each objective.
local made = {}
local function gradient(objective, dtype)
  local key = objective .. dtype
  if not made[key] then
    local session = golden.session { objective = objective, dtype = dtype }
    made[key] = { flat = training.play(session), model = session.model, session = session }
  end
  return made[key].flat, made[key].model, made[key].session
end

describe("the golden window", function()
  it("has the published counts, seen from each rank", function()
    local session = golden.session { dtype = "f64" }
    for rank = 0, 1 do
      local window = Window.new(session, 1, rank):count()
      assert.equal(golden.number "global_tokens", window.tokens)
      assert.same(json.decode(golden.metadata.rank_tokens), window.rank_tokens)
      assert.equal(window.rank_tokens[rank + 1], window.my_tokens)
      assert.equal(16, window.sequence_count)
      assert.equal(2, #window)
      assert.same({ 1106 }, window.denominators)
    end
  end)

  it("has the published loss sums, microbatch by microbatch", function()
    local sums, expected = {}, json.decode(golden.metadata.microbatch_loss_sums)
    training.play(golden.session({ dtype = "f64" }, sums))
    assert.equal(4, #sums)
    for i, sum in ipairs(sums) do assert.near(expected[i], sum, 1e-11 * expected[i]) end
  end)

  for _, objective in ipairs(golden.objectives) do
    it("has the published gradient under " .. objective .. ", in every component", function()
      local flat, model = gradient(objective, "f64")
      assert.equal(282628, model:count())
      local found = core.compare(flat, golden.gradient(model, objective), gate)
      assert.equal(0, found.failing)
      assert.is_true(found.dot_bb > 0)
    end)

    it("is within 1e-7 of that in f32 under " .. objective, function()
      local found = core.compare(gradient(objective, "f32"), gradient(objective, "f64"),
                                 { absolute = 1e-7 })
      print(("golden window, %s: largest f32 error against f64 %.3g"):format(objective,
                                                                             found.max_abs))
      assert.equal(0, found.failing)
    end)
  end

  it("tells the objectives apart by the published differences", function()
    for _, objective in ipairs { "mean_of_means", "per_sequence" } do
      local found = core.compare(gradient(objective, "f64"), gradient("global_token", "f64"),
                                 { absolute = 1 })
      assert.near(golden.number("max_abs_difference_from_global_token." .. objective),
                  found.max_abs, 1e-12)
    end
  end)

  for _, objective in ipairs(golden.objectives) do
    it("has the published loss and the gradient of the reference: " .. objective, function()
      local flat, _, session = gradient(objective, "f64")
      local found = training.reference(session)
      assert.near(golden.number("loss." .. objective), found.loss, 1e-13)
      assert.equal(0, core.compare(flat, found.gradient, training.gate).failing)
    end)
  end

  it("is not matched by another objective's gradient", function()
    local flat, model = gradient("mean_of_means", "f64")
    local found = core.compare(flat, golden.gradient(model, "global_token"), gate)
    assert.is_true(found.failing > 280000)
    assert.near(0.0503, found.max_abs, 5e-5)
  end)
end)
