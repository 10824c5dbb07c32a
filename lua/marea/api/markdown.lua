-- Texts of annotations as Markdown: shapes, names and tables become code, and what Markdown would
-- take for a sign of its own is kept as it is.

local markdown = {}

-- A name with a dot, a colon or an underscore inside, perhaps called: recipe.loss, window:weights,
-- rank_tokens, nn.class "Mine".
local function is_name(word)
  if word == "<close>" or word:find("^_%a[%w_]*$") then return true end
  return word:find("^[%a_][%w_/]*[._:][%w_]") ~= nil and word:find("^[%w_.:/*]+$") ~= nil and
    not word:find("[.:]$")
end

local function escaped(text) return (text:gsub("[*\\]", "\\%0"):gsub("<%f[%a/!]", "\\<")) end

-- What is left of a text once code in backticks and brackets is taken out: word by word.
local function words(text)
  return (text:gsub("%S+", function(word)
    local before, core, after = word:match("^([(]*)(.-)([),.;:]*)$")
    if is_name(core) then return before .. "`" .. core .. "`" .. after end
    return escaped(word)
  end))
end

-- The first stretch of code at or behind a position, its bounds and its text: what stands in
-- backticks, or a bracket with the name in front of it and the brackets behind it.
local function next_code(text, at)
  local from, code, behind = text:match("()`([^`]+)`()", at)
  local opening = text:find("[%[{]", at)
  if not opening or from and from < opening then return from, code, behind end
  local first = text:sub(at, opening - 1):match("()[%w_.]*$") + at - 1
  local last = opening
  repeat
    local bracket, next_one = text:match("^(%b[])()", last)
    if not bracket then bracket, next_one = text:match("^(%b{})()", last) end
    last = next_one or last
  until not bracket
  if last == opening then return nil end
  return first, text:sub(first, last - 1), last
end

--- A paragraph.
---@param text string in one line
---@return string markdown
function markdown.prose(text)
  local parts, at = {}, 1
  while true do
    local from, code, behind = next_code(text, at)
    parts[#parts + 1] = words(text:sub(at, (from or 0) - 1))
    if not from then return table.concat(parts) end
    parts[#parts + 1] = "`" .. code .. "`"
    at = behind
  end
end

--- Paragraphs; what is said of errors has one of its own.
---@param paragraphs string[]
---@return string[] markdown
function markdown.paragraphs(paragraphs)
  local list = {}
  for _, paragraph in ipairs(paragraphs) do
    local text = " " .. paragraph
    text = text:gsub("([.:)]) (Errors[,: ])", "%1\n%2"):gsub("^ ", "")
    for line in text:gmatch("[^\n]+") do
      list[#list + 1] = markdown.prose(line):gsub("^Errors", "**Errors**")
    end
  end
  return list
end

--- The anchor that GitHub and others give a heading.
---@param heading string without its signs
---@return string anchor
function markdown.anchor(heading)
  return (heading:lower():gsub("[^%w%s_-]", ""):gsub("%s", "-"))
end

return markdown
