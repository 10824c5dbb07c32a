-- marea runs: what runs there are, how far they came, how they ended.

local inventory = require "marea.inventory"
local json = require "marea.json"
local table_text = require "marea.cli.table_text"
local together = require "marea.together"
local wording = require "marea.wording"
local world_of = require "marea.world"

-- How a run stands: as it says itself, unless nobody is at it any more.
local function state_of(run)
  if run.is_link then return "a link" end
  if run.problem then return "damaged" end
  if not run.record then return "not trained" end
  local outcome = run.record.outcome
  if outcome ~= "running" then return outcome end
  return run.held_by and "running" or "broken off"
end

local function row_of(run)
  local record = run.record or {}
  local update, loss = nil, nil
  if not run.is_link then update, loss = inventory.last_update(run.folder) end
  return {
    run = run.name, folder = run.folder, recipe = record.recipe, state = state_of(run),
    update = update or record.update, updates = record.config and record.config.updates,
    loss_per_token = loss, when = record.ended or record.started, world = record.world,
    aside = run.aside, in_use = run.held_by, problem = run.problem,
    message = record.message, bytes = inventory.bytes(run.folder),
  }
end

local function when_text(when) return when and when:gsub("T", " "):sub(1, 16) or "-" end

local function note_of(row)
  if row.in_use then return "in use by " .. row.in_use end
  return row.aside and "moved aside" or ""
end

-- Whether a folder is told of: a run, or what may be one. Other commands leave folders as well.
local function is_shown(run)
  return run.record or run.problem or run.is_link or run.held_by
end

local function hidden_text(count)
  return ("%s that %s never trained: --all lists %s"):format(
    wording.count(count, "folder"), count == 1 and "was" or "were", count == 1 and "it" or "them")
end

local function text(outputs, rows, hidden)
  if #rows == 0 and hidden == 0 then return ("no runs in %s"):format(outputs) end
  if #rows == 0 then return hidden_text(hidden) end
  local lines = { { "run", "recipe", "update", "loss", "state", "when (UTC)", "size", "" } }
  for i, row in ipairs(rows) do
    local update = row.update and ("%d/%d"):format(row.update, row.updates or 0)
    lines[i + 1] = {
      row.run, row.recipe or "-", update or "-",
      row.loss_per_token and ("%.4f"):format(row.loss_per_token) or "-", row.state,
      when_text(row.when), table_text.bytes(row.bytes), note_of(row) }
  end
  local made = table_text.of(lines, { false, false, true, true, false, false, true, false })
  return hidden > 0 and made .. "\n" .. hidden_text(hidden) or made
end

-- The runs that were asked for, and how many were left out.
local function list_of(options)
  local list = {}
  for i, word in ipairs(options.runs) do list[i] = inventory.run(options.outputs, word) end
  if #list > 0 then return list, 0 end
  local all = inventory.runs(options.outputs)
  for _, run in ipairs(all) do
    if options.all or is_shown(run) then list[#list + 1] = run end
  end
  return list, #all - #list
end

---@type marea.Command
return {
  name = "runs",
  summary = "List runs: how far they came, their last loss, how they ended, their size.",
  example = "marea runs",
  define = function(parser)
    parser:argument("runs", "Only these runs."):args("*"):argname("RUN")
    parser:flag("--all", "Also folders that hold no run that was trained.")
  end,
  run = function(options)
    together.on_root(world_of.get(), function()
      local rows, list, hidden = json.array {}, list_of(options)
      for i, run in ipairs(list) do rows[i] = row_of(run) end
      print(options.json and json.encode { outputs = options.outputs, runs = rows } or
            text(options.outputs, rows, hidden))
    end)
    return 0
  end,
}
