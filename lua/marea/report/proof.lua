-- parity: errors by parameter with both gates, how much of the gates is used, and the controls.

local bars = require "marea.report.bars"
local figures = require "marea.report.figures"
local parity_figure = require "marea.report.parity_figure"
local html = require "marea.report.html"
local json = require "marea.json"
local sheet = require "marea.report.sheet"
local text = require "marea.report.text"
local wording = require "marea.wording"

local proof = {}

-- --- parameters -------------------------------------------------------------------------------

local function share_of(errors)
  local worst = errors.worst
  if not worst then return "\u{2013}" end
  if not worst.error or worst.gate == 0 then return "beyond" end
  return ("%.1e"):format(worst.error / worst.gate)
end

local function state_of(errors)
  if errors.failing > 0 then return wording.whole(errors.failing) .. " FAIL" end
  if errors.rounding > 0 then return wording.whole(errors.rounding) .. " by rounding" end
  return "all"
end

local function parameter_table(report)
  local rows = {}
  for i, parameter in ipairs(report.parameters) do
    local f32, f64 = parameter.f32, parameter.f64
    rows[i] = { parameter.name, wording.whole(parameter.count), text.error(parameter.max_gradient),
                text.error(f32.max_abs), share_of(f32), state_of(f32),
                text.error(f64.max_abs), share_of(f64), state_of(f64) }
  end
  return html.table {
    caption = "Largest error of each parameter",
    head = { "parameter", "elements", "largest gradient", "f32 error", "used", "holds",
             "f64 error", "used", "holds" }, rows = rows }
end

-- --- shares of the gates ----------------------------------------------------------------------

local function power_of(value) return sheet.power(math.floor(math.log(value, 10) + 0.5)) end

local function share_name(bin, i, bins)
  if i == 1 then return "equal" end
  if not bin.up_to then return "above " .. power_of(bins[i - 1].up_to) end
  return "up to " .. power_of(bin.up_to)
end

local function share_label(bin, i)
  if i == 1 then return "equal" end
  return bin.up_to and power_of(bin.up_to) or "more"
end

local function share_table(report)
  local rows = {}
  for i, bin in ipairs(report.f32.shares) do
    rows[i] = { share_name(bin, i, report.f32.shares), wording.whole(bin.count),
                wording.whole(report.f64.shares[i].count) }
  end
  return html.table { caption = "Components by the share of their gate that the error uses",
                      head = { "share of the gate", "f32", "f64" }, rows = rows }
end

-- Narrow pages have room for every second name.
local function half_named(groups)
  local copies = {}
  for i, group in ipairs(groups) do
    copies[i] = { label = i % 2 == 0 and group.label or "", values = group.values }
  end
  return copies
end

local function share_figure(report, said)
  local groups, gate = {}, nil
  for i, bin in ipairs(report.f32.shares) do
    if bin.up_to == 1 then gate = { after = i, label = "gate" } end
    groups[i] = { label = share_label(bin, i),
                  values = { bin.count, report.f64.shares[i].count } }
  end
  return figures.draw {
    name = "gate-shares", title = "Components by the share of their gate that is used",
    description = said,
    draw = function(page)
      bars.draw(page, {
        x_label = "share of the gate, up to (1 is the gate)", y_label = "components",
        groups = page.narrow and half_named(groups) or groups, series = { "f32", "f64" },
        logarithmic = true, border = gate })
    end }
end

-- --- words ------------------------------------------------------------------------------------

-- "10 to the power -6", or digits for what is none.
local function power_or_number(value)
  local exponent = math.floor(math.log(value, 10) + 0.5)
  local same = math.abs(10.0 ^ exponent - value) <= 1e-12 * value
  return same and power_of(value) or json.number(value)
end

local function gate_text(gated)
  return ("%s + %s |b|"):format(power_or_number(gated.atol), power_or_number(gated.rtol))
end

local function held(report, dtype)
  local gated = report[dtype]
  local rounding = gated.rounding > 0 and
    (", %s by rounding"):format(wording.whole(gated.rounding)) or ""
  return ("%s: %s of %s within %s%s"):format(
    dtype, wording.whole(report.components - gated.failing),
    wording.count(report.components, "component"), gate_text(gated), rounding)
end

local function lead(report)
  local window, more = report.window, ""
  if report.factor then
    more = (" The gradient is %s times the reference throughout%s."):format(
      json.number(report.factor.value), report.factor.name and ": " .. report.factor.name or "")
  end
  if window.masked_rank then
    more = more .. (" As planned the window tells no wrong weighting apart, so half of the " ..
      "targets of every second sequence of rank %d are masked."):format(window.masked_rank)
  end
  return ("The recipe's own loop on %s against the reference by one process, in window %d (%s, " ..
    "%s): %s; %s.%s"):format(wording.count(report.world, "rank"), window.step, report.objective,
    wording.count(window.tokens, "token"), held(report, "f32"), held(report, "f64"), more)
end

-- --- controls ---------------------------------------------------------------------------------

local function mark(state, said)
  return html.element("span", { class = "mark " .. state }, said)
end

local function control_row(entry)
  local meaning = entry.meaning or ""
  if not entry.told_apart then
    return { entry.name, { meaning, " (", entry.reason or "no reason", ")" },
             mark("note", "not told apart"), "", "" }
  elseif not entry.detected then
    return { entry.name, meaning, mark("bad", "\u{2717} NOT DETECTED"), "", "" }
  end
  return { entry.name, meaning, mark("good", "\u{2713} detected"), text.error(entry.max_abs),
           wording.whole(entry.failing) }
end

local function control_table(report)
  local rows = {}
  for i, entry in ipairs(report.controls) do rows[i] = control_row(entry) end
  return html.table {
    caption = "Controls: faults that were built in on purpose, and must be seen",
    head = { "control", "what is wrong", "verdict", "largest error", "components" }, rows = rows,
    numeric = { [4] = true, [5] = true } }
end

--- What parity found.
---@param run marea.ReportRun
---@return marea.Markup section
function proof.section(run)
  local report = run.parity
  local said = lead(report)
  local shares_said = "How much of its gate the error of a component uses, in powers of ten; " ..
    "whatever lies above 1 misses the gate."
  return text.section {
    id = "parity", title = "Parity", lead = said,
    figure = parity_figure.draw(report), beside = nil,
    below = {
      html.element("p", { class = "lead" }, "Each mark is the component that uses the largest " ..
        "share of its gate, and the gate beside it is the one that it has to stay below. In the " ..
        "table, used is that share, and holds says which components are within the gate."),
      parameter_table(report),
      html.element("p", { class = "lead" }, shares_said),
      html.element("div", { class = "pair" }, {
        share_figure(report, shares_said), share_table(report) }),
      control_table(report) } }
end

return proof
