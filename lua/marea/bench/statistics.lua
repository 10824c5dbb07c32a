-- What repeated measurements come to.

local statistics = {}

-- Linear between the two values beside the place.
local function at(sorted, share)
  local place = 1 + share * (#sorted - 1)
  local low = math.floor(place)
  local high = math.min(low + 1, #sorted)
  return sorted[low] + (place - low) * (sorted[high] - sorted[low])
end

---@class marea.Spread
---@field median number
---@field low number lower quartile
---@field high number upper quartile
---@field count integer of values

--- Median and quartiles.
---@param values number[] at least one
---@return marea.Spread spread
function statistics.spread(values)
  local sorted = table.move(values, 1, #values, 1, {})
  table.sort(sorted)
  return { median = at(sorted, 0.5), low = at(sorted, 0.25), high = at(sorted, 0.75),
           count = #sorted }
end

--- The median.
---@param values number[] at least one
---@return number median
function statistics.median(values) return statistics.spread(values).median end

--- Median and quartiles of a[i] / b[i]: each pair was measured in the same turn, so what disturbs a
--- machine for seconds disturbs both.
---@param a number[]
---@param b number[] as many
---@return marea.Spread spread
function statistics.ratio(a, b)
  local ratios = {}
  for i, value in ipairs(a) do ratios[i] = value / b[i] end
  return statistics.spread(ratios)
end

return statistics
