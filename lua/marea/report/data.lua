-- What a report reads: the JSON of a run's folder, checked. Nothing is computed anew, and what is
-- not there is named with the command that makes it.

local command_line = require "marea.command_line"
local core = require "marea.core"
local fault = require "marea.fault"
local json = require "marea.json"
local stored = require "marea.report.stored"

local data = {}

--- The parts that a report may leave out.
data.parts = { "loss", "validation", "gradient", "tokens", "weights", "parity", "evaluation" }

---@class marea.ReportRun
---@field folder string
---@field name string the folder's name
---@field label string the same, with a number where two runs have one name
---@field record table run.json
---@field lock marea.Lock
---@field card table corpus-card.json
---@field updates marea.Metrics[] lines of metrics.jsonl
---@field validation marea.Evaluation[] lines of metrics.jsonl
---@field ranks table[][] lines of rank-R.jsonl, rank 0 at 1
---@field evaluation? marea.Evaluation evaluate.json
---@field parity? marea.ParityReport parity.json
---@field weigh? marea.WeighReport weigh.json
---@field lacks {part: string?, what: string, command: string}[]

-- --- commands that make what is missing -------------------------------------------------------

---@class marea.CommandOptions
---@field ranks? boolean on as many as the run had
---@field outputs? string root folder of runs
---@field more? string[] further words
---@field portable? boolean without the folder of a recipe that has an absolute path

--- A command for a run, ready to paste.
---@param run marea.ReportRun
---@param command string
---@param options? marea.CommandOptions
---@return string line
function data.command(run, command, options)
  options = options or {}
  local record = run.record
  local recipe = record.recipe or "RECIPE.lua"
  if options.portable then recipe = recipe:gsub("^/.*/", "") end
  return command_line.of {
    ranks = options.ranks and record.world or nil, words = { command, recipe },
    settings = record.overrides, options = options.more,
    run = run.name ~= record.name and run.name or nil, outputs = options.outputs }
end

--- The command that makes a report, ready to paste.
---@param runs marea.ReportRun[]
---@param without table<string, boolean> parts that are left out
---@param outputs? string root folder of runs; nil: runs by their names alone
---@return string line
function data.report_command(runs, without, outputs)
  local words, options = { "report" }, {}
  for _, run in ipairs(runs) do
    local elsewhere = outputs and run.folder ~= outputs .. "/" .. run.name
    words[#words + 1] = elsewhere and run.folder or run.name
  end
  for _, part in ipairs(data.parts) do
    if without[part] then table.move({ "--without", part }, 1, 2, #options + 1, options) end
  end
  return command_line.of { words = words, options = options, outputs = outputs }
end

local function lack(run, part, what, command)
  run.lacks[#run.lacks + 1] = { part = part, what = what, command = command }
end

-- Reads a file of the run's folder, or notes that it is missing.
local function optional(run, part, name, fields, command)
  local path = run.folder .. "/" .. name
  if core.file.exists(path) then return stored.json(path, fields) end
  lack(run, part, name .. " is not there", command)
end

-- --- one run ----------------------------------------------------------------------------------

local function read_metrics(run, command)
  local path = run.folder .. "/metrics.jsonl"
  run.updates, run.validation = {}, {}
  if not core.file.exists(path) then
    return lack(run, nil, "metrics.jsonl is not there", command)
  end
  for i, line in ipairs(stored.lines(path, { update = "number" })) do
    if line.split then
      run.validation[#run.validation + 1] = line
    else
      local finite = line.finite ~= false
      for _, name in ipairs { "tokens", "lr", finite and "grad_norm" or nil } do
        if type(line[name]) ~= "number" then
          stored.damaged(path, "line %d has no number %s", i, name)
        end
      end
      if type(line.rank_tokens) ~= "table" or #line.rank_tokens ~= run.record.world then
        stored.damaged(path, "line %d has not the tokens of %d ranks", i, run.record.world)
      end
      run.updates[#run.updates + 1] = line
    end
  end
  if #run.updates == 0 then lack(run, nil, "metrics.jsonl has no update", command) end
end

local function read_ranks(run, command)
  run.ranks = {}
  for rank = 0, run.record.world - 1 do
    local name = ("rank-%d.jsonl"):format(rank)
    local path = run.folder .. "/" .. name
    if not core.file.exists(path) then
      return lack(run, "tokens", name .. " is not there", command)
    end
    run.ranks[rank + 1] = stored.lines(path, { update = "number", tokens = "number" })
  end
end

-- Each rank's own log says the same as rank 0's summary, as far as both go.
local function check_ranks(run)
  for r, lines in ipairs(run.ranks) do
    local tokens = {}
    for _, line in ipairs(lines) do tokens[line.update] = line.tokens end
    for _, line in ipairs(run.updates) do
      local own = tokens[line.update]
      if own and own ~= line.rank_tokens[r] then
        stored.damaged(("%s/rank-%d.jsonl"):format(run.folder, r - 1),
                "update %d has %s tokens there, %s in metrics.jsonl", line.update,
                json.number(own), json.number(line.rank_tokens[r]))
      end
    end
  end
end

-- Whether a list has lines, and none of them has a number there: nothing to draw.
local function is_void(list, field)
  for _, line in ipairs(list) do
    if line[field] then return false end
  end
  return #list > 0
end

local function read_always(run, outputs)
  local path = run.folder .. "/run.json"
  run.record = stored.json(path, { name = "string", world = "number", config = "table",
                                 update = "number", outcome = "string", objective = "string" })
  local train = data.command(run, "train", { ranks = true, outputs = outputs })
  local prepare = data.command(run, "prepare", { outputs = outputs })
  run.lock = optional(run, nil, "lock.json", { config = "table", plan = "table",
                                               corpus = "string", files = "table" }, prepare)
  run.card = optional(run, nil, "corpus-card.json", { splits = "table", tokens = "number" },
                      prepare)
  read_metrics(run, train)
  if is_void(run.updates, "loss_per_token") then
    lack(run, "loss", "no update has a loss per token: recipe.loss must give one per position",
         train)
  end
  if is_void(run.updates, "grad_norm") then
    lack(run, "gradient", "no update has a finite gradient norm", train)
  end
  read_ranks(run, train)
  check_ranks(run)
  if is_void(run.validation, "loss") then
    lack(run, "validation", "no validation has a finite loss", train)
  elseif #run.validation == 0 then
    local every = math.max(1, (math.tointeger(run.record.config.updates) or 10) // 10)
    lack(run, "validation", "metrics.jsonl has no validation: config.evaluate_every is not set",
         data.command(run, "train", { ranks = true, outputs = outputs,
                                      more = { "evaluate_every=" .. every } }))
  end
  run.evaluation = optional(run, "evaluation", "evaluate.json", {
    split = "string", sequences = "number", tokens = "number" },
    data.command(run, "evaluate", { outputs = outputs }))
end

-- --- what belongs to the first run only -------------------------------------------------------

local function check_same(run, file, differences, command)
  for _, item in ipairs(differences) do
    if item[2] ~= item[3] then
      fault.raise_at(3, "", "%s/%s is of another computation than the run: %s %s there, %s in " ..
                     "the run; make it anew with\n  %s", run.folder, file, item[1],
                     tostring(item[2]), tostring(item[3]), command)
    end
  end
end

local function read_parity(run, outputs)
  local command = data.command(run, "parity", { ranks = true, outputs = outputs })
  local report = optional(run, "parity", "parity.json", {
    f32 = "table", f64 = "table", controls = "table", window = "table", objective = "string" },
    command)
  if not report then return end
  if type(report.parameters) ~= "table" or type(report.f32.shares) ~= "table" then
    return lack(run, "parity", "parity.json has no errors by parameter", command)
  end
  check_same(run, "parity.json", {
    { "recipe", report.recipe, run.record.name }, { "objective", report.objective,
                                                    run.record.objective },
    { "ranks", report.world, run.record.world },
    { "reduction", report.reduction, run.record.config.reduction } }, command)
  run.parity = report
end

local function read_weigh(run, outputs)
  local command = data.command(run, "weigh", { outputs = outputs })
  local report = optional(run, "weights", "weigh.json", {
    objectives = "table", rank_tokens = "table", step = "number" }, command)
  if not report then return end
  local first = run.updates[1]
  check_same(run, "weigh.json", {
    { "recipe", report.recipe, run.record.name }, { "window", report.step, 1 },
    { "objective", report.objectives[1] and report.objectives[1].name, run.record.objective },
    { "tokens of the ranks", table.concat(report.rank_tokens, " + "),
      first and first.update == 1 and table.concat(first.rank_tokens, " + ") or
        table.concat(report.rank_tokens, " + ") } }, command)
  run.weigh = report
end

-- --- all runs ---------------------------------------------------------------------------------

local function folder_of(outputs, word)
  local path = word:gsub("(.)/+$", "%1")
  for _, folder in ipairs { path, outputs .. "/" .. path } do
    if core.file.exists(folder .. "/run.json") then return folder end
  end
  if core.file.is_folder(path) or core.file.is_folder(outputs .. "/" .. path) then
    fault.raise_at(2, "", "%s holds no run that was trained: marea train RECIPE.lua makes one",
                   word)
  end
  fault.raise_at(2, "", "there is no run %s, nor %s/%s", word, outputs, path)
end

local function give_labels(runs)
  local seen = {}
  for _, run in ipairs(runs) do
    local count = (seen[run.label] or 0) + 1
    seen[run.label] = count
    if count > 1 then run.label = ("%s (%d)"):format(run.label, count) end
  end
end

local function refuse_lacks(runs, without, outputs)
  local lines, left, needed = {}, {}, false
  for part in pairs(without) do left[part] = true end
  for _, run in ipairs(runs) do
    for _, item in ipairs(run.lacks) do
      if not without[item.part or 0] then
        lines[#lines + 1] = ("  %s/%s; it is made with\n    %s"):format(run.folder, item.what,
                                                                        item.command)
        if item.part then left[item.part] = true else needed = true end
      end
    end
  end
  if #lines == 0 then return end
  if not needed then
    lines[#lines + 1] = "a report without them: " .. data.report_command(runs, left, outputs)
  end
  fault.raise_at(2, "", "the report lacks measurements:\n%s", table.concat(lines, "\n"))
end

--- Reads the runs of a report. Of the first everything is read; of the others what is overlaid.
--- Errors: code 2 for a word that names no run, and for measurements that are missing, each with
--- the command that makes it; code 3 for damage, and for measurements of something else.
---@param words string[] runs by folder, or by name below `outputs`
---@param outputs string root folder of runs
---@param without table<string, boolean> parts that are left out
---@return marea.ReportRun[] runs
function data.read(words, outputs, without)
  local runs = {}
  for i, word in ipairs(words) do
    local folder = folder_of(outputs, word)
    local name = folder:match("[^/]+$") or folder
    local run = { folder = folder, name = name, label = name, lacks = {} }
    read_always(run, outputs)
    if i == 1 and not without.weights then read_weigh(run, outputs) end
    if i == 1 and not without.parity then read_parity(run, outputs) end
    runs[i] = run
  end
  refuse_lacks(runs, without, outputs)
  give_labels(runs)
  return runs
end

return data
