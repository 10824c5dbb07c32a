-- The page of the Lua API: lua/REFERENCE.md, made of the annotations of the library and the engine,
-- so that a language server and the page say the same.

local annotations = require "marea.annotations"
local markdown = require "marea.api.markdown"

---@class marea.api.Page
---@field source marea.api.Source
---@field defaults table<string, any> of a recipe's config
---@field anchors table<string, string> where a type is described, by its name
---@field lines string[]
---@field shown table<string, boolean> functions, as "nn.lua nn.cross_entropy"

local page = {}

local function add(self, text) self.lines[#self.lines + 1] = text end

local function is_in(list, name)
  for _, each in ipairs(list or {}) do
    if each == name then return true end
  end
  return false
end

-- --- types ------------------------------------------------------------------------------------

-- An alias that has no place of its own on the page is written out.
local function written_out(self, text)
  return (text:gsub("[%a_][%w_.]*", function(name)
    local found = self.source.types[name]
    if found and found.alias and not self.anchors[name] then return found.alias end
  end))
end

local function union_of(text)
  if text:find("[({<]") then return { text } end
  local members = {}
  for member in text:gmatch("[^|]+") do members[#members + 1] = member end
  return members
end

-- A type as code; a name that the page describes leads there.
local function type_text(self, text)
  local parts, plain = {}, {}
  local function flush()
    if #plain > 0 then parts[#parts + 1] = "`" .. table.concat(plain, "|") .. "`" end
    plain = {}
  end
  for _, member in ipairs(union_of(written_out(self, text))) do
    local anchor -- of the last name: what a function returns
    for name in member:gmatch("[%a_][%w_.]*") do anchor = self.anchors[name] or anchor end
    if anchor then
      flush()
      parts[#parts + 1] = ("[`%s`](#%s)"):format(member, anchor)
    else
      plain[#plain + 1] = member
    end
  end
  flush()
  return table.concat(parts, " or ")
end

-- The fields of a class, with those of its parents.
local function fields_of(self, name)
  local found = self.source.types[name]
  if not found then return {} end
  local fields = annotations.describe(found.block).field
  for _, parent in ipairs(found.parents) do
    if not self.anchors[parent] then
      table.move(fields_of(self, parent), 1, #fields_of(self, parent), #fields + 1, fields)
    end
  end
  return fields
end

-- --- items ------------------------------------------------------------------------------------

local function add_item(self, indent, label, item)
  local name = item.name and ("`%s%s` "):format(item.name, item.optional and "?" or "") or ""
  local text = item.text ~= "" and markdown.prose(item.text) or ""
  if text ~= "" then text = (text:find("^%(default") and " " or ": ") .. text end
  add(self, ("%s- %s%s(%s)%s"):format(indent, label, name, type_text(self, item.type), text))
  if #indent > 4 then return end
  for _, type_name in ipairs(annotations.types(item.type)) do
    local fields = self.anchors[type_name] and {} or fields_of(self, type_name)
    for _, field in ipairs(fields) do add_item(self, indent .. "  ", "", field) end
  end
end

local function add_prose(self, paragraphs)
  for _, text in ipairs(markdown.paragraphs(paragraphs)) do
    add(self, text)
    add(self, "")
  end
end

local function add_items(self, label, items)
  for _, item in ipairs(items) do add_item(self, "", label, item) end
end

local function parameter_text(name, said)
  for _, item in ipairs(said.param) do
    if item.name == name and item.optional then return name .. "?" end
  end
  return name
end

-- A function under the name by which it is called.
local function add_call(self, called, parameters, block)
  local said, names = annotations.describe(block), {}
  for i, name in ipairs(parameters) do names[i] = parameter_text(name, said) end
  add(self, ("#### %s(%s)"):format(called, table.concat(names, ", ")))
  add(self, "")
  add_prose(self, said.prose)
  add_items(self, "", said.param)
  add_items(self, "returns ", said["return"])
  if #said.param + #said["return"] > 0 then add(self, "") end
end

local function add_functions(self, key, entry, methods)
  for _, item in ipairs(self.source.functions[key] or {}) do
    local wanted = not entry.only or is_in(entry.only, item.name)
    if item.method == methods and wanted and not is_in(entry.without, item.name) then
      self.shown[key .. "." .. item.name] = true
      add_call(self, entry.as .. (methods and ":" or ".") .. item.name, item.parameters, item.block)
    end
  end
end

-- --- entries ----------------------------------------------------------------------------------

local function add_description(self, name)
  local found = assert(self.source.types[name], name)
  local said = annotations.describe(found.block)
  add_prose(self, said.prose)
  if found.alias then add(self, "`" .. found.alias .. "`\n") end
  for _, parent in ipairs(found.parents) do
    if self.anchors[parent] then
      add(self, ("All that %s has, and:\n"):format(type_text(self, parent)))
    end
  end
end

local function add_fields(self, name, entry)
  local list = {}
  for _, field in ipairs(fields_of(self, name)) do
    if not is_in(entry.without, field.name) then list[#list + 1] = field end
  end
  add_items(self, "", list)
  if #list > 0 then add(self, "") end
end

local function add_record(self, name, entry)
  add_description(self, name)
  add_fields(self, name, entry)
end

local function add_class(self, name, entry)
  add_record(self, name, entry)
  for _, key in ipairs(entry.from or self.source.classes[name]) do
    add_functions(self, key, entry, true)
  end
end

-- A module of nn: how it is made, and what a call of it computes.
local function add_module(self, name, entry)
  add_record(self, name, entry)
  local called = { init = entry.as, forward = entry.object }
  local key = self.source.classes[name][1]
  for _, item in ipairs(self.source.functions[key]) do
    if called[item.name] then
      self.shown[key .. "." .. item.name] = true
      add_call(self, called[item.name], item.parameters, item.block)
    end
  end
end

local function cell(text) return (text:gsub("|", "\\|")) end

local function add_config(self, name)
  add_description(self, name)
  add(self, "| key | type | default | |\n| --- | --- | --- | --- |")
  for _, field in ipairs(fields_of(self, name)) do
    local default = self.defaults[field.name]
    if field.name:find("^%a") then
      add(self, ("| `%s` | %s | %s | %s |"):format(
        field.name, cell(type_text(self, field.type)),
        default == nil and "" or ("`%s`"):format(default), cell(markdown.prose(field.text))))
    end
  end
  add(self, "")
end

-- --- the page ---------------------------------------------------------------------------------

local function type_of(entry)
  return entry.class or entry.module or entry.record or entry.config
end

-- "A window (`marea.Window`)"
local function heading(entry)
  local name = type_of(entry)
  if not name or entry.module then return entry.title end
  return ("%s (`%s`)"):format(entry.title, name)
end

local adders = { record = add_record, class = add_class, module = add_module, config = add_config }

local function add_entry(self, entry)
  if entry.title then
    add(self, ("### %s\n"):format(heading(entry)))
    if entry.text then add(self, entry.text .. "\n") end
  end
  if entry.functions then add_functions(self, entry.functions, entry, false) end
  if entry.methods then add_functions(self, entry.methods, entry, true) end
  for _, kind in ipairs { "record", "class", "module", "config" } do
    if entry[kind] then adders[kind](self, entry[kind], entry) end
  end
end

local function anchors_of(contents)
  local anchors = {}
  for _, section in ipairs(contents) do
    for _, entry in ipairs(section.entries) do
      local names = table.move(entry.also or {}, 1, #(entry.also or {}), 1, {})
      names[#names + 1] = type_of(entry)
      for _, name in ipairs(names) do anchors[name] = markdown.anchor(heading(entry)) end
    end
  end
  return anchors
end

local function add_overview(self, contents)
  for _, section in ipairs(contents) do
    local titles = {}
    for _, entry in ipairs(section.entries) do
      if entry.title then
        titles[#titles + 1] = ("[%s](#%s)"):format(entry.title, markdown.anchor(heading(entry)))
      end
    end
    add(self, ("- [**%s**](#%s): %s"):format(section.title, markdown.anchor(section.title),
                                            table.concat(titles, ", ")))
  end
  add(self, "")
end

local head = [[
# The Lua API of marea

Made by `./marea .ci/annotate.lua` from what a language server reads: the records of the operations
and the annotations of the library. Never edited by hand; a spec holds it against the code.

How to read it: `name?` may be left out. `[rows, columns]` is the shape of a tensor. Ranks count
from 0, everything else from 1 unless it says so. **Errors** have the program's exit code, and begin
with the line of the recipe or script that caused them.
]]

--- Makes the page.
---@param contents marea.api.Section[]
---@param source marea.api.Source
---@param defaults table<string, any> of a recipe's config
---@return string text Markdown
---@return table<string, boolean> shown functions, by file, local table and name
function page.make(contents, source, defaults)
  local self = { source = source, defaults = defaults, lines = {}, shown = {},
                 anchors = anchors_of(contents) }
  add(self, head)
  add_overview(self, contents)
  for _, section in ipairs(contents) do
    add(self, ("## %s\n\n%s\n"):format(section.title, section.text))
    if section.example then add(self, ("```lua\n%s\n```\n"):format(section.example)) end
    for _, entry in ipairs(section.entries) do add_entry(self, entry) end
  end
  return (table.concat(self.lines, "\n"):gsub("\n\n\n+", "\n\n"):gsub("\n*$", "\n")), self.shown
end

return page
