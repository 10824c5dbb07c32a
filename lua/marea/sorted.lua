-- Tables in an order that does not depend on how they were filled.

local sorted = {}

--- The keys of one table or of several together, each once, the smallest first.
---@param ... table<string, any>
---@return string[] keys
function sorted.keys(...)
  local keys, seen = {}, {}
  for _, map in ipairs { ... } do
    for key in pairs(map) do
      if not seen[key] then keys[#keys + 1] = key end
      seen[key] = true
    end
  end
  table.sort(keys)
  return keys
end

return sorted
