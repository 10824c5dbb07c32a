-- Figures with groups of bars.

local gnuplot = require "marea.report.gnuplot"
local sheet = require "marea.report.sheet"

local bars = {}

local color, number = gnuplot.color, sheet.number
local key_room = 40

---@class marea.BarFigure
---@field x_label string
---@field y_label string
---@field groups {label: string, values: number[], texts?: string[]}[] a value for each series
---@field series string[] names
---@field logarithmic? boolean of counts: the axis begins below 1
---@field labelled? boolean texts stand above the bars
---@field border? {after: integer, label: string} a line between two groups

-- Names of groups get smaller, and are cut, where they have less room.
local function add_ticks(page, groups)
  local ticks, font = {}, page.narrow and 10 or 13
  local room = math.floor((page.size[1] - 80) / #groups / (font * 0.58))
  for g, group in ipairs(groups) do ticks[g] = page.labels:add(group.label, room) .. " " .. g end
  page:set("xtics (%s) scale 0 font 'sans,%d'", table.concat(ticks, ", "), font)
end

local function add_range(page, given)
  local most = 0
  for _, group in ipairs(given.groups) do
    for _, value in ipairs(group.values) do most = math.max(most, value) end
  end
  if most == 0 then most = 1 end
  if given.logarithmic then
    page:set("logscale y")
    page:set("yrange [0.5:%s]", number(most * 2))
    page:powers("y", 0, math.ceil(math.log(most, 10)), 1)
  else
    page:set("yrange [0:%s]", number(most * 1.12))
  end
end

local function add_border(page, border)
  if not border then return end
  local x = border.after + 0.5
  page:set("arrow from first %g, graph 0 to first %g, graph 1 nohead lw 1.4 dt (4,3) lc %s", x, x,
           color "gate")
  page:set("label %s at first %g, graph 0.94 left offset 0.7,0 textcolor %s",
           page.labels:add(border.label), x, color "gate")
end

-- Series differ in how much of their colour their bars have.
local fills = { "solid 0.75 border", "solid 0.12 border", "solid 0.45 border", "solid 0 border" }

local function plot_series(page, given, k)
  local rows, width = {}, 0.8 / #given.series
  for g, group in ipairs(given.groups) do
    local x, value = g - 0.4 + width * (k - 0.5), group.values[k]
    if value > 0 or not given.logarithmic then rows[#rows + 1] = { x, value, width * 0.92 } end
    if given.labelled then
      page:set("label %s at first %s, first %s center offset 0,0.7 textcolor %s",
               page.labels:add(group.texts[k]), number(x), number(value), color "ink")
    end
  end
  if #rows == 0 then rows[1] = { -9, 1, 0.1 } end -- outside: gnuplot draws no empty block
  page:plot("%s using 1:2:3 with boxes lc %s fs %s title %s", page:data(rows),
            color("series-" .. (k - 1) % sheet.most_series + 1), fills[(k - 1) % #fills + 1],
            page.labels:add(given.series[k], key_room))
end

--- Draws groups of bars.
---@param page marea.Sheet
---@param given marea.BarFigure
function bars.draw(page, given)
  page:axes(given.x_label, given.y_label)
  page:key(#given.series > 1)
  page:set("xrange [0.5:%g]", #given.groups + 0.5)
  add_range(page, given)
  add_ticks(page, given.groups)
  add_border(page, given.border)
  for k in ipairs(given.series) do plot_series(page, given, k) end
end

return bars
