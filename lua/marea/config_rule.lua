-- What a value of a config's key may be.

local rule_of = {}

---@class marea.Rule
---@field kind "integer"|"number"|"string"|"boolean"
---@field default? any
---@field optional? boolean
---@field at_least? number
---@field above? number
---@field below? number
---@field choice? string[]
---@field check? fun(value: string): boolean
---@field text? string what `check` wants

--- What a rule asks for, in words: "an integer of at least 1", "a number above 0", "\"f32\" or
--- \"f64\"".
---@param rule marea.Rule
---@return string words
function rule_of.wanted(rule)
  if rule.text then return rule.text end
  if rule.choice then
    return '"' .. table.concat(rule.choice, '" or "') .. '"'
  end
  local parts = {}
  if rule.at_least then parts[#parts + 1] = "of at least " .. rule.at_least end
  if rule.above then parts[#parts + 1] = "above " .. rule.above end
  if rule.below then parts[#parts + 1] = "below " .. rule.below end
  local article = rule.kind == "integer" and "an " or "a "
  local range = table.concat(parts, " and ")
  return article .. rule.kind .. (range ~= "" and " " .. range or "")
end

--- Whether a value is one that a rule allows.
---@param rule marea.Rule
---@param value any
---@return boolean
function rule_of.fits(rule, value)
  if rule.kind == "string" then
    if type(value) ~= "string" or value == "" then return false end
    if rule.check then return rule.check(value) end
    if not rule.choice then return true end
    for _, choice in ipairs(rule.choice) do
      if choice == value then return true end
    end
    return false
  elseif rule.kind == "boolean" then
    return type(value) == "boolean"
  end
  if type(value) ~= "number" or value ~= value then return false end
  if value == math.huge or value == -math.huge then return false end
  if rule.kind == "integer" and not math.tointeger(value) then return false end
  return not (rule.at_least and value < rule.at_least or rule.above and value <= rule.above or
              rule.below and value >= rule.below)
end

return rule_of
