-- What the C module exports, against what its annotations describe.

local annotations = require "marea.annotations"

local exports = {}

local function holds_functions(value)
  if type(value) ~= "table" then return false end
  for key, item in pairs(value) do
    if type(item) == "function" and key:sub(1, 2) ~= "__" then return true end
  end
  return false
end

--- What a module exports: functions as "marea.core.zeros" and "marea.tensor:shape", other values as
--- "marea.core#operations"; and the classes that must be described.
---@param module table
---@param registry table where metatables are registered by name
---@return table<string, boolean> names
---@return table<string, boolean> classes
function exports.of(module, registry)
  local names, classes = {}, {}
  local function add(class, mark, methods)
    classes[class] = true
    for name, item in pairs(methods) do
      if type(item) == "function" then names[class .. mark .. name] = true end
    end
  end
  add("marea.core", ".", module)
  for name, item in pairs(module) do
    if holds_functions(item) then add("marea.core." .. name, ".", item) end
    if type(item) ~= "function" then names["marea.core#" .. name] = true end
  end
  for name, item in pairs(registry) do
    if type(name) == "string" and name:find("^marea%.") and type(item) == "table" then
      local methods = rawget(item, "__index")
      if holds_functions(methods) then add(name, ":", methods) end
      if rawget(item, "__close") then classes[name] = true end
    end
  end
  return names, classes
end

--- The same from annotations.
---@param texts table<string, string> by path
---@param problems string[] what is wrong with them is added
---@return table<string, boolean> names
---@return table<string, boolean> classes
function exports.annotated(texts, problems)
  local names, classes = {}, {}
  for path, text in pairs(texts) do
    local found = annotations.read(text)
    for _, item in ipairs(found.functions) do
      names[item.class .. (item.method and ":" or ".") .. item.name] = true
      for _, problem in ipairs(annotations.lacks(item.block, item.parameters, false)) do
        problems[#problems + 1] = ("%s:%d: %s"):format(path, item.line, problem)
      end
    end
    for _, field in ipairs(found.fields) do
      if field.class == "marea.core" then names["marea.core#" .. field.name] = true end
    end
    for name in pairs(found.types) do classes[name] = true end
  end
  return names, classes
end

local function only_in(a, b, format, problems)
  for name in pairs(a) do
    if not b[name] then problems[#problems + 1] = format:format(name) end
  end
end

--- What is wrong between the exports of a module and annotations, sorted.
---@param module table
---@param registry table
---@param texts table<string, string> by path
---@return string[] problems
function exports.differences(module, registry, texts)
  local problems = {}
  local exported, types = exports.of(module, registry)
  local described, classes = exports.annotated(texts, problems)
  only_in(exported, described, "%s has no annotation", problems)
  only_in(described, exported, "%s is annotated and does not exist", problems)
  only_in(types, classes, "%s is no class of the annotations", problems)
  table.sort(problems)
  return problems
end

return exports
