-- What changed from update to update: loss, validation, gradient norm, tokens of each rank.

local figures = require "marea.report.figures"
local html = require "marea.report.html"
local line_figure = require "marea.report.lines"
local series = require "marea.report.series"
local sheet = require "marea.report.sheet"
local text = require "marea.report.text"
local wording = require "marea.wording"

local curves = {}

local rows_of_a_table = 11

local function points_of(list, field)
  local points = {}
  for _, line in ipairs(list) do
    if line[field] then points[#points + 1] = { line.update, line[field] } end
  end
  return points
end

-- A line for each run that has points; the dashes of a run are the same in all figures.
local function lines_of(runs, list, field)
  local lines = {}
  for i, run in ipairs(runs) do
    local points = points_of(run[list], field)
    if #points > 0 then lines[#lines + 1] = { label = run.label, points = points, index = i } end
  end
  return lines
end

local function thinned(lines, way)
  local copies, most = {}, 1
  for i, line in ipairs(lines) do
    local points, each = series.thin(line.points, way)
    copies[i] = { label = line.label, points = points, index = line.index }
    most = math.max(most, each)
  end
  return copies, most
end

local function thinning_note(each, way)
  if each == 1 then return "" end
  return (" Each point of the figure is the %s of up to %d updates."):format(way, each)
end

-- Some updates with the values of every line.
local function table_of(caption, lines, show)
  local lists, values, head = {}, {}, { "update" }
  for i, line in ipairs(lines) do
    lists[i], values[i], head[i + 1] = line.points, series.by_x(line.points), line.label
  end
  local rows = {}
  for i, x in ipairs(series.sample(lists, rows_of_a_table)) do
    rows[i] = { wording.whole(x) }
    for k = 1, #lines do rows[i][k + 1] = show(values[k][x]) end
  end
  local numeric = {}
  for c = 1, #head do numeric[c] = true end
  return html.table { caption = caption, head = head, rows = rows, numeric = numeric }
end

-- One line is told with its extreme; of several only the ends are.
local function sentences(lines, what, show, verb)
  if #lines == 1 then
    local extent = series.extent(lines[1].points)
    local extreme = extent[verb]
    return ("%s went from %s at update %d to %s at update %d; its %s value was %s, at update %d.")
      :format(what, show(extent.first[2]), extent.first[1], show(extent.last[2]), extent.last[1],
              verb == "most" and "largest" or "lowest", show(extreme[2]), extreme[1])
  end
  local parts = {}
  for i, line in ipairs(lines) do
    local first, last = line.points[1], line.points[#line.points]
    parts[i] = ("%s %s to %s"):format(line.label, show(first[2]), show(last[2]))
  end
  return ("%s, from the first value to the last: %s."):format(what, table.concat(parts, "; "))
end

---@class marea.CurveParts
---@field id string
---@field title string
---@field what string
---@field y_label string
---@field lines marea.Line[]
---@field show fun(value: number?): string
---@field caption string
---@field verb "least"|"most"
---@field way "mean"|"largest"
---@field more? string further sentences
---@field rule? {y: number, label: string}
---@field logarithmic? boolean

local function section(given)
  local drawn, each = thinned(given.lines, given.way)
  local said = sentences(given.lines, given.what, given.show, given.verb)
  return text.section {
    id = given.id, title = given.title,
    lead = said .. thinning_note(each, given.way) .. (given.more or ""),
    figure = figures.draw {
      name = given.id, title = given.title, description = said,
      draw = function(page)
        line_figure.draw(page, { x_label = "update", y_label = given.y_label, lines = drawn,
                                     rule = given.rule, logarithmic = given.logarithmic })
      end },
    beside = table_of(given.caption, given.lines, given.show) }
end

-- A source that was drawn by a known chance cannot be predicted better than its entropy.
local function entropy_of(run)
  local entropy = run.card.notes and run.card.notes.entropy
  if type(entropy) ~= "number" then return nil, "" end
  return { y = entropy, label = ("entropy of the source, %.4f"):format(entropy) },
    (" The source itself holds %.4f a token."):format(entropy)
end

--- Loss per token of every run.
---@param runs marea.ReportRun[]
---@return marea.Markup section
function curves.loss(runs)
  local rule, more = entropy_of(runs[1])
  return section {
    id = "loss", title = "Loss", what = "Loss per token", y_label = "loss per token",
    lines = lines_of(runs, "updates", "loss_per_token"), show = text.loss, verb = "least",
    way = "mean", caption = "Loss per token", rule = rule, more = more }
end

--- Loss per token of every run on the validation split.
---@param runs marea.ReportRun[]
---@return marea.Markup section
function curves.validation(runs)
  local rule, more = entropy_of(runs[1])
  local last = runs[1].validation[#runs[1].validation]
  local of = (" Each value is over %s with %s."):format(
    wording.count(last.sequences, "sequence"), wording.count(last.tokens, "token"))
  return section {
    id = "validation", title = "Validation", what = "Validation loss per token",
    y_label = "validation loss per token", lines = lines_of(runs, "validation", "loss"),
    show = text.loss, verb = "least", way = "mean", caption = "Validation loss per token",
    rule = rule, more = of .. more }
end

-- Whether values are spread over so much that only a logarithmic axis shows them all.
local function spread_wide(lines)
  local least, most = math.huge, 0
  for _, line in ipairs(lines) do
    for _, point in ipairs(line.points) do
      least, most = math.min(least, point[2]), math.max(most, point[2])
    end
  end
  return least > 0 and most / least > 30
end

--- Norm of the gradient of every run.
---@param runs marea.ReportRun[]
---@return marea.Markup section
function curves.gradient(runs)
  local lines = lines_of(runs, "updates", "grad_norm")
  local clip = runs[1].record.config.clip_norm
  return section {
    id = "gradient", title = "Gradient norm", what = "The norm of the gradient",
    y_label = "gradient norm", lines = lines, show = text.short, verb = "most", way = "largest",
    caption = "Norm of the gradient, before clipping", logarithmic = spread_wide(lines),
    rule = clip and { y = clip, label = ("clipped at %.4g"):format(clip) } or nil,
    more = clip and "" or " It was not clipped." }
end

-- --- tokens -----------------------------------------------------------------------------------

local function rank_points(run)
  local lines = {}
  for r = 1, run.record.world do
    lines[r] = { label = "rank " .. r - 1, points = {} }
    for i, line in ipairs(run.updates) do
      lines[r].points[i] = { line.update, line.rank_tokens[r] }
    end
  end
  return lines
end

-- Of many ranks only the update's least and most are drawn.
local function extremes(run)
  local least, most = { label = "least of a rank", points = {} },
    { label = "most of a rank", points = {} }
  for i, line in ipairs(run.updates) do
    local sorted = table.move(line.rank_tokens, 1, #line.rank_tokens, 1, {})
    table.sort(sorted)
    least.points[i] = { line.update, sorted[1] }
    most.points[i] = { line.update, sorted[#sorted] }
  end
  return { least, most }
end

local function loss_of(lines)
  local sum, tokens = 0, 0
  for _, line in ipairs(lines) do
    if line.loss_sum then sum, tokens = sum + line.loss_sum, tokens + line.tokens end
  end
  return tokens > 0 and sum / tokens or nil
end

local function rank_table(run, lines, total)
  local rows = {}
  for r, line in ipairs(lines) do
    local extent, sum = series.extent(line.points), 0
    for _, point in ipairs(line.points) do sum = sum + point[2] end
    rows[r] = { r - 1, wording.whole(sum), text.percent(total > 0 and sum / total or nil),
                wording.whole(extent.least[2]), wording.whole(extent.most[2]),
                text.loss(loss_of(run.ranks[r])) }
  end
  return html.table {
    caption = "Supervised tokens of each rank over all updates",
    head = { "rank", "tokens", "share", "least", "most", "loss per token" }, rows = rows }
end

--- Supervised tokens of each rank of one run.
---@param run marea.ReportRun
---@return marea.Markup section
function curves.tokens(run)
  local lines, total = rank_points(run), 0
  for _, line in ipairs(run.updates) do total = total + line.tokens end
  local drawn = thinned(#lines > sheet.most_series and extremes(run) or lines, "mean")
  local said = ("%s read %s in %s: %.4g an update."):format(
    wording.count(#lines, "rank"), wording.count(total, "supervised token"),
    wording.count(#run.updates, "update"), total / #run.updates)
  return text.section {
    id = "tokens", title = "Tokens of each rank", lead = said,
    figure = figures.draw {
      name = "tokens", title = "Supervised tokens of each rank", description = said,
      draw = function(page)
        line_figure.draw(page, { x_label = "update", y_label = "tokens", lines = drawn,
                                     from_zero = true })
      end },
    beside = rank_table(run, lines, total) }
end

return curves
