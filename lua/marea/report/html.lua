-- Markup for the report. Text becomes markup by escaping and in no other way: an element's children
-- are markup, which goes through as it is, or plain values, which are escaped.

local html = {}

---@class marea.Markup
---@field text string
local Markup = {}
Markup.__index = Markup

local entities = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;",
                   ["'"] = "&#39;" }

--- Text without what HTML forbids: bytes that are no UTF-8 and control characters become U+FFFD.
---@param text string
---@return string readable
function html.readable(text)
  local _, bad = utf8.len(text)
  while bad do
    text = text:sub(1, bad - 1) .. "\u{FFFD}" .. text:sub(bad + 1)
    _, bad = utf8.len(text, bad)
  end
  return (text:gsub("[%z\1-\8\11-\31\127]", "\u{FFFD}"))
end

--- Text for content or a quoted attribute of HTML or SVG.
---@param text any a string, number or boolean
---@return string escaped
function html.escape(text)
  return (html.readable(tostring(text)):gsub("[&<>\"']", entities))
end

--- Markup that is taken as it is.
---@param text string
---@return marea.Markup markup
function html.raw(text) return setmetatable({ text = text }, Markup) end

local function is_markup(value) return getmetatable(value) == Markup end

local function append(children, parts)
  if not children then return end
  if is_markup(children) then
    parts[#parts + 1] = children.text
  elseif type(children) == "table" then
    for _, child in ipairs(children) do append(child, parts) end
  else
    parts[#parts + 1] = html.escape(children)
  end
end

--- Several children one after the other.
---@param children any markup, text, or a list of these; nil and false are nothing
---@return marea.Markup markup
function html.group(children)
  local parts = {}
  append(children, parts)
  return html.raw(table.concat(parts))
end

local void = { meta = true, wbr = true }
local blocks = { section = true, header = true, footer = true, main = true, nav = true, div = true,
                 p = true, h1 = true, h2 = true, h3 = true, ul = true, li = true, table = true,
                 caption = true, thead = true, tbody = true, tr = true, pre = true, dl = true,
                 figure = true, figcaption = true, title = true, head = true, body = true,
                 style = true, meta = true }

--- An element. Its attributes are in alphabetical order; one that is false is left out.
---@param name string
---@param attributes? table<string, string|number|boolean>
---@param children? any markup, text, or a list of these
---@return marea.Markup markup
function html.element(name, attributes, children)
  local names, parts = {}, { "<", name }
  for key, value in pairs(attributes or {}) do
    if value then names[#names + 1] = key end
  end
  table.sort(names)
  for _, key in ipairs(names) do
    parts[#parts + 1] = (' %s="%s"'):format(key, html.escape(attributes[key]))
  end
  parts[#parts + 1] = ">"
  if not void[name] then
    append(children, parts)
    parts[#parts + 1] = ("</%s>"):format(name)
  end
  if blocks[name] then parts[#parts + 1] = "\n" end
  return html.raw(table.concat(parts))
end

-- A name may break behind its joints, where a column is narrow.
local function breakable(name)
  if type(name) ~= "string" or not name:find("[_.]%w") then return name end
  local parts = {}
  for part in name:gmatch("[^_.]*[_.]*") do
    parts[#parts + 1] = html.group(part)
    parts[#parts + 1] = html.element("wbr")
  end
  return parts
end

-- Cells: numbers to the right, the first column heads its row.
local function row_of(cells, numeric, kind)
  local list = {}
  for c, cell in ipairs(cells) do
    local heads = kind == "col" or c == 1
    list[c] = html.element(heads and "th" or "td", {
      scope = heads and (kind == "col" and "col" or "row"),
      class = numeric[c] and "number" or false }, kind == "col" and breakable(cell) or cell)
  end
  return html.element("tr", nil, list)
end

---@class marea.HtmlTable
---@field caption any what the table shows
---@field head any[] names of the columns
---@field rows any[][] cells; the first of a row is its name
---@field numeric? table<integer, boolean> columns of numbers; without it all but the first
---@field unseen? boolean the caption is for those who do not see the page

--- A table with a caption and heads for columns and rows; it scrolls by itself where it is wide.
---@param given marea.HtmlTable
---@return marea.Markup markup
function html.table(given)
  local numeric = given.numeric
  if not numeric then
    numeric = {}
    for c = 2, #given.head do numeric[c] = true end
  end
  local rows = {}
  for i, cells in ipairs(given.rows) do rows[i] = row_of(cells, numeric, "row") end
  return html.element("div", { class = "scroll", tabindex = 0, role = "group",
                               ["aria-label"] = html.plain(given.caption) },
    html.element("table", { class = next(numeric) == nil and "prose" }, {
      html.element("caption", { class = given.unseen and "unseen" or false }, given.caption),
      html.element("thead", nil, row_of(given.head, numeric, "col")),
      html.element("tbody", nil, rows) }))
end

--- The text of markup without its tags, or of plain text.
---@param children any
---@return string text
function html.plain(children)
  if not is_markup(children) then return tostring(children) end
  local text = children.text:gsub("<[^>]*>", "")
  for symbol, entity in pairs(entities) do
    if symbol ~= "&" then text = text:gsub(entity, symbol) end
  end
  return (text:gsub("&amp;", "&"))
end

return html
