-- Forms of values that were read from files: what a record must have before anything reads it.
--
-- A form is a function(value, path) that returns nil for a value of that form, or what is wrong:
-- "plan.ranks: expected an integer, got a string".

local form = {}

---@alias marea.Form fun(value: any, path: string): string?

local function named(value)
  if value == nil then return "nothing" end
  if type(value) == "table" then return "a list or object" end
  local kind = math.type(value) or type(value)
  return (kind == "integer" and "an " or "a ") .. (kind == "float" and "number" or kind)
end

local function wrong(path, expected, value)
  return ("%s: expected %s, got %s"):format(path == "" and "the whole" or path, expected,
                                            named(value))
end

local function of_type(expected, fits)
  --- Says what is wrong with a value; nothing when it has the form.
  ---@param value any
  ---@param path string where it stands
  ---@return string? problem
  return function(value, path)
    return not fits(value) and wrong(path, expected, value) or nil
  end
end

form.text = of_type("a string", function(value) return type(value) == "string" end)
form.number = of_type("a number", function(value) return type(value) == "number" end)
form.integer = of_type("an integer", function(value) return math.type(value) == "integer" end)
form.scalar = of_type("a string, number or boolean", function(value)
  return value ~= nil and type(value) ~= "table"
end)
form.list_of_anything = of_type("a list", function(value) return type(value) == "table" end)

--- Integers from a lowest one on.
---@param least integer
---@return marea.Form
function form.at_least(least)
  return of_type(("an integer of at least %d"):format(least), function(value)
    return math.type(value) == "integer" and value >= least
  end)
end

--- A value that may be missing.
---@param of marea.Form
---@return marea.Form
function form.optional(of)
  return function(value, path)
    if value ~= nil then return of(value, path) end
  end
end

--- A list without holes.
---@param of marea.Form of each item
---@return marea.Form
function form.list(of)
  return function(value, path)
    if type(value) ~= "table" then return wrong(path, "a list", value) end
    local count = 0
    for key, item in pairs(value) do
      if math.type(key) ~= "integer" then return wrong(path, "a list", value) end
      local problem = of(item, ("%s[%d]"):format(path, key))
      if problem then return problem end
      count = count + 1
    end
    if count ~= #value then return path .. ": expected a list without holes" end
  end
end

local function below(path, key) return path == "" and key or path .. "." .. key end

--- An object with any names.
---@param of marea.Form of each value
---@return marea.Form
function form.map(of)
  return function(value, path)
    if type(value) ~= "table" then return wrong(path, "an object", value) end
    for key, item in pairs(value) do
      if type(key) ~= "string" then return wrong(path, "an object", value) end
      local problem = of(item, below(path, key))
      if problem then return problem end
    end
  end
end

--- An object with these names, and perhaps others.
---@param fields table<string, marea.Form>
---@return marea.Form
function form.record(fields)
  local names = {}
  for name in pairs(fields) do names[#names + 1] = name end
  table.sort(names)
  return function(value, path)
    if type(value) ~= "table" then return wrong(path, "an object", value) end
    for _, name in ipairs(names) do
      local problem = fields[name](value[name], below(path, name))
      if problem then return problem end
    end
  end
end

--- What is wrong with a value; nil when it has the form.
---@param value any
---@param of marea.Form
---@return string? problem
function form.problem(value, of) return of(value, "") end

return form
