-- Writes annotations/operations.lua, the reference of the tensor's operations for language servers,
-- from the records of the operations, and the page of the Lua API from that and all other
-- annotations. What else marea.core exports is described by hand beside it.

local core = require "marea.core"

local annotate = {}

local width = 100

local head = [[
---@meta _

-- Made from the records of the operations (engine/grad/ops) by marea.annotate, and never by hand:
-- `marea .ci/annotate.lua` makes it anew.

---@class marea.tensor
local tensor = {}
]]

local type_of_kind = {
  real = "marea.tensor", constant = "marea.tensor", i32 = "marea.tensor", i64 = "marea.tensor",
  tensors = "marea.tensor[]", number = "number", integer = "integer", flag = "boolean",
  shape = "integer[]",
}

-- Adds prose in lines of the house's width.
local function add_prose(lines, text)
  local line = "---"
  for word in text:gmatch("%S+") do
    if #line + 1 + #word > width then
      lines[#lines + 1] = line
      line = "---"
    end
    line = line .. " " .. word
  end
  lines[#lines + 1] = line
end

-- "i64 [sequences] rows of each sequence", "added to the variance (default 1e-05)"
local function text_of(argument)
  local text = argument.text
  if argument.kind == "i32" or argument.kind == "i64" then text = argument.kind .. " " .. text end
  if not argument.optional then return text end
  if argument.kind == "flag" then
    return ("%s (default %s)"):format(text, argument.fallback ~= 0)
  elseif argument.kind == "number" or argument.kind == "integer" then
    return ("%s (default %g)"):format(text, argument.fallback)
  end
  return text
end

-- One line of a tag; its text goes above where the line would be too long.
local function add_tag(lines, tag, argument)
  local line = ("---@%s %s%s %s"):format(tag, argument.name, argument.optional and "?" or "",
                                         type_of_kind[argument.kind])
  local text = text_of(argument)
  if #line + 1 + #text <= width then
    lines[#lines + 1] = line .. " " .. text
  else
    add_prose(lines, tag == "field" and text or argument.name .. ": " .. text)
    lines[#lines + 1] = line
  end
end

-- The class of the options table that ends the call; nil for an operation without one.
local function add_options(lines, record)
  local class, optional = "marea." .. record.name .. "_options", true
  local first = true
  for _, argument in ipairs(record.arguments) do
    if argument.named then
      if first then lines[#lines + 1] = "---@class " .. class end
      add_tag(lines, "field", argument)
      first, optional = false, optional and argument.optional
    end
  end
  if first then return nil end
  lines[#lines + 1] = ""
  return ("---@param options%s %s"):format(optional and "?" or "", class)
end

local function add_operation(lines, record)
  local options = add_options(lines, record)
  local names, itself = {}, record.arguments[1]
  add_prose(lines, record.text)
  add_prose(lines, ("self is %s: %s.%s"):format(itself.name, itself.text,
                                               record.differentiable and "" or " No gradient."))
  for i, argument in ipairs(record.arguments) do
    if i > 1 and not argument.named then
      add_tag(lines, "param", argument)
      names[#names + 1] = argument.name
    end
  end
  if options then
    lines[#lines + 1] = options
    names[#names + 1] = "options"
  end
  lines[#lines + 1] = "---@return marea.tensor result " .. record.result_text
  if record.second_text then
    lines[#lines + 1] = "---@return marea.tensor second " .. record.second_text
  end
  lines[#lines + 1] = ("function tensor:%s(%s) end"):format(record.name, table.concat(names, ", "))
end

--- The annotations of operations.
---@param records marea.operation[] as core.operations lists them
---@return string text a Lua file that is read and never run
function annotate.operations(records)
  local lines = { head }
  for i, record in ipairs(records) do
    if i > 1 then lines[#lines + 1] = "" end
    add_operation(lines, record)
  end
  return table.concat(lines, "\n") .. "\n"
end

local folder = debug.getinfo(1, "S").source:match("^@(.*[/\\])annotate%.lua$") or ""

--- Where the annotations of operations lie in this library.
---@return string path
function annotate.path() return folder .. "annotations/operations.lua" end

--- Where the page of the Lua API lies, beside the library.
---@return string path
function annotate.page_path() return folder .. "../REFERENCE.md" end

--- The page of the Lua API. Errors: code 1 for a library that cannot be read.
---@return string text Markdown
---@return table<string, boolean> shown functions, as "nn.lua nn.cross_entropy"
function annotate.page()
  local _, rules = require("marea.config").resolve { given = {} }
  local defaults = {}
  for name, rule in pairs(rules) do defaults[name] = rule.default end
  return require("marea.api.page").make(require "marea.api.contents",
                                        require("marea.api.source").read(folder), defaults)
end

--- Writes the annotations of this program's operations into the library, and the page of the Lua
--- API beside it, each as a whole or not at all.
--- Errors: code 1 for a library that cannot be written.
function annotate.write()
  core.file.write(annotate.path(), annotate.operations(core.operations))
  core.file.write(annotate.page_path(), (annotate.page()))
end

return annotate
