-- Tables of options: a key that nobody reads is a typo, and is refused.

local fault = require "marea.fault"
local nearest = require "marea.nearest"

local options = {}

--- Refuses, with code 2 and the nearest name, keys that are not among `names`, and anything that is
--- no table. nil counts as an empty table.
---@param given table?
---@param what string name of the function, for the message
---@param names string[]
---@return table given
function options.check(given, what, names)
  if given == nil then return {} end
  if type(given) ~= "table" then
    fault.raise(2, "%s expects a table of options, got %s", what, type(given))
  end
  local known = {}
  for _, name in ipairs(names) do known[name] = true end
  for key in pairs(given) do
    if not known[key] then
      local near = nearest.find(tostring(key), names)
      fault.raise(2, "%s has no option %q; %s", what, tostring(key),
                  near and ("did you mean %q?"):format(near) or
                  "it has " .. table.concat(names, ", "))
    end
  end
  return given
end

--- Refuses, with code 2, an option that is no integer of at least `at_least`.
---@param value any
---@param what string "corpus.symbols: train"
---@param at_least integer
---@return integer value
function options.integer(value, what, at_least)
  local integer = type(value) == "number" and math.tointeger(value)
  if not integer or integer < at_least then
    fault.raise(2, "%s must be an integer of at least %d, got %s", what, at_least, tostring(value))
  end
  return integer
end

return options
