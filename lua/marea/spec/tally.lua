-- Adds up what the spec workers noted. A test is one file and full name, however many ranks and
-- worlds ran it: it passed only if it passed on each of them, and is skipped only if all skipped
-- it.

---@class marea.SpecOutcome
---@field run marea.SpecRun
---@field rank integer
---@field status string of busted, or "unfinished" or "missing"
---@field message string
---@field trace? string
---@field seconds number

--- A test, or something that failed outside all tests.
---@class marea.SpecItem
---@field file string
---@field name string
---@field problem? boolean it is no test
---@field outcomes marea.SpecOutcome[]
---@field worlds table<marea.SpecRun, table<integer, marea.SpecOutcome>> by rank

---@class marea.Tally
---@field items table<string, marea.SpecItem>
---@field order marea.SpecItem[] as they were met
local tally = {}
tally.__index = tally

local bad = { failure = true, error = true, unfinished = true, missing = true }

--- A tally without runs.
---@return marea.Tally tally
function tally.new()
  return setmetatable({ items = {}, order = {} }, tally)
end

--- The item of that file and name, made where there is none.
---@param file string
---@param name string
---@param problem? boolean it is something that failed outside all tests
---@return marea.SpecItem item
function tally:item(file, name, problem)
  local key = (problem and "!" or "") .. file .. "\0" .. name
  local item = self.items[key]
  if not item then
    item = { file = file, name = name, problem = problem, outcomes = {}, worlds = {} }
    self.items[key] = item
    self.order[#self.order + 1] = item
  end
  return item
end

local function add_outcome(item, run, rank, status, message, trace, seconds)
  local outcome = { run = run, rank = rank, status = status, message = message or "", trace = trace,
                    seconds = seconds or 0 }
  item.outcomes[#item.outcomes + 1] = outcome
  item.worlds[run] = item.worlds[run] or {}
  item.worlds[run][rank] = outcome
end

--- Adds one rank's events.
---@param run marea.SpecRun
---@param rank integer
---@param events table[] the lines that its worker noted
---@return boolean done whether it came to its end
---@return table? open the event that began the test that it was in, when not
function tally:add_events(run, rank, events)
  local open, done = nil, false
  for _, entry in ipairs(events) do
    if entry.event == "start" then
      open = entry
    elseif entry.event == "end" then
      add_outcome(self:item(entry.file, entry.name), run, rank, entry.status, entry.message,
                  entry.trace, entry.seconds)
      open = nil
    elseif entry.event == "error" then
      add_outcome(self:item(entry.file, entry.name, true), run, rank, "error", entry.message,
                  entry.trace)
    elseif entry.event == "done" then
      done = true
    end
  end
  if open then
    add_outcome(self:item(open.file, open.name), run, rank, "unfinished",
                "the test began and did not end")
  end
  return done, open
end

--- A test that one rank ran and another did not has failed there.
---@param run marea.SpecRun
function tally:add_missing(run)
  for _, item in ipairs(self.order) do
    local world = item.worlds[run]
    if world and not item.problem then
      for rank = 0, run.ranks - 1 do
        if not world[rank] then
          add_outcome(item, run, rank, "missing", "the test did not run here, but on other ranks")
        end
      end
    end
  end
end

local function ending_text(ending)
  if ending.kind == "limit" then return "the program was ended at the time limit" end
  local what = ending.kind == "exit" and "exit code" or "signal"
  return ("the program ended with %s %d"):format(what, ending.number)
end

--- Adds a run: one start of workers on `run.ranks` ranks.
---@param run marea.SpecRun
---@param events table[][] events[rank + 1]: the lines that this rank's worker noted
---@param ending {kind: string, number: integer, log: string} how the program ended; its output
function tally:add_run(run, events, ending)
  local how = ("%s; the end of its output:\n%s"):format(ending_text(ending), ending.log)
  run.complete = true
  for rank = 0, run.ranks - 1 do
    local done, open = self:add_events(run, rank, events[rank + 1])
    if not done then
      run.complete = false
      local where = open and ("during '%s'"):format(open.name) or "outside all tests"
      add_outcome(self:item(open and open.file or run.files[1], "(a worker)", true), run, rank,
                  "unfinished", ("this worker ended %s, and %s"):format(where, how))
    end
  end
  self:add_missing(run)
  if run.complete and (ending.kind ~= "exit" or ending.number ~= 0) then
    add_outcome(self:item(run.files[1], "(after all tests)", true), run, 0, "error", how)
  end
  if not run.filter then self:add_empty_files(run) end
end

--- A spec file without a test checks nothing, and fails.
---@param run marea.SpecRun
function tally:add_empty_files(run)
  if not run.complete then return end
  local seen = {}
  for _, item in ipairs(self.order) do
    if item.worlds[run] then seen[item.file] = true end
  end
  for _, file in ipairs(run.files) do
    if not seen[file] then
      add_outcome(self:item(file, "(the file)", true), run, 0, "error", "it holds no test")
    end
  end
end

--- Fails tests that another world of the same files ran, and that a broken-off run never came to.
---@param runs marea.SpecRun[]
function tally:add_unreached(runs)
  for _, run in ipairs(runs) do
    local files = {}
    for _, file in ipairs(run.files) do files[file] = true end
    for _, item in ipairs(self.order) do
      if not run.complete and not item.problem and files[item.file] and not item.worlds[run] then
        add_outcome(item, run, 0, "missing", "the worker ended before this test")
      end
    end
  end
end

--- What a test came to.
---@param item marea.SpecItem
---@return "passed"|"failed"|"skipped" verdict
function tally.verdict(item)
  local passed = false
  for _, outcome in ipairs(item.outcomes) do
    if bad[outcome.status] then return "failed" end
    passed = passed or outcome.status == "success"
  end
  return passed and "passed" or "skipped"
end

--- Counts of all items, or of those of one file.
---@param file? string
---@return {passed: integer, failed: integer, skipped: integer, seconds: number}
function tally:counts(file)
  local counts = { passed = 0, failed = 0, skipped = 0, seconds = 0 }
  for _, item in ipairs(self.order) do
    if not file or item.file == file then
      local verdict = tally.verdict(item)
      counts[verdict] = counts[verdict] + 1
      for _, world in pairs(item.worlds) do
        local longest = 0
        for _, outcome in pairs(world) do longest = math.max(longest, outcome.seconds) end
        counts.seconds = counts.seconds + longest
      end
    end
  end
  return counts
end

--- One failed item in full: each message once, with the places where it was given.
---@param item marea.SpecItem
---@return string text
function tally.describe(item)
  local lines = { ("FAILED %s: %s"):format(item.file, item.name) }
  local places, messages = {}, {}
  for _, outcome in ipairs(item.outcomes) do
    if bad[outcome.status] then
      local key = outcome.message
      if not places[key] then
        places[key] = {}
        messages[#messages + 1] = outcome
      end
      local rank = outcome.run.ranks > 1 and (", rank %d"):format(outcome.rank) or ""
      table.insert(places[key], outcome.run.label .. rank)
    end
  end
  for _, outcome in ipairs(messages) do
    lines[#lines + 1] = "  on " .. table.concat(places[outcome.message], "; ")
    lines[#lines + 1] = "    " .. outcome.message:gsub("%s+$", ""):gsub("\n", "\n    ")
    if outcome.trace and outcome.status == "error" then
      lines[#lines + 1] = "    " .. outcome.trace:gsub("%s+$", ""):gsub("\n", "\n    ")
    end
  end
  return table.concat(lines, "\n")
end

return tally
