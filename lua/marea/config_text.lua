-- A resolved config as lines of text, with marks for what differs from the defaults and for what
-- was given on the command line.

local config = require "marea.config"
local sorted = require "marea.sorted"
local wording = require "marea.wording"

local config_text = {}

local longest_in_columns = 20

-- Keys that the command line gave.
local function given_keys(recipe)
  local given = {}
  for key, value in pairs(recipe.options.overrides or {}) do
    local name = math.type(key) == "integer" and tostring(value):match("^[^=]*") or key
    given[name] = true
  end
  return given
end

-- {key, value, mark} of every key, the recipe's own included.
local function entries_of(recipe)
  local entries, given, defaults = {}, given_keys(recipe), config.defaults()
  local values = config.values(recipe.config)
  defaults.ranks = recipe.options.world_size or 1
  for _, key in ipairs(sorted.keys(values, defaults)) do
    local default = defaults[key]
    if default == config.no_default then default = nil end
    local mark = values[key] ~= default and "*" or " "
    entries[#entries + 1] = { key, wording.shown(values[key]), given[key] and "=" or mark }
  end
  return entries
end

-- Cells of equal form in as many columns as fit, read down each column.
local function in_columns(cells, cell_width, width)
  local columns = math.max(1, (width - 2 + 3) // (cell_width + 3))
  local rows = (#cells + columns - 1) // columns
  local lines = {}
  for r = 1, rows do
    local line = {}
    for c = 0, columns - 1 do line[#line + 1] = cells[c * rows + r] end
    lines[r] = "  " .. table.concat(line, "   "):gsub("%s+$", "")
  end
  return lines
end

local function fill(text, width) return text .. (" "):rep(width - #text) end

--- A recipe's config in aligned columns, with a line that explains the marks. Long values stand
--- below, one a line.
---@param recipe marea.Recipe
---@param width integer letters of a line
---@return string[] lines
function config_text.lines(recipe, width)
  local key_width, value_width, short, long = 0, 0, {}, {}
  for _, entry in ipairs(entries_of(recipe)) do
    table.insert(#entry[2] > longest_in_columns and long or short, entry)
    key_width = math.max(key_width, #entry[1])
  end
  for _, entry in ipairs(short) do value_width = math.max(value_width, #entry[2]) end
  local function cell(entry)
    return entry[3] .. " " .. fill(entry[1], key_width) .. "  " .. fill(entry[2], value_width)
  end
  local cells = {}
  for i, entry in ipairs(short) do cells[i] = cell(entry) end
  local lines = in_columns(cells, key_width + value_width + 4, width)
  for _, entry in ipairs(long) do lines[#lines + 1] = "  " .. cell(entry) end
  lines[#lines + 1] = "  * not the default   = given on the command line"
  return lines
end

return config_text
