-- One gnuplot script in the making: settings, data, what is plotted, and the texts that its
-- placeholders stand for. Series differ in dashes and markers, so colours are not needed to tell
-- them apart.

local gnuplot = require "marea.report.gnuplot"
local json = require "marea.json"

---@class marea.Sheet
---@field size integer[] width and height
---@field narrow boolean
---@field labels marea.Labels
---@field settings string[]
---@field blocks string[]
---@field plots string[]
local Sheet = {}
Sheet.__index = Sheet

local sheet = {}

local dashes = { "solid", "(10,5)", "(2,4)", "(14,4,2,4)", "(6,3)", "(2,2)", "(18,6)",
                 "(8,3,2,3,2,3)" }
local markers = { 7, 9, 5, 13, 6, 8, 4, 12 }
local narrow_below = 500

--- How many series a figure can tell apart.
sheet.most_series = #dashes

--- A number for a script, with every bit.
sheet.number = json.number

local color = gnuplot.color

--- Begins the script of a figure.
---@param size integer[] width and height
---@param labels marea.Labels
---@param font? integer size of the type (13)
---@return marea.Sheet sheet
function sheet.new(size, labels, font)
  local self = setmetatable({ size = size, narrow = size[1] < narrow_below, labels = labels,
                              settings = {}, blocks = {}, plots = {} }, Sheet)
  self:set("terminal svg size %d,%d fixed font 'sans,%d' noenhanced", size[1], size[2], font or 13)
  self:set("border 3 lc %s lw 1", color "muted")
  self:set("tics nomirror scale 0.5 textcolor %s", color "muted")
  self:set("grid noxtics ytics lt 1 lw 1 lc %s dt solid", color "grid")
  self:set("rmargin 2.5")
  return self
end

--- Adds a setting.
---@param format string what follows "set"
---@param ... any
function Sheet:set(format, ...)
  self.settings[#self.settings + 1] = "set " .. format:format(...)
end

--- Names the axes.
---@param x string
---@param y? string
function Sheet:axes(x, y)
  self:set("xlabel '%s' textcolor %s", x, color "muted")
  if y then self:set("ylabel '%s' textcolor %s", y, color "muted") end
end

--- Shows a key above the figure, or none.
---@param shown boolean
function Sheet:key(shown)
  if not shown then
    self.settings[#self.settings + 1] = "unset key"
  else
    self:set("key above left Left reverse horizontal samplen 3 width 1 textcolor %s", color "ink")
  end
end

--- Adds a block of data and returns its name.
---@param rows number[][]
---@return string name for Sheet:plot
function Sheet:data(rows)
  local name = "$data" .. #self.blocks + 1
  local lines = { name .. " << EOD" }
  for i, row in ipairs(rows) do
    local cells = {}
    for c, cell in ipairs(row) do cells[c] = json.number(cell) end
    lines[i + 1] = table.concat(cells, " ")
  end
  lines[#lines + 1] = "EOD"
  self.blocks[#self.blocks + 1] = table.concat(lines, "\n")
  return name
end

--- Adds something to plot.
---@param format string
---@param ... any
function Sheet:plot(format, ...) self.plots[#self.plots + 1] = format:format(...) end

--- The ticks of a logarithmic axis at powers of ten.
---@param axis "x"|"y"
---@param first integer exponent
---@param last integer exponent
---@param every integer step between exponents
function Sheet:powers(axis, first, last, every)
  local ticks = {}
  for exponent = first, last, every do
    ticks[#ticks + 1] = ("%s 1e%d"):format(self.labels:add(sheet.power(exponent)), exponent)
  end
  self:set("%stics (%s)", axis, table.concat(ticks, ", "))
end

--- The whole script.
---@return string text
function Sheet:script()
  return table.concat({ table.concat(self.settings, "\n"), table.concat(self.blocks, "\n"),
                        "plot " .. table.concat(self.plots, ", \\\n  "), "" }, "\n")
end

--- How the k-th series is drawn: its line, its markers, and both.
---@param k integer
---@return string line
---@return string marker
---@return string both for the key
function sheet.style(k)
  local index = (k - 1) % #dashes + 1
  local paint = color("series-" .. index)
  local line = ("lc %s lw 1.6 dt %s"):format(paint, dashes[index])
  local marker = ("pt %d ps 0.75"):format(markers[index])
  return line, ("lc %s lw 1.4 %s"):format(paint, marker), line .. " " .. marker
end

local raised = { ["-"] = "\u{207B}", [0] = "\u{2070}", "\u{B9}", "\u{B2}", "\u{B3}", "\u{2074}",
                 "\u{2075}", "\u{2076}", "\u{2077}", "\u{2078}", "\u{2079}" }

--- A power of ten as text: 10 with a raised exponent, but 1 and 10 as they are.
---@param exponent integer
---@return string text
function sheet.power(exponent)
  if exponent == 0 then return "1" elseif exponent == 1 then return "10" end
  return "10" .. tostring(exponent):gsub(".", function(sign)
    return raised[math.tointeger(tonumber(sign)) or sign]
  end)
end

return sheet
