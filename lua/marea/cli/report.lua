-- marea report: one page with figures of a run, or of several overlaid.

local core = require "marea.core"
local json = require "marea.json"
local report = require "marea.report"
local together = require "marea.together"
local world_of = require "marea.world"

local function run_command(options)
  together.on_root(world_of.get(), function()
    local page = report.make(options.runs, { outputs = options.outputs, without = options.without })
    local path, names = page.runs[1].folder .. "/report.html", {}
    for i, run in ipairs(page.runs) do names[i] = run.label end
    core.file.write(path, page.html)
    print(options.json and json.encode { report = path, runs = names, sections = page.sections,
                                         bytes = #page.html } or path)
  end)
  return 0
end

---@type marea.Command
return {
  name = "report",
  summary = "Make one page with figures of a run, or of several overlaid.",
  example = "marea report minimum minimum-resumed",
  define = function(parser)
    parser:argument("runs", "Runs by name or folder; the first one is told in full, and gets " ..
                    "report.html."):args("+"):argname("RUN")
    parser:option("--without", "Leave this part out (repeatable)."):argname("PART"):count("*")
      :choices(report.parts)
  end,
  run = run_command,
}
