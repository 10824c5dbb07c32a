-- The errors of a gradient by parameter: for both dtypes the component that uses the largest share
-- of its gate, and that gate, on one logarithmic axis.

local figures = require "marea.report.figures"
local gnuplot = require "marea.report.gnuplot"
local sheet = require "marea.report.sheet"

local parity_figure = {}

local most_rows = 40
local row_height = 18

local color = gnuplot.color

-- The largest share of a gate that a parameter uses; beyond all for what is not finite.
local function used(parameter)
  local most = 0
  for _, dtype in ipairs { "f32", "f64" } do
    local worst = parameter[dtype].worst
    if worst and not worst.error then return math.huge end
    if worst and worst.gate > 0 then most = math.max(most, worst.error / worst.gate) end
  end
  return most
end

-- The parameters that a figure has room for: those nearest to their gates, in the model's order.
local function chosen(report)
  local order = {}
  for i, parameter in ipairs(report.parameters) do
    if parameter.f32.worst and parameter.f64.worst then
      order[#order + 1] = { i = i, parameter = parameter, used = used(parameter) }
    end
  end
  table.sort(order, function(a, b)
    if a.used ~= b.used then return a.used > b.used end
    return a.i < b.i
  end)
  local kept = table.move(order, 1, math.min(#order, most_rows), 1, {})
  table.sort(kept, function(a, b) return a.i < b.i end)
  return kept, #order
end

-- Exponents of the axis: from below the smallest error that is not 0, with room for those that are,
-- to above the largest gate.
local function range_of(rows)
  local least, most, room = math.huge, 0, 0
  for _, row in ipairs(rows) do
    for _, dtype in ipairs { "f32", "f64" } do
      local worst = row.parameter[dtype].worst
      if worst.error == 0 then room = 1 end
      if worst.error and worst.error > 0 then
        least, most = math.min(least, worst.error), math.max(most, worst.error)
      end
      if worst.gate > 0 then
        least, most = math.min(least, worst.gate), math.max(most, worst.gate)
      end
    end
  end
  return math.floor(math.log(least, 10) - 0.1) - room, math.ceil(math.log(most, 10) + 0.2)
end

local function clamp(value, least, most)
  if not value then return most end
  return math.max(least, math.min(value, most))
end

local function plot_dtype(page, rows, dtype, least, most, style)
  local errors, gates = {}, {}
  for y, row in ipairs(rows) do
    local worst = row.parameter[dtype].worst
    errors[y] = { clamp(worst.error, least, most), y }
    gates[y] = { clamp(worst.gate, least, most), y - 0.35, 0, 0.7 }
  end
  page:plot("%s using 1:2:3:4 with vectors nohead lw 2.4 lc %s notitle", page:data(gates),
            color "gate")
  page:plot("%s using 1:2 with points %s notitle", page:data(errors), style)
end

local styles = { f32 = "pt 7 ps 0.8 lc " .. color "series-1",
                 f64 = "pt 8 ps 0.8 lw 1.4 lc " .. color "series-2" }

local function draw(page, rows)
  local first, last = range_of(rows)
  local least, most, ticks = 10.0 ^ first, 10.0 ^ last, {}
  local every = math.ceil((last - first) / (page.narrow and 5 or 10))
  local room = math.floor(page.size[1] * (page.narrow and 0.08 or 0.063)) -- characters
  for y, row in ipairs(rows) do
    ticks[y] = ("%s %d"):format(page.labels:add(row.parameter.name, room, true), y)
  end
  page:axes "error of a gradient component, |a - b|"
  page:set("border 1")
  page:set("logscale x")
  page:set("xrange [%s:%s]", sheet.number(least), sheet.number(most))
  page:set("yrange [%g:0.4]", #rows + 0.6)
  page:powers("x", last - (last - first) // every * every, last, every)
  page:set("ytics scale 0 textcolor %s (%s)", color "ink", table.concat(ticks, ", "))
  page:set("grid xtics")
  page:set("key at screen 0.02, screen %s left top Left reverse horizontal maxrows 1 samplen 2 " ..
           "width 1 textcolor %s", sheet.number(1 - 8 / page.size[2]), color "ink")
  page:set("tmargin 2.5")
  plot_dtype(page, rows, "f32", least, most, styles.f32)
  plot_dtype(page, rows, "f64", least, most, styles.f64)
  page:plot("keyentry with points %s title 'f32 error'", styles.f32)
  page:plot("keyentry with points %s title 'f64 error'", styles.f64)
  page:plot("keyentry with points pt '|' lc %s title 'gate'", color "gate")
end

--- Draws the errors of a report by parameter.
---@param report marea.ParityReport
---@return marea.Markup figure
function parity_figure.draw(report)
  local rows, all = chosen(report)
  local height = 90 + row_height * #rows
  local shown = #rows < all and ("The %d parameters nearest to their gates, of %d. "):format(
    #rows, all) or ""
  return figures.draw {
    name = "parameter-errors", title = "Errors of the gradient by parameter, with both gates",
    description = shown .. "For each parameter the component nearest to its gate: its error in " ..
      "f32 and f64, and the gate that it has to stay below. Errors of 0 stand at the left edge.",
    sizes = { wide = { 760, height }, narrow = { 380, height } },
    fonts = { wide = 13, narrow = 10 }, draw = function(page) draw(page, rows) end }
end

return parity_figure
