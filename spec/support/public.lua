-- The public functions of a module, found by walking what it returns: its functions, those of
-- tables in it, and the methods of classes that its functions make objects of.

local annotations = require "marea.annotations"

local public = {}

-- What the contract of command modules describes (marea.Command).
local of_commands = { define = true, run = true }

--- Whether a module is a command.
---@param module any
---@return boolean
function public.is_command(module)
  return type(module) == "table" and type(rawget(module, "name")) == "string" and
    type(rawget(module, "summary")) == "string" and type(rawget(module, "run")) == "function"
end

--- The public functions that a file defines.
---@param path string the end of the file's path, "lua/marea/plan.lua"
---@param module any what the file returned
---@return table[] functions {name, call}, in the order of their lines
function public.functions(path, module)
  local found, seen, followed = {}, {}, {}
  local follow, visit

  local function own(call)
    local info = debug.getinfo(call, "S")
    return info.what == "Lua" and info.source:sub(-#path) == path
  end

  function visit(value, depth, skipped)
    if seen[value] then return end
    seen[value] = true
    for key, item in next, value do
      if type(item) == "function" and own(item) then
        local named = type(key) == "string" and key:sub(1, 2) ~= "__"
        if named and not seen[item] and not (skipped and skipped[key]) then
          seen[item] = true
          found[#found + 1] = { name = key, call = item }
        end
        follow(item, key == "__index")
      elseif type(item) == "table" and depth > 0 then
        visit(item, depth - 1)
      end
    end
    if type(rawget(value, "__index")) == "table" then visit(value.__index, 0) end
  end

  -- Classes are upvalues; the methods behind an __index that is a function are its upvalues.
  function follow(call, is_index)
    if followed[call] or not own(call) then return end
    followed[call] = true
    for i = 1, math.huge do
      local name, value = debug.getupvalue(call, i)
      if not name then return end
      if type(value) == "function" then
        follow(value)
      elseif type(value) == "table" and name ~= "_ENV" and
          (is_index or rawget(value, "__index") ~= nil) then
        visit(value, 0)
      end
    end
  end

  if type(module) == "table" then visit(module, 1, public.is_command(module) and of_commands) end
  table.sort(found, function(a, b)
    return debug.getinfo(a.call, "S").linedefined < debug.getinfo(b.call, "S").linedefined
  end)
  return found
end

--- The parameters of a Lua function, without self; "..." for further ones.
---@param call function
---@return string[] names
function public.parameters(call)
  local info, names = debug.getinfo(call, "u"), {}
  for i = 1, info.nparams do
    local name = debug.getlocal(call, i)
    if name ~= "self" then names[#names + 1] = name end
  end
  if info.isvararg then names[#names + 1] = "..." end
  return names
end

local opening = { ["function"] = true, ["if"] = true, ["do"] = true, ["repeat"] = true }
local closing = { ["end"] = true, ["until"] = true }
local after_nothing = { ["end"] = true, ["else"] = true, ["elseif"] = true, ["until"] = true }

-- The position behind the string that begins at `at`.
local function behind_string(text, at)
  local quote = text:sub(at, at)
  repeat
    at = text:find("[\\\n" .. quote .. "]", at + 1) or #text
    local escaped = text:sub(at, at) == "\\"
    if escaped then at = at + 1 end
  until not escaped
  return at + 1
end

-- A text without its strings and comments.
local function code_of(text)
  local parts, at = {}, 1
  while true do
    local mark = text:find("[\"'%-]", at)
    parts[#parts + 1] = text:sub(at, (mark or 0) - 1)
    if not mark then return table.concat(parts, " ") end
    if text:sub(mark, mark) ~= "-" then
      at = behind_string(text, mark)
      parts[#parts + 1] = '""'
    elseif text:sub(mark, mark + 1) == "--" then
      at = text:find("\n", mark, true) or #text + 1
    else
      parts[#parts + 1], at = "-", mark + 1
    end
  end
end

--- Whether the first function in a text returns values; functions inside it do not count.
---@param text string
---@return boolean returns
function public.returns(text)
  text = code_of(text)
  local stack, functions = {}, 0
  for word, at in text:gmatch("%f[%w_]([%a_][%w_]*)()") do
    if opening[word] and (word == "function" or functions > 0) then
      stack[#stack + 1] = word
      if word == "function" then functions = functions + 1 end
    elseif closing[word] and functions > 0 then
      if table.remove(stack) == "function" then functions = functions - 1 end
      if functions == 0 then return false end
    elseif word == "return" and functions == 1 then
      local following = text:match("^%s*([%a_]*)", at)
      if not after_nothing[following] and text:find("^%s*[^;%s]", at) then return true end
    end
  end
  return false
end

-- A function that a field of a class describes, or the class of the engine that it is like.
local function is_described(name, found, described)
  for _, field in ipairs(found.fields) do
    if field.name == name then return true end
  end
  for _, parents in pairs(found.types) do
    for _, parent in ipairs(parents) do
      if described[parent .. ":" .. name] then return true end
    end
  end
  return false
end

--- What the public functions of a file lack.
---@param path string the end of the file's path
---@param text string of the file
---@param module any what the file returned
---@param described table<string, boolean> methods of the engine's classes, as "marea.group:size"
---@return string[] problems
function public.shortcomings(path, text, module, described)
  local problems, lines, found = {}, annotations.lines(text), annotations.read(text)
  if public.is_command(module) and not text:find("\n---@type marea.Command\n", 1, true) then
    problems[1] = path .. ": a command that is not typed as one"
  end
  for _, item in ipairs(public.functions(path, module)) do
    local info = debug.getinfo(item.call, "S")
    local body = table.concat(lines, "\n", info.linedefined, info.lastlinedefined)
    local block = annotations.above(lines, info.linedefined)
    if #block > 0 or not is_described(item.name, found, described) then
      for _, problem in ipairs(annotations.lacks(block, public.parameters(item.call),
                                                 public.returns(body))) do
        problems[#problems + 1] = ("%s:%d: %s: %s"):format(path, info.linedefined, item.name,
                                                           problem)
      end
    end
  end
  return problems
end

return public
