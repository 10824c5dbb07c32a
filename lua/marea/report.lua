-- The report: one page with figures, made of what runs have stored. The same JSON gives the same
-- bytes: nothing on the page says when or where it was made.

local curves = require "marea.report.curves"
local data = require "marea.report.data"
local fault = require "marea.fault"
local html = require "marea.report.html"
local proof = require "marea.report.proof"
local setup = require "marea.report.setup"
local sheet = require "marea.report.sheet"
local style = require "marea.report.style"
local text = require "marea.report.text"
local time = require "marea.report.time"
local verdicts = require "marea.report.verdicts"
local weights = require "marea.report.weights"
local wording = require "marea.wording"

local report = {}

--- The parts that a report may leave out.
report.parts = data.parts

-- --- top of the page --------------------------------------------------------------------------

local function title_of(runs)
  local names = {}
  for i, run in ipairs(runs) do names[i] = run.label end
  return table.concat(names, ", ")
end

local function summary(run, list)
  local record = run.record
  local good, bad = verdicts.count(list)
  local parts = { ("Objective %s, %s, %d of %d updates, %s."):format(record.objective,
    wording.count(record.world, "rank"), record.update, record.config.updates or record.update,
    wording.count(record.parameters or 0, "parameter")) }
  parts[2] = bad == 0 and (" All %d verdicts are good."):format(good) or
    (" %d of %d verdicts %s bad."):format(bad, good + bad, bad == 1 and "is" or "are")
  return table.concat(parts)
end

local function header(runs, list)
  return html.element("header", nil, {
    html.element("p", { class = "eyebrow" }, "marea report"),
    html.element("h1", nil, title_of(runs)),
    html.element("p", { class = "summary" }, summary(runs[1], list)),
    #runs > 1 and html.element("p", { class = "summary" }, ("%s is told in full; of the others " ..
      "this page shows the curves, the evaluation, the config and the versions."):format(
      runs[1].label)) })
end

-- Several runs, a row each.
local function overview(runs, without)
  local rows = {}
  for i, run in ipairs(runs) do
    local last = run.updates[#run.updates]
    local row = { run.label, run.record.objective, run.record.outcome, wording.whole(last.update),
                  text.loss(last.loss_per_token) }
    if not without.validation then
      row[#row + 1] = text.loss(run.validation[#run.validation].loss)
    end
    if not without.evaluation then
      row[#row + 1] = text.loss(run.evaluation.loss)
      row[#row + 1] = text.percent(run.evaluation.accuracy)
    end
    rows[i] = row
  end
  local head = { "run", "objective", "outcome", "update", "last loss per token" }
  if not without.validation then head[#head + 1] = "last validation loss" end
  if not without.evaluation then
    head[#head + 1], head[#head + 2] = "evaluated loss", "accuracy"
  end
  local numeric = {}
  for c = 4, #head do numeric[c] = true end
  return text.section { id = "runs", title = "Runs", beside = html.table {
    caption = "The runs of this page", unseen = true, head = head, rows = rows,
    numeric = numeric } }
end

-- --- the page ---------------------------------------------------------------------------------

local function left_out(without)
  local names = {}
  for _, part in ipairs(data.parts) do
    if without[part] then names[#names + 1] = part end
  end
  if #names == 0 then return false end
  return html.element("p", { class = "left-out" },
    ("Left out on request (--without): %s."):format(table.concat(names, ", ")))
end

local function sections_of(runs, without, list)
  local first, sections = runs[1], {}
  local function add(part, id, title, make, ...)
    if part and without[part] then return end
    sections[#sections + 1] = { id = id, title = title, markup = make(...) }
  end
  if #runs > 1 then add(nil, "runs", "Runs", overview, runs, without) end
  add(nil, "verdicts", "Verdicts", function()
    return text.section { id = "verdicts", title = #runs > 1 and "Verdicts on " .. first.label or
                          "Verdicts", beside = verdicts.table(list) }
  end)
  add("loss", "loss", "Loss", curves.loss, runs)
  add("validation", "validation", "Validation", curves.validation, runs)
  add("gradient", "gradient", "Gradient norm", curves.gradient, runs)
  add("tokens", "tokens", "Tokens", curves.tokens, first)
  if time.is_there(first) then add("tokens", "time", "Time", time.section, first) end
  add("weights", "weights", "Weights", weights.section, first)
  add("parity", "parity", "Parity", proof.section, first)
  add(nil, "config", "Config", setup.config, runs)
  add(nil, "corpus", "Data", setup.corpus, first)
  add(nil, "versions", "Versions", setup.versions, runs)
  add(nil, "again", "Repeat", setup.again, runs, without, data.report_command(runs, without))
  return sections
end

local function contents(sections)
  local links = {}
  for i, section in ipairs(sections) do
    links[i] = html.element("li", nil, html.element("a", { href = "#" .. section.id },
                                                    section.title))
  end
  return html.element("nav", { ["aria-label"] = "Contents" }, html.element("ul", nil, links))
end

local function document(title, body)
  return html.raw("<!DOCTYPE html>\n").text .. html.element("html", { lang = "en" }, {
    html.element("head", nil, {
      html.element("meta", { charset = "utf-8" }),
      html.element("meta", { name = "viewport", content = "width=device-width, initial-scale=1" }),
      html.element("meta", { name = "color-scheme", content = "light dark" }),
      html.element("title", nil, title .. " \u{2013} marea report"),
      html.element("style", nil, html.raw(style)) }),
    html.element("body", nil, body) }).text .. "\n"
end

---@class marea.ReportOptions
---@field outputs? string root folder of runs (default "outputs")
---@field without? string[] parts to leave out

---@class marea.ReportPage
---@field html string
---@field runs marea.ReportRun[]
---@field sections string[] ids

--- Makes the page of one run, or of several with the first one in full.
--- Errors: code 2 for runs that are not there and measurements that are missing, each with the
--- command that makes it; code 3 for damage and for measurements of something else; code 4 without
--- gnuplot.
---@param words string[] runs by folder, or by name below the root folder
---@param options? marea.ReportOptions
---@return marea.ReportPage page
function report.make(words, options)
  options = options or {}
  local without = {}
  for _, part in ipairs(options.without or {}) do without[part] = true end
  if #words > sheet.most_series then
    fault.raise_at(2, "", "a figure tells %d runs apart, got %d", sheet.most_series, #words)
  end
  local runs = data.read(words, options.outputs or "outputs", without)
  local list = verdicts.of(runs[1], without)
  local sections, ids, markup = sections_of(runs, without, list), {}, {}
  for i, section in ipairs(sections) do ids[i], markup[i] = section.id, section.markup end
  local page = document(title_of(runs), {
    header(runs, list), contents(sections),
    html.element("main", nil, { left_out(without), markup }),
    html.element("footer", nil, "Figures by gnuplot, from the JSON that marea stored.") })
  return { html = page, runs = runs, sections = ids }
end

return report
