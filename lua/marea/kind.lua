-- What a value is, in the words of messages.

local kind = {}

--- What a value is: "nothing", "a tensor", "a batch", "the class nn.Linear", "a nn.Linear", "a
--- number". Addresses and contents are left out.
---@param value any
---@return string text
function kind.of(value)
  local meta = debug.getmetatable(value)
  local name = type(value) ~= "string" and type(meta) == "table" and rawget(meta, "__name")
  if value == nil then return "nothing" end
  if type(name) == "string" then
    name = name:gsub("^marea%.", "")
    return (name:find "^[aeiou]" or name:find "^nn%.") and "an " .. name or "a " .. name
  end
  if type(value) == "table" and type(rawget(value, "__name")) == "string" then
    return "the class " .. value.__name
  end
  return (type(value) == "userdata" and "an object of " or "a ") .. type(value)
end

--- Whether a value is a tensor.
---@param value any
---@return boolean
function kind.is_tensor(value)
  return type(value) == "userdata" and (debug.getmetatable(value) or {}).__name == "marea.tensor"
end

--- A short value as it stands in a text, else what it is.
---@param value any
---@return string text
function kind.shown(value)
  if type(value) == "string" then return ("%q"):format(value) end
  if type(value) == "number" or type(value) == "boolean" then return tostring(value) end
  return kind.of(value)
end

return kind
