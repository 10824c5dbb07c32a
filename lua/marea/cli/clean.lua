-- marea clean: lists what of the runs need not be kept; --yes removes it.

local clean = require "marea.clean"
local json = require "marea.json"
local table_text = require "marea.cli.table_text"
local together = require "marea.together"
local world_of = require "marea.world"

local function total_of(found)
  local bytes = 0
  for _, item in ipairs(found.waste) do bytes = bytes + item.bytes end
  return bytes
end

local function text(found, options)
  local lines, rows = {}, {}
  for i, item in ipairs(found.waste) do
    rows[i] = { item.path, table_text.bytes(item.bytes), item.reason }
  end
  if #rows > 0 then lines[1] = table_text.of(rows, { false, true, false }) end
  for _, item in ipairs(found.left) do
    lines[#lines + 1] = ("left alone  %s: %s"):format(item.path, item.reason)
  end
  local size = ("%s in %d place%s"):format(table_text.bytes(total_of(found)), #rows,
                                           #rows == 1 and "" or "s")
  if #rows == 0 then
    lines[#lines + 1] = "nothing to remove"
  elseif options.yes then
    lines[#lines + 1] = size .. " removed"
  else
    lines[#lines + 1] = size .. "; nothing was removed, --yes removes it"
  end
  return table.concat(lines, "\n")
end

---@type marea.Command
return {
  name = "clean",
  summary = "List runs that were moved aside, checkpoints older than the newest that verifies, " ..
    "and what killed processes left; --yes removes it.",
  example = "marea clean minimum --yes",
  define = function(parser)
    parser:argument("runs", "Only these runs, and the older ones moved aside from them."):args("*")
      :argname("RUN")
    parser:flag("--yes", "Remove what is listed.")
    parser:flag("--all", "Whole runs, with their newest state; of the runs that are named, or all.")
  end,
  run = function(options)
    together.on_root(world_of.get(), function()
      local found = clean.run(options)
      print(options.json and json.encode {
        removed = options.yes or false, bytes = total_of(found), items = json.array(found.waste),
        left = json.array(found.left) } or text(found, options))
    end)
    return 0
  end,
}
