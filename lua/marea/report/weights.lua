-- What weighs how much in the first window, under each objective.

local bars = require "marea.report.bars"
local figures = require "marea.report.figures"
local html = require "marea.report.html"
local line_figure = require "marea.report.lines"
local text = require "marea.report.text"
local weigh_text = require "marea.weigh_text"
local wording = require "marea.wording"

local weights = {}

local most_sequences = 300 -- that a figure shows one by one
local most_ranks = 8
local most_rows = 24

local function names_of(report)
  local names = {}
  for i, entry in ipairs(report.objectives) do
    names[i] = entry.name .. (entry.declared and "*" or "")
  end
  return names
end

-- --- ranks ------------------------------------------------------------------------------------

local function rank_table(report)
  local head, rows = { "", "tokens" }, {}
  table.move(names_of(report), 1, #report.objectives, 3, head)
  for r, tokens in ipairs(report.rank_tokens) do
    rows[r] = { "rank " .. r - 1, wording.whole(tokens) }
    for i, entry in ipairs(report.objectives) do
      rows[r][i + 2] = text.percent(entry.ranks[r].share)
    end
  end
  local ratios = { "a token of each", "" }
  for i, entry in ipairs(report.objectives) do ratios[i + 2] = weigh_text.ratio(entry.ranks) end
  if #report.rank_tokens <= most_ranks then rows[#rows + 1] = ratios end
  return html.table { caption = "Share of each rank in the loss; * is declared", head = head,
                      rows = rows }
end

local function rank_groups(report)
  local groups, series, names = {}, {}, names_of(report)
  for r = 1, #report.rank_tokens do series[r] = "rank " .. r - 1 end
  for i, entry in ipairs(report.objectives) do
    local group = { label = names[i], values = {}, texts = {} }
    for r, rank in ipairs(entry.ranks) do
      group.values[r] = 100 * rank.share
      group.texts[r] = ("%.1f %%"):format(100 * rank.share)
    end
    groups[i] = group
  end
  return groups, series
end

local function rank_figure(report, said)
  local groups, series = rank_groups(report)
  return figures.draw {
    name = "rank-weights", title = "Share of each rank in the loss of the first window",
    description = said,
    draw = function(page)
      bars.draw(page, {
        x_label = "objective (* is the declared one)", y_label = "share of the loss in %",
        groups = groups, series = series, labelled = #groups * #series * 52 < page.size[1] - 70 })
    end }
end

local function rank_sentence(report)
  local parts = {}
  for i, entry in ipairs(report.objectives) do
    parts[i] = ("%s %s"):format(entry.name, weigh_text.ratio(entry.ranks))
  end
  return ("The first window has %s (%s). A token of each rank weighs, against the lightest: %s."):
    format(wording.count(report.tokens, "token"), table.concat(report.rank_tokens, " + "),
           table.concat(parts, "; "))
end

-- --- sequences --------------------------------------------------------------------------------

-- Neighbours of one rank are put together until a figure can show them.
local function gathered(sequences)
  local each, list = (#sequences + most_sequences - 1) // most_sequences, {}
  for _, entry in ipairs(sequences) do
    local last = list[#list]
    if last and last.rank == entry.rank and last.count < each then
      last.tokens, last.share = last.tokens + entry.tokens, last.share + entry.share
      last.count = last.count + 1
    else
      list[#list + 1] = { rank = entry.rank, tokens = entry.tokens, share = entry.share, count = 1 }
    end
  end
  return list
end

-- Two points a sequence, as wide as its tokens: the area below is its share.
local function steps_of(report, entry)
  local points, at = {}, 0
  for _, item in ipairs(gathered(entry.sequences)) do
    if item.tokens > 0 then
      local height = item.share / item.tokens * report.tokens
      points[#points + 1] = { at, height }
      at = at + item.tokens
      points[#points + 1] = { at, height }
    end
  end
  return points
end

local function spans_of(report)
  local spans, at = {}, 0
  if #report.rank_tokens > most_ranks then return nil end
  for r, tokens in ipairs(report.rank_tokens) do
    if tokens > 0 then
      spans[#spans + 1] = { from = at, to = at + tokens, label = "rank " .. r - 1 }
    end
    at = at + tokens
  end
  return spans
end

local function position_figure(report)
  local lines = {}
  for i, name in ipairs(names_of(report)) do
    lines[i] = { label = name, points = steps_of(report, report.objectives[i]), index = i }
  end
  return figures.draw {
    name = "position-weights", title = "Weight of every position of the first window",
    description = "Weights against the mean weight, which is 1; sequences are as wide as their " ..
      "tokens, so the area below a line is the share of the loss.",
    draw = function(page)
      line_figure.draw(page, {
        x_label = "supervised positions, by rank and sequence", y_label = "weight / mean weight",
        lines = lines, spans = spans_of(report), from_zero = true, unmarked = true })
    end }
end

local function sequence_table(report)
  local head, rows = { "sequence", "rank", "tokens" }, {}
  table.move(names_of(report), 1, #report.objectives, 4, head)
  local sequences = report.objectives[1].sequences
  for s = 1, math.min(#sequences, most_rows) do
    local sequence = sequences[s]
    rows[s] = { sequence.id, sequence.rank, wording.whole(sequence.tokens) }
    for i, entry in ipairs(report.objectives) do
      local item = entry.sequences[s]
      rows[s][i + 3] = item.tokens > 0 and
        ("%.3f"):format(item.share / item.tokens * report.tokens) or "\u{2013}"
    end
  end
  local more = #sequences > most_rows and
    ("; the first %d of %s"):format(most_rows, wording.count(#sequences, "sequence")) or ""
  return html.table { caption = "Weight of a position against the mean weight" .. more,
                      head = head, rows = rows }
end

--- The weights of the first window.
---@param run marea.ReportRun
---@return marea.Markup section
function weights.section(run)
  local report = run.weigh
  local said = rank_sentence(report)
  local drawable = #report.rank_tokens <= most_ranks
  local positions = html.element("div", { class = "pair" }, {
    position_figure(report), sequence_table(report) })
  return text.section {
    id = "weights", title = "Weights of the first window", lead = said,
    figure = drawable and rank_figure(report, said) or nil, beside = rank_table(report),
    below = { html.element("p", { class = "lead" }, "Below, position by position: a sequence is " ..
      "as wide as its tokens, and the area below a line is its share of the loss."), positions } }
end

return weights
