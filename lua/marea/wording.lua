-- Values as readers see them, on a terminal, in a message or on a page.

local json = require "marea.json"

local wording = {}

--- A whole number with commas between thousands.
---@param number integer
---@return string
function wording.whole(number)
  local digits = ("%d"):format(number)
  return (digits:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", ""):gsub("^%-,", "-"))
end

--- "1 rank", "2 ranks".
---@param count integer
---@param noun string
---@param plural? string
---@return string
function wording.count(count, noun, plural)
  return wording.whole(count) .. " " .. (count == 1 and noun or plural or noun .. "s")
end

--- A value of a config or a record: numbers with all their digits.
---@param value any
---@param none? string for nil (default "none")
---@return string
function wording.shown(value, none)
  if value == nil then return none or "none" end
  return type(value) == "number" and json.number(value) or tostring(value)
end

--- "[2, 3]".
---@param shape integer[]
---@return string
function wording.shape(shape) return "[" .. table.concat(shape, ", ") .. "]" end

return wording
