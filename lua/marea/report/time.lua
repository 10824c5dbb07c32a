-- Where the time went on each rank: the phases that rank-R.jsonl has.

local html = require "marea.report.html"
local text = require "marea.report.text"

local time = {}

local order = { "count", "forward", "backward", "reduction", "step", "save", "evaluate" }

-- Sums over the updates of a rank, and how many have phases.
local function sums_of(lines)
  local sums, count, waiting = {}, 0, 0
  for _, line in ipairs(lines) do
    if line.phases then
      count, waiting = count + 1, waiting + (line.waiting or 0)
      for name, ms in pairs(line.phases) do sums[name] = (sums[name] or 0) + ms end
    end
  end
  return sums, count, waiting
end

--- Whether every rank's log tells the phases of updates.
---@param run marea.ReportRun
---@return boolean
function time.is_there(run)
  for _, lines in ipairs(run.ranks) do
    local _, count = sums_of(lines)
    if count == 0 then return false end
  end
  return #run.ranks > 0
end

--- Milliseconds of each phase on each rank.
---@param run marea.ReportRun
---@return marea.Markup section
function time.section(run)
  local head, rows = { "rank" }, {}
  table.move(order, 1, #order, 2, head)
  head[#head + 1], head[#head + 2] = "together", "waiting"
  for r, lines in ipairs(run.ranks) do
    local sums, count, waiting = sums_of(lines)
    local row, together = { r - 1 }, 0
    for _, name in ipairs(order) do
      together = together + (sums[name] or 0)
      row[#row + 1] = ("%.1f"):format((sums[name] or 0) / count)
    end
    row[#row + 1] = ("%.1f"):format(together / count)
    row[#row + 1] = ("%.1f"):format(waiting / count)
    rows[r] = row
  end
  return text.section {
    id = "time", title = "Time",
    lead = "Milliseconds of a mean update in each phase, saves and evaluations spread over all " ..
      "updates. Waiting is what a rank waited for others in all phases.",
    beside = html.table { caption = "Milliseconds an update", head = head, rows = rows } }
end

return time
