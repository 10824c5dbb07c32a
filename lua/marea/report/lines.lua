-- Figures with one or several lines.

local gnuplot = require "marea.report.gnuplot"
local series_of = require "marea.report.series"
local sheet = require "marea.report.sheet"

local lines = {}

local color, number = gnuplot.color, sheet.number
local key_room = 40 -- characters of a name in a key

---@class marea.Line
---@field label string
---@field points number[][] {x, y} each, at least one
---@field index? integer of its dashes and markers (default: its place)

---@class marea.LineFigure
---@field x_label string
---@field y_label string
---@field lines marea.Line[]
---@field from_zero? boolean the y axis begins at 0
---@field logarithmic? boolean
---@field rule? {y: number, label: string} a horizontal line
---@field spans? {from: number, to: number, label: string}[] named parts of the x axis
---@field unmarked? boolean lines without markers

local function plot_line(page, line, k, given)
  local index = line.index or k
  local drawn, marked, both = sheet.style(index)
  page:plot("%s using 1:2 with lines %s notitle", page:data(line.points), drawn)
  if not given.unmarked then
    page:plot("%s using 1:2 with points %s notitle",
              page:data(series_of.marked(line.points, index - 1)), marked)
  end
  if #given.lines > 1 or given.rule then
    page:plot("keyentry with %s title %s",
              given.unmarked and "lines " .. drawn or "linespoints " .. both,
              page.labels:add(line.label, key_room))
  end
end

-- Names of parts of the x axis stand in a strip above the curves.
local function add_spans(page, spans)
  for i, span in ipairs(spans or {}) do
    if i > 1 then
      page:set("arrow from first %s, graph 0 to first %s, graph 1 nohead lw 1 dt (2,3) lc %s",
               number(span.from), number(span.from), color "muted")
    end
    page:set("label %s at first %s, graph 0.96 center textcolor %s", page.labels:add(span.label),
             number((span.from + span.to) / 2), color "muted")
  end
end

-- A rule goes from edge to edge and has its name in the key.
local function add_rule(page, rule)
  if not rule then return end
  local style = ("lw 1.4 dt (4,3) lc %s"):format(color "gate")
  page:set("arrow from graph 0, first %s to graph 1, first %s nohead %s", number(rule.y),
           number(rule.y), style)
  page:plot("keyentry with lines %s title %s", style, page.labels:add(rule.label))
end

-- Least and most of one coordinate of all points.
local function bounds(given, coordinate)
  local least, most = math.huge, -math.huge
  for _, line in ipairs(given.lines) do
    for _, point in ipairs(line.points) do
      least, most = math.min(least, point[coordinate]), math.max(most, point[coordinate])
    end
  end
  return least, most
end

-- x from the first to the last point, with room where there is one only.
local function x_range(given)
  local least, most = bounds(given, 1)
  if least == most then return least - 1, most + 1 end
  return least, most
end

local function y_range(given)
  local least, most = bounds(given, 2)
  if given.rule then least, most = math.min(least, given.rule.y), math.max(most, given.rule.y) end
  if given.logarithmic then return least / 1.3, most * 1.3 end
  if given.spans then most = most + (most - least) * 0.12 end
  local room = most > least and (most - least) * 0.06 or math.max(math.abs(most) * 0.1, 1e-12)
  return given.from_zero and 0 or least - room, most + room
end

--- Draws lines.
---@param page marea.Sheet
---@param given marea.LineFigure
function lines.draw(page, given)
  page:axes(given.x_label, given.y_label)
  page:key(#given.lines > 1 or given.rule ~= nil)
  local left, right = x_range(given)
  local low, high = y_range(given)
  if given.logarithmic then page:set("logscale y") end
  page:set("xrange [%s:%s]", number(left), number(right))
  page:set("yrange [%s:%s]", number(low), number(high))
  add_spans(page, given.spans)
  for k, line in ipairs(given.lines) do plot_line(page, line, k, given) end
  add_rule(page, given.rule)
end

return lines
