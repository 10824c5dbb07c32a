-- Rows of words as text: columns two spaces apart, as wide as their widest word.

local table_text = {}

local units = { "B", "kB", "MB", "GB", "TB" }

--- Bytes for readers: three digits and a unit of 1000.
---@param bytes integer
---@return string text such as "1.13 MB"
function table_text.bytes(bytes)
  local unit, value = 1, bytes
  while value >= 999.5 and units[unit + 1] do
    value, unit = value / 1000, unit + 1
  end
  if unit == 1 then return ("%d B"):format(bytes) end
  local digits = value >= 99.95 and 0 or value >= 9.995 and 1 or 2
  return ("%." .. digits .. "f %s"):format(value, units[unit])
end

local function width_of(word) return utf8.len(word) or #word end

--- Rows as lines.
---@param rows string[][] all of the same number of words
---@param to_the_right boolean[] for each column: whether it is flush right
---@return string text without a newline at the end
function table_text.of(rows, to_the_right)
  local widths, lines = {}, {}
  for _, row in ipairs(rows) do
    for i, word in ipairs(row) do widths[i] = math.max(widths[i] or 0, width_of(word)) end
  end
  for r, row in ipairs(rows) do
    local cells = {}
    for i, word in ipairs(row) do
      local gap = (" "):rep(widths[i] - width_of(word))
      cells[i] = to_the_right[i] and gap .. word or word .. gap
    end
    lines[r] = table.concat(cells, "  "):gsub("%s+$", "")
  end
  return table.concat(lines, "\n")
end

return table_text
