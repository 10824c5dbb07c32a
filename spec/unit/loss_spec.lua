-- What recipe.loss must return, and how a wrong value is told.

local fault = require "marea.fault"
local objective = require "marea.objective"
local training = dofile "spec/support/training.lua"

local ranks = { { { { 1, 2 }, { 3 } } } }

local function refusal(loss, terms)
  local session = training.session(training.toy(ranks, { loss = loss, objective = terms }))
  local window = session:window(1)
  session.driver:zero_grad()
  local ok, raised = pcall(function()
    session.driver:loss(window[1], window:weights(window[1])) -- the line that is blamed
  end)
  assert.is_false(ok)
  local message, code = fault.of(raised)
  local place, text = message:match("^(.-:%d+: )(.*)$")
  assert.matches("loss_spec.lua:", place, 1, true)
  return text, code
end

describe("recipe.loss", function()
  it("must return one loss per position, unweighted", function()
    for text, loss in pairs {
      ["got nothing"] = function() end,
      ["got a number"] = function() return 3 end,
      ["got a table"] = function(model, batch) return { model(batch) } end,
    } do
      local message, code = refusal(loss)
      assert.same({ "recipe.loss must be a tensor [3] (one loss per position), " .. text, 1 },
                  { message, code })
    end
    assert.equal("recipe.loss must have shape [3] (one loss per position), got []",
                 (refusal(function(model, batch) return model(batch):sum() end)))
    assert.equal("recipe.loss must have shape [3] (one loss per position), got [3,1]",
                 (refusal(function(model, batch) return model(batch):reshape { 3, 1 } end)))
  end)

  it("must return a table by name for an objective of terms", function()
    local terms = { { name = "main", unit = objective.global_token },
                    { name = "aux", unit = "sequence" }, { name = "l2", unit = "window" } }
    assert.equal("recipe.loss must return a table {name = tensor} for the objective's terms, " ..
                 "got a tensor", (refusal(function(model, batch) return model(batch) end, terms)))
    assert.equal("recipe.loss: aux must be a tensor [2] (one loss per sequence), got nothing",
                 (refusal(function(model, batch) return { main = model(batch) } end, terms)))
    assert.equal("recipe.loss: aux must have shape [2] (one loss per sequence), got [3]",
                 (refusal(function(model, batch)
                   return { main = model(batch), aux = model(batch) }
                 end, terms)))
    assert.equal("recipe.loss: l2 must have shape [] (one value), got [2]",
                 (refusal(function(model, batch)
                   local two = model(batch):slice(1, 2)
                   return { main = model(batch), aux = two, l2 = two }
                 end, terms)))
  end)
end)
