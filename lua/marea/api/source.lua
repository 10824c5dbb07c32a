-- The library's own sources as the page of its API reads them: which types are declared where, and
-- which functions stand in which file, in the order in which they were written.

local annotations = require "marea.annotations"
local core = require "marea.core"

local source = {}

---@class marea.api.Function
---@field name string
---@field method boolean called with ":"
---@field parameters string[] without self
---@field block string[]

---@class marea.api.Type
---@field name string
---@field block string[]
---@field parents string[]
---@field file string relative to the library
---@field holder? string the local table that the class is bound to
---@field alias? string what an alias stands for

---@class marea.api.Source
---@field types table<string, marea.api.Type> by name
---@field functions table<string, marea.api.Function[]> by file and holder, "nn.lua nn"
---@field classes table<string, string[]> files and holders that a class is bound to

local function add_types(found, file, block, holder)
  for tag, rest in annotations.tags(block) do
    if tag == "class" or tag == "alias" then
      local name = rest:match("^[%w_.]+")
      local known = found.types[name]
      -- A class that is bound again, for further functions, keeps its first description.
      if not known then
        known = { name = name, block = block, file = file, holder = holder,
                  parents = tag == "class" and annotations.named_types("class", rest) or {},
                  alias = tag == "alias" and rest:match("^[%w_.]+%s+(.*)$") or nil }
        found.types[name] = known
      elseif #known.block < #block then
        known.block, known.parents = block, annotations.named_types("class", rest)
      end
      if tag == "class" and holder then
        found.classes[name] = found.classes[name] or {}
        table.insert(found.classes[name], file .. " " .. holder)
      end
    end
  end
end

local function add_function(found, file, line, block)
  local holder, mark, name, list = line:match("^function ([%w_]+)([.:])([%w_]+)%((.-)%)")
  if not holder then return end
  local parameters = {}
  for parameter in list:gmatch("[%w_.]+") do parameters[#parameters + 1] = parameter end
  local key = file .. " " .. holder
  found.functions[key] = found.functions[key] or {}
  table.insert(found.functions[key], { name = name, method = mark == ":", parameters = parameters,
                                       block = block })
end

--- Adds what a file declares.
---@param found marea.api.Source
---@param file string the name by which it is found again
---@param text string
function source.add(found, file, text)
  local lines = annotations.lines(text .. "\n--\n")
  for number, line in ipairs(lines) do
    if not line:find("^%s*%-%-%-") then
      local block = annotations.above(lines, number)
      add_types(found, file, block, line:match("^local ([%w_]+) ="))
      add_function(found, file, line, block)
    end
  end
end

--- An index without files.
---@return marea.api.Source
function source.new() return { types = {}, functions = {}, classes = {} } end

local function add_folder(found, root, folder)
  for _, name in ipairs(core.file.list(root .. folder)) do
    local path = folder .. name
    if core.file.is_folder(root .. path) then
      add_folder(found, root, path .. "/")
    elseif name:find("%.lua$") then
      source.add(found, path, core.file.read(root .. path))
    end
  end
end

--- Reads every file of the library. Errors: code 1 for one that cannot be read.
---@param root string the library's folder, with its last slash
---@return marea.api.Source
function source.read(root)
  local found = source.new()
  add_folder(found, root, "")
  return found
end

return source
