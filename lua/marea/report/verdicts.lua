-- What is proven about a run, and what is not, one line each.

local html = require "marea.report.html"
local json = require "marea.json"
local series = require "marea.report.series"
local text = require "marea.report.text"
local wording = require "marea.wording"

local verdicts = {}

---@class marea.Verdict
---@field state "good"|"bad"|"note"
---@field name string
---@field detail string

local function add(list, state, name, format, ...)
  list[#list + 1] = { state = state, name = name, detail = format:format(...) }
end

local function judge(list, good, name, format, ...)
  add(list, good and "good" or "bad", name, format, ...)
end

-- --- the run ----------------------------------------------------------------------------------

local function of_outcome(list, record)
  local updates = record.config.updates or record.update
  if record.outcome == "complete" then
    add(list, "good", "the run is complete", "%d of %d updates", record.update, updates)
  elseif record.outcome == "stopped" then
    add(list, "note", "the run was stopped", "at update %d of %d", record.update, updates)
  elseif record.outcome == "failed" then
    add(list, "bad", "the run failed", "after update %d: %s", record.update,
        record.message or "no message")
  else
    add(list, "bad", "the run has not ended", "it is running, or was killed after update %d",
        record.update)
  end
end

local function step_name(folder) return tostring(folder):match("[^/]*$") end

local function of_resumes(list, record)
  for _, resume in ipairs(record.resumed or {}) do
    local controls = resume.controls or {}
    if #controls > 0 then
      add(list, "bad", "resumed with a control", "at update %d; broken on purpose: %s",
          resume.update, table.concat(controls, ", "))
    else
      add(list, "note", "resumed", "at update %d from %s", resume.update, step_name(resume.from))
    end
  end
end

local function of_lock(list, lock)
  local accepted = lock.accepted or {}
  if #accepted > 0 then
    add(list, "note", "lock differences were accepted", "%s", table.concat(accepted, ", "))
  end
end

local function of_spread(list, run)
  if run.record.world == 1 then return end
  local most = 0
  for _, line in ipairs(run.updates) do
    most = math.max(most, line.parameter_spread or math.huge)
  end
  judge(list, most == 0, "parameters are the same on all ranks",
        "largest difference of the ranks' sums %s over %s", json.number(most),
        wording.count(#run.updates, "update"))
end

-- Updates whose loss or gradient was not finite: nobody stepped.
local function of_skips(list, run)
  local count, first = 0, nil
  for _, line in ipairs(run.updates) do
    if line.skipped or line.finite == false then
      count, first = count + 1, first or line.update
    end
  end
  if count > 0 then
    add(list, "note", "updates were skipped", "%d, the first at update %d: a loss or gradient " ..
        "was not finite", count, first)
  end
end

local function of_loss(list, run)
  local points = {}
  for _, line in ipairs(run.updates) do
    if line.loss_per_token then points[#points + 1] = { line.update, line.loss_per_token } end
  end
  if #points < 2 then return end
  local extent = series.extent(points)
  judge(list, extent.last[2] < extent.first[2], "the loss fell", "%.4f to %.4f a token in %s",
        extent.first[2], extent.last[2], wording.count(#points, "update"))
end

-- --- evaluation -------------------------------------------------------------------------------

local function of_evaluation(list, run)
  local found = run.evaluation
  if not found.loss then
    return add(list, "bad", "evaluation", "the loss of the %s split is not finite", found.split)
  end
  local accuracy = found.accuracy and (", accuracy %s"):format(text.percent(found.accuracy)) or ""
  add(list, "note", ("evaluation of %s"):format(step_name(found.checkpoint)),
      "%s split, %s: loss %.4f a token%s", found.split, wording.count(found.tokens, "token"),
      found.loss, accuracy)
  local known = run.card.notes and run.card.notes[found.split]
  if type(known) ~= "table" or not (known.loss and known.commonest_share) then return end
  judge(list, found.loss > known.loss and (found.accuracy or 0) > known.commonest_share,
        "it learned its source, and no more than it holds",
        "the source's own probabilities lose %.4f a token; the commonest symbol has a share of %s",
        known.loss, text.percent(known.commonest_share))
end

-- --- parity -----------------------------------------------------------------------------------

local function of_dtype(list, report, dtype)
  local gated = report[dtype]
  local rounding = gated.rounding > 0 and
    (", %s by rounding"):format(wording.whole(gated.rounding)) or ""
  judge(list, gated.failing == 0, "parity in " .. dtype, "%s of %s, largest error %s%s",
        wording.whole(report.components - gated.failing),
        wording.count(report.components, "component"), text.error(gated.max_abs), rounding)
end

local function of_controls(list, report)
  local apart, detected, missed = 0, 0, {}
  for _, entry in ipairs(report.controls) do
    if entry.told_apart then
      apart = apart + 1
      if entry.detected then detected = detected + 1 else missed[#missed + 1] = entry.name end
    end
  end
  judge(list, report.controls_pass, "controls", "%d of %d detected%s", detected, apart,
        #missed > 0 and "; missed: " .. table.concat(missed, ", ") or "")
end

local function of_parity(list, report)
  of_dtype(list, report, "f32")
  of_dtype(list, report, "f64")
  if report.world > 1 then
    judge(list, report.begun_equal and report.equal_on_all_ranks, "ranks begin and reduce alike",
          "parameters %s, reduced gradients %s", report.begun_equal and "alike" or "DIFFERENT",
          report.equal_on_all_ranks and "alike" or "DIFFERENT")
  end
  of_controls(list, report)
end

--- The verdicts on a run.
---@param run marea.ReportRun
---@param without table<string, boolean>
---@return marea.Verdict[] list
function verdicts.of(run, without)
  local list = {}
  of_outcome(list, run.record)
  of_resumes(list, run.record)
  of_lock(list, run.lock)
  of_spread(list, run)
  of_skips(list, run)
  if not without.loss then of_loss(list, run) end
  if not without.evaluation then of_evaluation(list, run) end
  if not without.parity then of_parity(list, run.parity) end
  return list
end

--- How many verdicts are good and how many are bad; notes are neither.
---@param list marea.Verdict[]
---@return integer good
---@return integer bad
function verdicts.count(list)
  local good, bad = 0, 0
  for _, verdict in ipairs(list) do
    if verdict.state == "good" then good = good + 1 end
    if verdict.state == "bad" then bad = bad + 1 end
  end
  return good, bad
end

local marks = { good = "\u{2713} good", bad = "\u{2717} BAD", note = "note" }

--- The verdicts as a table.
---@param list marea.Verdict[]
---@return marea.Markup table
function verdicts.table(list)
  local rows = {}
  for i, verdict in ipairs(list) do
    local mark = html.element("span", { class = "mark " .. verdict.state }, marks[verdict.state])
    rows[i] = { verdict.name, mark, verdict.detail }
  end
  return html.table { caption = "Verdicts", unseen = true, rows = rows, numeric = {},
                      head = { "what", "verdict", "found" } }
end

return verdicts
