-- Runs a recipe's own accumulate on a window with one control broken into the mechanism under it.

local controls = require "marea.controls"

local sabotage = {}

local function weighted(session, control, step, options)
  local window = session:window(step, options.window)
  if control.share then
    local world = session.world:size()
    function window:share(made, t) return control.share(self, made, t, world) end
  end
  session:accumulate(window)
end

local function with_unit(session, control, step, options)
  session:with_terms(function() weighted(session, control, step, options) end,
                     controls.replaced_terms(session.terms, control.unit))
end

-- A replica reduces over this process alone; a bare model's own all_reduce is turned into nothing.
local function without_reduction(session, _, step, options)
  local window = session:window(step, options.window)
  if session.recipe.replicate then
    session:drive { world = options.alone, broadcast = false }
    session:accumulate(window)
    session:drive { broadcast = false }
  else
    session.driver.skip_reduction = true
    session:accumulate(window)
    session.driver.skip_reduction = nil
  end
end

-- The next window, unless there is none or it is one that is refused.
local function another_window(session, step)
  local good, window = pcall(session.window, session, step + 1)
  return good and window or session:window(step)
end

-- The buffer holds the gradient of another window, and the recipe's zero_grad does nothing.
local function without_zero_grad(session, _, step, options)
  session:accumulate(another_window(session, step))
  local left_over = session.model:gradients():copy()
  local driven, gradients = session:driven(), session.model:gradients()
  driven:zero_grad()
  gradients:copy_(left_over)
  driven.zero_grad = function() end
  session:accumulate(session:window(step, options.window))
  driven.zero_grad = nil
end

local function zero_grad_each_time(session, _, step, options)
  local driven, calls = session:driven(), 0
  local loss, own = driven.loss, rawget(driven, "loss")
  function driven.loss(self, ...)
    calls = calls + 1
    if calls > 1 then self:zero_grad() end
    return loss(self, ...)
  end
  session:accumulate(session:window(step, options.window))
  driven.loss = own
end

local mechanisms = {
  no_reduction = without_reduction,
  forgotten_zero_grad = without_zero_grad,
  zero_grad_each_microbatch = zero_grad_each_time,
}

--- The gradient that the recipe's loop arrives at under a control. All ranks call it together.
---@param session marea.Session built
---@param control marea.Control
---@param step integer update, from 1
---@param options {window?: marea.WindowOptions, alone: marea.World} alone: this process alone
---@return marea.tensor gradient a copy
function sabotage.gradient(session, control, step, options)
  local run = mechanisms[control.name] or (control.unit and with_unit) or weighted
  run(session, control, step, options)
  return session.model:gradients():copy()
end

return sabotage
