-- Figures for a page: each is drawn twice, for wide and for narrow pages.

local gnuplot = require "marea.report.gnuplot"
local html = require "marea.report.html"
local sheet = require "marea.report.sheet"

local figures = {}

local forms = { "wide", "narrow" }
local sizes = { wide = { 760, 380 }, narrow = { 380, 320 } }

---@class marea.Drawing
---@field name string begins ids
---@field title string
---@field description string what is to be seen, in a sentence or two
---@field draw fun(page: marea.Sheet) makes the script for a width and height
---@field sizes? table<string, integer[]>
---@field fonts? table<string, integer>

--- Draws a figure for wide and narrow pages.
---@param drawing marea.Drawing
---@return marea.Markup figure
function figures.draw(drawing)
  local scripts, labels, parts = {}, {}, {}
  for i, form in ipairs(forms) do
    labels[i] = gnuplot.labels()
    local page = sheet.new((drawing.sizes or sizes)[form], labels[i], (drawing.fonts or {})[form])
    drawing.draw(page)
    scripts[i] = page:script()
  end
  for i, svg in ipairs(gnuplot.run(scripts)) do
    parts[i] = gnuplot.element(svg, {
      id = drawing.name .. "-" .. forms[i], class = forms[i], title = drawing.title,
      description = drawing.description, labels = labels[i] })
  end
  return html.element("figure", nil, parts)
end

return figures
