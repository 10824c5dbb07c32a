-- Reads annotations for language servers out of Lua sources: blocks of "---" lines, their tags, and
-- the types in them, in the grammar of LuaLS.

local annotations = {}

--- The lines of a text.
---@param text string
---@return string[] lines
function annotations.lines(text)
  local lines = {}
  for line in (text:gsub("\n$", "") .. "\n"):gmatch("(.-)\n") do lines[#lines + 1] = line end
  return lines
end

--- The block of "---" lines right above a line.
---@param lines string[]
---@param number integer
---@return string[] block empty where there is none
function annotations.above(lines, number)
  local first = number
  while first > 1 and lines[first - 1]:find("^%s*%-%-%-") do first = first - 1 end
  local block = {}
  for i = first, number - 1 do block[#block + 1] = lines[i]:match("^%s*(.*)$") end
  return block
end

--- The tags of a block, "param" and so on, with what follows each.
---@param block string[]
---@return fun(): string?, string?
function annotations.tags(block)
  local i = 0
  return function()
    while i < #block do
      i = i + 1
      local tag, rest = block[i]:match("^%-%-%-%s*@(%a+)%s*(.*)$")
      if tag then return tag, rest end
    end
  end
end

-- --- types ------------------------------------------------------------------------------------

local parse_type

local function skip(state, pattern)
  local found = state.text:match("^%s*(" .. pattern .. ")", state.at)
  if not found then return nil end
  state.at = state.text:find(found, state.at, true) + #found
  return found
end

local function expect(state, pattern, what)
  return skip(state, pattern) or error({ problem = "expected " .. what }, 0)
end

local function parse_members(state, closing, named)
  while not skip(state, closing) do
    if named then
      if skip(state, "%[") then
        parse_type(state)
        expect(state, "%]", "]")
      else
        expect(state, "[%w_.]+", "a name")
      end
      skip(state, "%?")
      if skip(state, ":") then
        parse_type(state)
      elseif closing == "}" then
        error({ problem = "expected :" }, 0)
      end
    else
      parse_type(state)
    end
    if not skip(state, ",") then
      expect(state, closing, closing:gsub("%%", ""))
      return
    end
  end
end

local function parse_function(state)
  expect(state, "%(", "(")
  parse_members(state, "%)", true)
  if not skip(state, ":") then return end
  repeat
    if state.text:match("^%s*[%a_][%w_]*%s*:", state.at) then
      skip(state, "[%a_][%w_]*")
      skip(state, ":")
    end
    parse_type(state)
  until not skip(state, ",")
end

local function parse_unit(state)
  if skip(state, "{") then
    parse_members(state, "}", true)
  elseif skip(state, '"[^"]*"') or skip(state, "%-?%d+") then
    return
  elseif skip(state, "%(") then
    parse_type(state)
    expect(state, "%)", ")")
  else
    local name = skip(state, "%.%.%.") or expect(state, "[%a_][%w_.]*", "a type")
    if name == "fun" then return parse_function(state) end
    if name ~= "..." then state.names[#state.names + 1] = name end
    if skip(state, "<") then parse_members(state, ">", false) end
  end
end

function parse_type(state)
  repeat
    parse_unit(state)
    repeat until not skip(state, "%[%]")
  until not skip(state, "|")
  skip(state, "%?")
end

--- The names in the type with which a text begins.
---@param text string
---@return string[]? names nil for a text that begins with no type
---@return string rest what follows the type, or what is wrong
function annotations.types(text)
  local state = { text = text, at = 1, names = {} }
  local good, problem = pcall(parse_type, state)
  if good then return state.names, text:sub(state.at) end
  if type(problem) ~= "table" then error(problem, 0) end
  return nil, ("%s at %q"):format(problem.problem, text:sub(state.at))
end

-- What stands between a tag and its type.
local prefixes = {
  param = "^[%w_.]+%??%s+", field = "^%[?[%w_]+%]?%??%s+", alias = "^[%w_.]+%s+", type = "",
  ["return"] = "", overload = "",
}

--- The names of types in a tag.
---@param tag string
---@param rest string
---@return string[] names
---@return string? problem
function annotations.named_types(tag, rest)
  if tag == "class" then
    local names = {}
    for name in (rest:match("^[%w_.]+%s*:%s*(.*)$") or ""):gmatch("[%w_.]+") do
      names[#names + 1] = name
    end
    return names
  end
  if not prefixes[tag] then return {} end
  local _, last = rest:find(prefixes[tag])
  if not last then return {}, "no name" end
  local names, after = annotations.types(rest:sub(last + 1))
  if not names then return {}, after end
  if tag == "return" and after:find("^%s*[%a_][%w_.]*%s*,") then
    return names, "a comma behind the name of what is returned begins another type"
  end
  return names
end

-- --- blocks -----------------------------------------------------------------------------------

--- A tag with a type, such as a parameter or a field.
---@class marea.annotations.Item
---@field name? string of what is returned, it may be left out
---@field optional boolean
---@field type string as written
---@field text string what follows; "" where nothing does

---@class marea.annotations.Block
---@field prose string[] paragraphs
---@field param marea.annotations.Item[]
---@field field marea.annotations.Item[]
---@field return marea.annotations.Item[]

local function item_of(tag, rest)
  local name, optional = "", ""
  if tag ~= "return" then
    name, optional, rest = rest:match("^(%[?[%w_.]+%]?)(%??)%s+(.*)$")
  end
  local _, text = annotations.types(rest)
  local item = { name = name, optional = optional == "?", text = text:match("^%s*(.*)$"),
                 type = rest:sub(1, #rest - #text):match("^(.-)%s*$") }
  if tag == "return" then
    item.name, item.text = item.text:match("^([%a_][%w_]*)%s*(.*)$")
    if not item.name then item.text = text:match("^%s*(.*)$") end
  end
  return item
end

--- What a block says. Text in front of a field belongs to the field; a line that goes on after a
--- tag is set in by one more space.
---@param block string[]
---@return marea.annotations.Block said
function annotations.describe(block)
  local said = { prose = {}, param = {}, field = {}, ["return"] = {} }
  local ahead, last, of_class = {}, nil, false
  for _, line in ipairs(block) do
    local tag, rest = line:match("^%-%-%-%s*@(%a+)%s*(.*)$")
    local text = line:match("^%-%-%-%s*(.-)%s*$")
    of_class = of_class or tag == "class"
    if tag then
      last = tag ~= "prose" and said[tag] and item_of(tag, rest)
      if last then table.insert(said[tag], last) end
      if last and #ahead > 0 then last.text, ahead = table.concat(ahead, " "), {} end
    elseif last and line:find("^%-%-%-  ") then
      last.text = last.text .. " " .. text
    elseif of_class then
      ahead[#ahead + 1] = text
    elseif text == "" or #said.prose == 0 then
      table.insert(said.prose, text)
    else
      local before = said.prose[#said.prose]
      said.prose[#said.prose] = before == "" and text or before .. " " .. text
    end
  end
  return said
end

-- --- files ------------------------------------------------------------------------------------

local function read_block(block, found)
  local class
  for tag, rest in annotations.tags(block) do
    if tag == "class" or tag == "alias" then
      local name = rest:match("^[%w_.]+")
      found.types[name] = annotations.named_types("class", tag == "class" and rest or "")
      if tag == "class" then class = name end
    elseif tag == "field" and class then
      local field = rest:match("^[%w_]+")
      if field then found.fields[#found.fields + 1] = { class = class, name = field } end
    end
  end
  return class
end

--- What a file declares: its types, their fields, and the functions of classes that are bound to a
--- local table.
---@param text string
---@return table found {types = parents by name, fields = list of {class, name}, functions = list of
---  {class, name, method, parameters, block, line}}
function annotations.read(text)
  local found = { types = {}, fields = {}, functions = {} }
  local lines = annotations.lines(text .. "\n--\n")
  local class_of = {}
  for number, line in ipairs(lines) do
    if not line:find("^%s*%-%-%-") then
      local block = annotations.above(lines, number)
      local class = read_block(block, found)
      local bound = line:match("^local ([%w_]+) =")
      if bound and class then class_of[bound] = class end
      local holder, mark, name, list = line:match("^function ([%w_]+)([.:])([%w_]+)%((.-)%)")
      if holder and class_of[holder] then
        local parameters = {}
        for parameter in list:gmatch("[%w_.]+") do parameters[#parameters + 1] = parameter end
        table.insert(found.functions, { class = class_of[holder], name = name, method = mark == ":",
                                        parameters = parameters, block = block, line = number })
      end
    end
  end
  return found
end

--- What a block lacks for a function: prose, each parameter by name, what it returns.
---@param block string[]
---@param parameters string[] without self; "..." for further ones
---@param returns boolean whether the function returns values
---@return string[] problems
function annotations.lacks(block, parameters, returns)
  if #block == 0 then return { "no annotation" } end
  local problems, given, wanted, has_return, prose = {}, {}, {}, false, false
  for _, line in ipairs(block) do prose = prose or line:find("^%-%-%-%s*[^@%s]") ~= nil end
  if not prose then problems[1] = "no sentence" end
  for tag, rest in annotations.tags(block) do
    if tag == "param" then given[rest:match("^[%w_.]+")] = true end
    has_return = has_return or tag == "return"
  end
  for _, name in ipairs(parameters) do
    wanted[name] = true
    if not given[name] and name:sub(1, 1) ~= "_" then
      problems[#problems + 1] = "no parameter " .. name
    end
  end
  for name in pairs(given) do
    if not wanted[name] then problems[#problems + 1] = "no such parameter: " .. name end
  end
  if returns and not has_return then problems[#problems + 1] = "no return" end
  return problems
end

return annotations
