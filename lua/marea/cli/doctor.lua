-- marea doctor: one line an item, "ok" or "bad" with a remedy; under mpirun of every rank.

local core = require "marea.core"
local doctor = require "marea.doctor"
local json = require "marea.json"
local launch = require "marea.launch"
local together = require "marea.together"

-- Lines of the report: an item that all ranks found alike once, else once for each finding.
local function lines_of(rows)
  local lines = {}
  for i, item in ipairs(rows[1].items) do
    local ranks_of, findings = {}, {}
    for _, row in ipairs(rows) do
      local other = row.items[i]
      local finding = ("%-4s %-13s %s"):format(other.ok and "ok" or "bad", item.name, other.found)
      if other.remedy then finding = finding .. "; " .. other.remedy end
      if not ranks_of[finding] then
        ranks_of[finding] = {}
        findings[#findings + 1] = finding
      end
      table.insert(ranks_of[finding], row.rank)
    end
    for _, finding in ipairs(findings) do
      local ranks = table.concat(ranks_of[finding], ", ")
      lines[#lines + 1] = #findings == 1 and finding or finding .. "  [rank " .. ranks .. "]"
    end
  end
  return lines
end

local function all_good(rows)
  for _, row in ipairs(rows) do
    for _, item in ipairs(row.items) do
      if not item.ok then return false end
    end
  end
  return true
end

local function write_report(outputs, report)
  core.file.make_folder(outputs .. "/doctor")
  json.write(outputs .. "/doctor/doctor.json", report)
end

local function run(options)
  local world = core.world()
  local row = { rank = world:rank(), items = doctor.examine(world, options.outputs) }
  if not launch.under_launcher() then table.insert(row.items, doctor.try_two_ranks()) end
  local rows = together.gather(world, row)
  local good = all_good(rows)
  if world:rank() == 0 and not options.probe then
    local report = { good = good, ranks = #rows, rows = rows }
    write_report(options.outputs, report)
    print(options.json and json.encode(report) or table.concat(lines_of(rows), "\n"))
  end
  return good and 0 or 4
end

---@type marea.Command
return {
  name = "doctor",
  summary = "Check on every rank whether marea can work here; exit code 4 when something is bad.",
  example = "marea doctor, or marea launch -n 2 doctor",
  define = function(parser) parser:flag("--probe"):hidden(true) end,
  run = run,
}
