-- What was run: the resolved config, the data, the versions, and the commands that do it again.

local data = require "marea.report.data"
local html = require "marea.report.html"
local text = require "marea.report.text"
local sorted = require "marea.sorted"
local wording = require "marea.wording"

local setup = {}

local function mark_difference(key)
  return { key, " ", html.element("span", { class = "mark note" }, "(differs)") }
end

-- A row for each key with its value in every run; keys whose values differ are marked, but for
-- those that always do.
local function comparison(given, runs, value_of)
  local head, rows = { "" }, {}
  for i, run in ipairs(runs) do head[i + 1] = #runs == 1 and "value" or run.label end
  for k, key in ipairs(given.keys) do
    local row, differs = { key }, false
    for i, run in ipairs(runs) do
      row[i + 1] = wording.shown(value_of(run, key), "\u{2013}")
      differs = differs or row[i + 1] ~= row[2]
    end
    if differs and not (given.own and given.own[key]) then row[1] = mark_difference(key) end
    rows[k] = row
  end
  return html.table { caption = given.caption, unseen = given.unseen, head = head, rows = rows,
                      numeric = {} }
end

--- The resolved config of every run, and what their locks hash.
---@param runs marea.ReportRun[]
---@return marea.Markup section
function setup.config(runs)
  local maps = {}
  for i, run in ipairs(runs) do maps[i] = run.record.config end
  local files = {}
  for i, run in ipairs(runs) do
    files[i] = {}
    for _, file in ipairs(run.lock.files) do files[i]["file " .. file.name] = file.sha256 end
  end
  local names = { "corpus", "plan", "config" }
  for _, run in ipairs(runs) do
    if run.lock.init then names[4] = "init" end
  end
  local file_names = sorted.keys(table.unpack(files))
  table.move(file_names, 1, #file_names, #names + 1, names)
  local index = {}
  for i, run in ipairs(runs) do index[run] = i end
  return text.section {
    id = "config", title = "Resolved config",
    lead = "Defaults, the recipe's own values and the command's words, as the run used them. " ..
      "The lock holds the hashes of all that decides what was computed.",
    beside = html.element("div", { class = "columns" }, {
      comparison({ caption = "Config", keys = sorted.keys(table.unpack(maps)) }, runs,
                 function(run, key) return run.record.config[key] end),
      comparison({ caption = "Lock: first 16 digits of each sha-256", keys = names }, runs,
                 function(run, name)
        local lock = run.lock
        local hash = name == "corpus" and lock.corpus or name == "plan" and lock.plan.hash or
          name == "config" and lock.config.hash or name == "init" and lock.init or
          files[index[run]][name]
        return hash and hash:sub(1, 16)
      end) }) }
end

local split_names = { "train", "validation", "test" }

--- The corpus of the first run.
---@param run marea.ReportRun
---@return marea.Markup section
function setup.corpus(run)
  local card, rows = run.card, {}
  for _, name in ipairs(split_names) do
    local split = card.splits[name]
    if split then
      rows[#rows + 1] = { name, wording.whole(split.sequences or split.documents),
                          wording.whole(split.tokens), split.p10,
                          split.p50, split.p90, split.max }
    end
  end
  local said = ("%s with %s, vocabulary %s."):format(
    wording.count(card.sequences or card.documents, "sequence"),
    wording.count(card.tokens, "supervised token"), wording.shown(card.vocabulary, "\u{2013}"))
  local duplicates = card.duplicates and (" Duplicates: %d, of which %d across splits."):format(
    card.duplicates.total, card.duplicates.across_splits) or ""
  local drawn = card.notes and card.notes.drawn and (" Drawn: %s."):format(card.notes.drawn) or ""
  return text.section {
    id = "corpus", title = "Data", lead = said .. duplicates .. drawn,
    beside = html.table { caption = "Splits; lengths in tokens", rows = rows,
      head = { "split", "sequences", "tokens", "10 % up to", "median", "90 % up to", "longest" } } }
end

local facts = {
  { "marea", function(r) return r.version end },
  { "recipe", function(r) return r.recipe and r.recipe:gsub("^/.*/", "") end },
  { "ranks", function(r) return r.world end },
  { "threads of each rank", function(r) return r.threads end },
  { "parameters", function(r) return r.parameters and wording.whole(r.parameters) end },
  { "BLAS", function(r) return r.blas end },
  { "instruction set", function(r) return r.instruction_set end },
  { "board of collectives", function(r) return r.board end },
  { "hosts", function(r) return r.hosts and table.concat(r.hosts, ", ") end },
  { "started", function(r) return r.began or r.started end },
  { "ended", function(r) return r.ended end },
  { "run id", function(r) return r.id end },
}

local own_facts = { started = true, ended = true, ["run id"] = true }

--- Versions and machines of every run.
---@param runs marea.ReportRun[]
---@return marea.Markup section
function setup.versions(runs)
  local names, by_name = {}, {}
  for i, fact in ipairs(facts) do names[i], by_name[fact[1]] = fact[1], fact[2] end
  return text.section {
    id = "versions", title = "Versions and machine",
    beside = comparison({ caption = "Versions and machine", keys = names, own = own_facts,
                          unseen = true }, runs,
      function(run, name) return (by_name[name](run.record)) end) }
end

-- --- again ------------------------------------------------------------------------------------

-- The words by which train went as far as this run did.
local function extent_of(run)
  local record = run.record
  if record.outcome == "complete" then
    local stop = record.config.stop
    return stop and stop < record.update and { "--continuous" } or {}
  end
  return record.update > 0 and record.update ~= record.config.stop and
    { "--until", tostring(record.update) } or {}
end

local function again(run, without)
  local ranks = { ranks = true, portable = true }
  local words = extent_of(run)
  if run.lock.init then table.move({ "--init", "FILE" }, 1, 2, #words + 1, words) end
  local lines = { data.command(run, "train", { ranks = true, portable = true, more = words }) }
  local function add(part, command, options)
    if not without[part] then lines[#lines + 1] = data.command(run, command, options) end
  end
  add("evaluation", "evaluate", { portable = true, more = run.evaluation and
                                  run.evaluation.split ~= "test" and
                                  { "--split", run.evaluation.split } or nil })
  if run.weigh then add("weights", "weigh", { portable = true }) end
  if run.parity then add("parity", "parity", ranks) end
  return lines
end

--- The commands that do it again.
---@param runs marea.ReportRun[]
---@param without table<string, boolean>
---@param report string the command that makes this page
---@return marea.Markup section
function setup.again(runs, without, report)
  local lines = {}
  for _, run in ipairs(runs) do
    local commands = again(run, without)
    table.move(commands, 1, #commands, #lines + 1, lines)
  end
  lines[#lines + 1] = report
  local resumed = false
  for _, run in ipairs(runs) do resumed = resumed or #(run.record.resumed or {}) > 0 end
  local bits = "With the same program, kind of processor, number of ranks and files, every bit " ..
    "of the parameters is the same again; marea compare tells whether it is."
  return text.section {
    id = "again", title = "How to repeat it",
    lead = bits .. (resumed and " This run was resumed on its way; a run that goes through has " ..
                    "the same bits." or ""),
    beside = html.element("pre", { tabindex = 0 }, html.element("code", nil,
      table.concat(lines, "\n"))) }
end

return setup
