-- marea compare: two runs or checkpoints, and the first difference between them.

local compare = require "marea.compare"
local find_checkpoint = require "marea.cli.find_checkpoint"
local json = require "marea.json"
local lock = require "marea.lock"
local together = require "marea.together"
local world_of = require "marea.world"

local differs = 3

local counted = { parameters = "values", optimizer = "values", history = "updates",
                  ["random states"] = "ranks" }

local function part_line(part)
  local verdict = part.equal and "equal" or "DIFFERS"
  local detail = ""
  if part.equal and counted[part.part] then
    detail = ("%d %s"):format(part.values, counted[part.part])
  elseif not part.equal then
    detail = part.first
    if part.max_abs and part.max_abs > 0 then
      detail = detail .. ("; largest difference %.9g"):format(part.max_abs)
    end
  end
  return (("%-14s %-8s %s"):format(part.part, verdict, detail):gsub("%s+$", ""))
end

local function text(report)
  local lines = { "a              " .. report.a, "b              " .. report.b }
  for _, part in ipairs(report.parts) do
    lines[#lines + 1] = part_line(part)
    for i = 2, #(part.differences or {}) do
      local item = part.differences[i]
      lines[#lines + 1] = ("%-23s %s: %s and %s"):format("", item.field, lock.shown(item.a),
                                                        lock.shown(item.b))
    end
  end
  lines[#lines + 1] = report.equal and "equal" or "NOT equal"
  return table.concat(lines, "\n")
end

---@type marea.Command
return {
  name = "compare",
  summary = "Compare two runs or checkpoints, and name the first difference.",
  example = "marea compare minimum outputs/once/checkpoints/step-000100",
  define = function(parser)
    parser:argument("a", "A run (its newest checkpoint counts) or a checkpoint's folder.")
    parser:argument("b", "What to compare it with.")
  end,
  run = function(options)
    local verdict = together.on_root(world_of.get(), function()
      local report = compare.checkpoints(find_checkpoint(options.outputs, options.a),
                                         find_checkpoint(options.outputs, options.b))
      print(options.json and json.encode(report) or text(report))
      return report.equal and "equal" or "differs"
    end)
    return verdict == "equal" and 0 or differs
  end,
}
