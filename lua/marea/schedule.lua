-- Learning rate schedules: functions from the update (from 1) to a factor of lr; they step once per
-- update, however many microbatches it has.

local fault = require "marea.fault"
local options_of = require "marea.options"

---@class marea.parts.schedule
local schedule = {}

local whole = options_of.integer

local function factor(value, what)
  if type(value) ~= "number" or not (value >= 0 and value < math.huge) then
    fault.raise(2, "%s must be a finite number of at least 0, got %s", what, tostring(value))
  end
  return value
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
  given = options_of.check(given, "schedule.warmup", { "warmup" })
  local warmup = whole(given.warmup, "schedule.warmup: warmup", 0)
  return function(update) return update < warmup and update / warmup or 1 end
end

--- Rises linearly over `warmup` updates, then falls along half a cosine to `final` at `updates`
--- (Loshchilov and Hutter 2017), and stays there.
---@param given {updates: integer, warmup?: integer, final?: number} final: factor at the end, 0
---@return fun(update: integer): number
function schedule.cosine(given)
  given = options_of.check(given, "schedule.cosine", { "updates", "warmup", "final" })
  local updates = whole(given.updates, "schedule.cosine: updates", 1)
  local warmup = whole(given.warmup or 0, "schedule.cosine: warmup", 0)
  local final = factor(given.final or 0, "schedule.cosine: final")
  return function(update)
    if update < warmup then return update / warmup end
    if update >= updates then return final end
    local progress = (update - warmup) / math.max(1, updates - warmup)
    return final + (1 - final) * 0.5 * (1 + math.cos(math.pi * progress))
  end
end

return schedule
