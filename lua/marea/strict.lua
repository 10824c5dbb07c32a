-- Tables that refuse names which they do not have, with the nearest one: a typo never reads as nil.

local fault = require "marea.fault"
local nearest = require "marea.nearest"

local strict = {}

local most_names = 20

local function names_of(given)
  local names = {}
  for name in next, given do
    if type(name) == "string" and name:sub(1, 2) ~= "__" then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

---@class marea.StrictOptions
---@field code? integer of the refusal (default 2)
---@field optional? string[] names that may be absent
---@field names? string[] further names for the nearest one
---@field index? string what to say of a key that is a number; without it one reads as nil

--- What refuses a name, for a metatable's __index.
---@param given table with the names that there are
---@param what string "marea.nn", "a tensor"
---@param options? marea.StrictOptions
---@return fun(self: any, key: any): any refuse
function strict.refusal(given, what, options)
  options = options or {}
  local optional = {}
  for _, name in ipairs(options.optional or {}) do optional[name] = true end
  return function(_, key)
    if type(key) == "number" and options.index then
      fault.raise(options.code or 2, "%s", options.index)
    end
    if type(key) ~= "string" or optional[key] or key:sub(1, 2) == "__" then return nil end
    local names = names_of(given)
    for _, name in ipairs(options.names or {}) do
      if rawget(given, name) == nil then names[#names + 1] = name end
    end
    local near = nearest.find(key, names)
    local more = near and ("; did you mean %q?"):format(near) or
      #names <= most_names and "; it has " .. table.concat(names, ", ") or ""
    fault.raise(options.code or 2, "%s has no %q%s", what, key, more)
  end
end

--- Makes a table refuse names that it does not have.
---@generic T: table
---@param given T
---@param what string
---@param options? marea.StrictOptions
---@return T given
function strict.names(given, what, options)
  return setmetatable(given, { __index = strict.refusal(given, what, options) })
end

--- Makes objects refuse names that neither they nor their methods have, and `pairs`.
---@param meta table the objects' metatable
---@param methods table
---@param noun string "window"
---@param options marea.StrictOptions
function strict.objects(meta, methods, noun, options)
  meta.__name, meta.__index = noun, strict.names(methods, "a " .. noun, options)
  function meta.__pairs()
    fault.raise(options.code or 2, "a %s is read with ipairs, in its order, not with pairs", noun)
  end
end

return strict
