-- The reference: the gradient of a window's declared objective by one process, from recipe.loss and
-- the objective alone. The recipe's accumulate, the reducer and the ranks take no part in it.

local core = require "marea.core"
local loss = require "marea.loss"
local plan = require "marea.plan"
local Window = require "marea.window"

local reference = {}

---@class marea.Reference
---@field gradient marea.tensor flat, in the model's layout
---@field absolute marea.tensor flat: sums of |gradient| over microbatches
---@field loss number of the window, as declared
---@field windows marea.Window[] by rank, rank 0 at 1

--- The windows of all planned ranks, counted by this process.
--- Errors: code 2 for an update that the plan does not have, code 5 as Window:count.
---@param session marea.Session corpus, plan, config, terms
---@param step integer update, from 1
---@param options? marea.WindowOptions
---@return marea.Window[] windows by rank, rank 0 at 1
function reference.windows(session, step, options)
  local windows = {}
  plan.require_step(session.plan, step)
  for rank = 0, #session.plan[step] - 1 do
    windows[rank + 1] = Window.new(session, step, rank, options):count()
  end
  return windows
end

--- Runs the window's microbatches one by one in rank order and adds up their gradients.
---@param session marea.Session recipe, config, terms, corpus, plan
---@param model marea.Module materialized root that no reducer follows; its gradients are used up
---@param step integer update, from 1
---@param options? marea.WindowOptions
---@return marea.Reference result
function reference.gradient(session, model, step, options)
  local windows = reference.windows(session, step, options)
  local flat = model:gradients()
  local gradient = core.zeros(flat:shape(), flat:dtype())
  local absolute = core.zeros(flat:shape(), flat:dtype())
  local total = 0
  for _, window in ipairs(windows) do
    for _, made in ipairs(window) do
      model:zero_grad()
      local value = loss.weighted(session, model, made, window:weights(made))
      total = total + value:item()
      if value:requires_gradient() then value:backward() end
      gradient:add_scaled_(1, flat)
      core.add_absolute(absolute, flat)
    end
  end
  model:zero_grad()
  return { gradient = gradient, absolute = absolute, loss = total, windows = windows }
end

--- A flat buffer as named tensors, for files: {{name, tensor}, ...} in the order of the model.
---@param model marea.Module
---@param flat marea.tensor in the layout of the model
---@return marea.named_tensor[] named views
function reference.named(model, flat)
  local named = {}
  for i, range in ipairs(model.unit:ranges()) do
    named[i] = { range.name, flat:slice(range.offset + 1, range.count):reshape(range.shape) }
  end
  return named
end

return reference
