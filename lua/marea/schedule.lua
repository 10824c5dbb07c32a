-- Learning rate schedules: functions from the update (from 1) to a factor of lr; they step once per
-- update, however many microbatches it has.

local fault = require "marea.fault"

local schedule = {}

local function whole(value, what, at_least)
  local integer = type(value) == "number" and math.tointeger(value)
  if not integer or integer < at_least then
    fault.raise(2, "%s must be an integer of at least %d, got %s", what, at_least, tostring(value))
  end
  return integer
end

--- Always 1.
---@return fun(update: integer): number
function schedule.constant()
  return function() return 1 end
end

--- Rises linearly to 1 over `warmup` updates (update u: u / warmup), then stays.
---@param given {warmup: integer}
---@return fun(update: integer): number
function schedule.warmup(given)
  local warmup = whole(given.warmup, "schedule.warmup: warmup", 0)
  return function(update) return update < warmup and update / warmup or 1 end
end

--- Rises linearly over `warmup` updates, then falls along half a cosine to `final` at `updates`
--- (Loshchilov and Hutter 2017), and stays there.
---@param given {updates: integer, warmup?: integer, final?: number} final: factor at the end, 0
---@return fun(update: integer): number
function schedule.cosine(given)
  local updates = whole(given.updates, "schedule.cosine: updates", 1)
  local warmup = whole(given.warmup or 0, "schedule.cosine: warmup", 0)
  local final = given.final or 0
  return function(update)
    if update < warmup then return update / warmup end
    if update >= updates then return final end
    local progress = (update - warmup) / math.max(1, updates - warmup)
    return final + (1 - final) * 0.5 * (1 + math.cos(math.pi * progress))
  end
end

return schedule
