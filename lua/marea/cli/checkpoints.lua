-- marea checkpoints: every byte of every checkpoint against its manifest; no model is made.

local checkpoint = require "marea.checkpoint"
local core = require "marea.core"
local fault = require "marea.fault"
local inventory = require "marea.inventory"
local json = require "marea.json"
local table_text = require "marea.cli.table_text"
local together = require "marea.together"
local world_of = require "marea.world"

local damaged_code = 3

-- Verifies and opens one; returns what is said of it, or nil when it vanished meanwhile.
local function examine(item, run)
  local row = { run = run and run.name, checkpoint = item.name, folder = item.folder,
                update = item.update, aside = item.aside, good = true,
                bytes = inventory.bytes(item.folder) }
  local good, opened = pcall(checkpoint.open, item.folder)
  if good then
    opened.parameters:close()
    opened.optimizer:close()
    row.update, row.world = opened.manifest.update, opened.state.world
    row.foreign = run ~= nil and run.record ~= nil and run.record.id ~= opened.manifest.run
    return row
  end
  if not core.file.is_folder(item.folder) then return nil end
  row.good, row.problem = false, (fault.of(opened))
  if fault.is(opened) then row.file, row.tensor = opened.file, opened.tensor end
  return row
end

local function all_of(options)
  local rows = {}
  local function add_run(run)
    for _, item in ipairs(run.is_link and {} or inventory.checkpoints(run.folder)) do
      rows[#rows + 1] = examine(item, run)
    end
  end
  for _, word in ipairs(options.runs) do
    local folder = word:gsub("(.)/+$", "%1")
    local name = folder:match("step%-%d+[%d.]*$")
    if name and core.file.is_folder(folder) then
      local update = math.tointeger(tonumber(name:match("%d+")))
      rows[#rows + 1] = examine { name = name, folder = folder, update = update, aside = false }
    else
      add_run(inventory.run(options.outputs, word))
    end
  end
  if #options.runs == 0 then
    for _, run in ipairs(inventory.runs(options.outputs)) do add_run(run) end
  end
  return rows
end

local function note_of(row)
  if not row.good then return row.problem end
  if row.foreign then return "of another run" end
  return row.aside and "no longer counts: a resume went on from an earlier one" or ""
end

local function text(options, rows, damaged)
  if #rows == 0 then return ("no checkpoints in %s"):format(options.outputs) end
  local lines = {}
  for i, row in ipairs(rows) do
    lines[i] = { row.folder, row.good and "good" or "DAMAGED", table_text.bytes(row.bytes),
                 note_of(row) }
  end
  return ("%s\n%d checkpoint%s, %d damaged"):format(
    table_text.of(lines, { false, false, true, false }), #rows, #rows == 1 and "" or "s", damaged)
end

---@type marea.Command
return {
  name = "checkpoints",
  summary = "Verify every byte of every checkpoint, without making the model; exit 3 on damage.",
  example = "marea checkpoints minimum",
  define = function(parser)
    parser:argument("runs", "Only those of these runs, or these checkpoints' folders."):args("*")
      :argname("RUN")
  end,
  run = function(options)
    local verdict = together.on_root(world_of.get(), function()
      local rows, damaged = all_of(options), 0
      for _, row in ipairs(rows) do damaged = damaged + (row.good and 0 or 1) end
      print(options.json and json.encode { checkpoints = json.array(rows), damaged = damaged } or
            text(options, rows, damaged))
      return damaged == 0 and "good" or "damaged"
    end)
    return verdict == "good" and 0 or damaged_code
  end,
}
