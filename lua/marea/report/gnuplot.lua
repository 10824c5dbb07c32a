-- Runs gnuplot, and makes of its SVG a part of a page: colours that follow the page's theme, ids of
-- its own, a title and a description, and nothing that names a program or a moment.
--
-- Text that comes from data never reaches gnuplot: a script has placeholders of the same length,
-- which are replaced in the SVG.

local core = require "marea.core"
local fault = require "marea.fault"
local html = require "marea.report.html"
local launch = require "marea.launch"

local gnuplot = {}

local time_limit = 60 -- seconds

-- Colours by name: what a script says, the page's variable, and its value where there is no page.
local palette = {
  { "ink", "#b00001", "#1c2126" }, { "muted", "#b00002", "#515a63" },
  { "grid", "#b00003", "#dcdcd6" }, { "gate", "#b00004", "#9c2b1f" },
  { "series-1", "#a00001", "#1a5fb4" }, { "series-2", "#a00002", "#b5480c" },
  { "series-3", "#a00003", "#2b7a3f" }, { "series-4", "#a00004", "#7d3c98" },
  { "series-5", "#a00005", "#826400" }, { "series-6", "#a00006", "#0b7285" },
  { "series-7", "#a00007", "#a61e4d" }, { "series-8", "#a00008", "#495057" },
}

local script_colors, page_colors = {}, {}
for _, row in ipairs(palette) do
  local r, g, b = row[2]:match("^#(%x%x)(%x%x)(%x%x)$")
  script_colors[row[1]] = row[2]
  page_colors[("%d,%d,%d"):format(tonumber(r, 16), tonumber(g, 16), tonumber(b, 16))] =
    ("var(--%s,%s)"):format(row[1], row[3])
end

--- The colour of a name in a script.
---@param name string "ink", "muted", "grid", "gate", "series-1" to "series-8"
---@return string color quoted
function gnuplot.color(name)
  return ("rgb '%s'"):format(script_colors[name] or error("no colour " .. name))
end

---@class marea.Labels
---@field texts string[]
local Labels = {}
Labels.__index = Labels

--- The texts of one figure.
---@return marea.Labels labels
function gnuplot.labels() return setmetatable({ texts = {} }, Labels) end

-- At most so many characters: from the beginning, or the last ones where these tell more.
local function shortened(text, most, from_end)
  local length = utf8.len(text)
  if not length or length <= most then return text end
  if from_end then return "\u{2026}" .. text:sub(utf8.offset(text, 1 - most)) end
  return text:sub(1, utf8.offset(text, most) - 1) .. "\u{2026}"
end

--- A quoted placeholder for a text of data.
---@param text string
---@param most? integer characters that there is room for (default 80)
---@param from_end? boolean the last characters are kept of a longer one
---@return string quoted
function Labels:add(text, most, from_end)
  text = shortened(html.readable(text), math.max(2, most or 80), from_end)
  self.texts[#self.texts + 1] = text
  local mark = ("Q%02d"):format(#self.texts)
  local length = utf8.len(text) or #text
  return ("'%s%s'"):format(mark, ("q"):rep(length - #mark))
end

--- The escaped texts in the place of their marks.
---@param svg string
---@return string svg
function Labels:put(svg)
  return (svg:gsub("Q(%d%d)q*", function(number)
    local text = self.texts[tonumber(number)]
    return text and html.escape(text)
  end))
end

-- --- running ----------------------------------------------------------------------------------

local function take(path)
  local stream <close> = assert(io.open(path, "rb"))
  return stream:read("a")
end

local function start(script, output, errors)
  local good, process = pcall(core.process.start, {
    arguments = { "gnuplot", "-d", script }, input = "/dev/null", output = output,
    errors = errors, set = { LC_ALL = "C", GNUTERM = "svg" }, unset = launch.launcher_names })
  if good then return process end
  fault.raise_at(4, "", "gnuplot, which draws the figures, cannot be started: install " ..
                 "gnuplot-nox (Debian, Ubuntu), gnuplot-minimal (Fedora) or gnuplot (Homebrew)")
end

--- Runs scripts one after the other; each draws one figure.
--- Errors: code 4 where there is no gnuplot, code 1 where it refuses a script.
---@param scripts string[]
---@return string[] figures SVG as gnuplot wrote it
function gnuplot.run(scripts)
  local names = { os.tmpname(), os.tmpname(), os.tmpname() }
  local _ <close> = setmetatable({}, { __close = function()
    for _, name in ipairs(names) do os.remove(name) end
  end })
  local stream = assert(io.open(names[1], "wb"))
  assert(stream:write(table.concat(scripts, "\nreset session\n")))
  assert(stream:close())
  local process <close> = start(table.unpack(names))
  local ending, code = process:wait(time_limit)
  local problem = take(names[3])
  if ending ~= "exit" or code ~= 0 then
    fault.raise_at(1, "", "gnuplot failed (%s %d): %s", ending, code,
                   problem:match("[^\n]*%S[^\n]*") or "it said nothing")
  end
  local figures = {}
  for svg in take(names[2]):gmatch("<svg.-</svg>") do figures[#figures + 1] = svg end
  if #figures ~= #scripts then
    fault.raise_at(1, "", "gnuplot drew %d of %d figures", #figures, #scripts)
  end
  return figures
end

-- --- gnuplot's SVG as a part of a page --------------------------------------------------------

-- The definitions of markers that a body uses, with those that these use.
local function used_markers(definitions, body)
  local wanted, list = {}, {}
  local function want(text)
    for id in text:gmatch("href='#(gpPt%d+)'") do
      if not wanted[id] and definitions[id] then
        wanted[id] = true
        want(definitions[id])
      end
    end
  end
  want(body)
  for id in pairs(wanted) do list[#list + 1] = id end
  table.sort(list, function(a, b) return tonumber(a:sub(5)) < tonumber(b:sub(5)) end)
  for i, id in ipairs(list) do list[i] = definitions[id] end
  return table.concat(list)
end

-- The drawing, without header, empty groups, tooltips and what the page's style decides.
local function clean(svg)
  local definitions = {}
  local head, body = svg:match("<defs>(.-)</defs>(.*)</g>%s*</svg>")
  for line in head:gmatch("[^\n]+") do
    local id = line:match("id='(gpPt%d+)'")
    if id then definitions[id] = line:match("^%s*(.-)%s*$") end
  end
  body = body:gsub("<title>gnuplot_plot_%d+</title>", ""):gsub(' id="gnuplot_plot_%d+" ', "")
  body = body:gsub(' font%-family="[^"]*"', ""):gsub('%s+class="gridline"', "")
  body = body:gsub(' stroke%-linecap="butt" stroke%-linejoin="miter"', "")
  body = body:gsub("%s*\n%s*", "\n"):gsub("  +", " "):gsub(" '", "'")
  local count
  repeat body, count = body:gsub("<g[^<>]*>%s*</g>\n?", "") until count == 0
  return used_markers(definitions, body), body:match("^%s*(.-)%s*$")
end

local function theme(text)
  text = text:gsub("rgb%(%s*(%d+),%s*(%d+),%s*(%d+)%)", function(r, g, b)
    return page_colors[("%d,%d,%d"):format(r, g, b)]
  end)
  text = text:gsub('color="%a+"', 'color="currentColor"')
  return (text:gsub("([\"'])black%1", "%1currentColor%1"))
end

---@class marea.SvgOptions
---@field id string begins all ids of the figure
---@field title string
---@field description string
---@field labels marea.Labels
---@field class string

--- gnuplot's SVG as an element for a page.
---@param svg string
---@param options marea.SvgOptions
---@return marea.Markup markup
function gnuplot.element(svg, options)
  local width, height = svg:match('viewBox="0 0 (%d+) (%d+)"')
  local markers, body = clean(svg)
  local id = options.id
  body = theme(markers ~= "" and "<defs>" .. markers .. "</defs>\n" .. body or body)
  body = body:gsub("xlink:href='#gp", "href='#" .. id .. "-"):gsub("id='gp", "id='" .. id .. "-")
  return html.group {
    html.raw(('<svg class="%s" role="img" aria-labelledby="%s-title %s-text" ' ..
              'viewBox="0 0 %d %d" xmlns="http://www.w3.org/2000/svg">\n'):format(
              options.class, id, id, width, height)),
    html.element("title", { id = id .. "-title" }, options.title),
    html.element("desc", { id = id .. "-text" }, options.description),
    html.raw("\n" .. options.labels:put(body) .. "\n</svg>\n") }
end

return gnuplot
