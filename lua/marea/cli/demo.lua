-- marea demo: the whole protocol on two ranks, ending in one table of verdicts and one line.

local core = require "marea.core"
local demo = require "marea.demo"
local fault = require "marea.fault"
local json = require "marea.json"
local launch = require "marea.launch"

local failed = 3

local function define(parser)
  -- Used by the demo itself: one part on the ranks of mpirun.
  parser:option("--part"):argname("NAME"):hidden(true)
end

local function table_text(verdicts)
  local width, lines = 0, {}
  for _, verdict in ipairs(verdicts) do width = math.max(width, #verdict.name) end
  for i, verdict in ipairs(verdicts) do
    lines[i] = ("%-4s  %-" .. width .. "s  %s"):format(
      verdict.good and "good" or "BAD", verdict.name, verdict.detail)
  end
  return table.concat(lines, "\n")
end

local function count_good(verdicts)
  local good = 0
  for _, verdict in ipairs(verdicts) do
    if verdict.good then good = good + 1 end
  end
  return good
end

local function run_part(name)
  local found = require("marea.demo_parts").run(name)
  if launch.rank() == 0 then print(json.encode(found)) end
  return 0
end

local function run_command(options)
  if options.part then return run_part(options.part) end
  if launch.under_launcher() then
    fault.raise_at(2, "", "demo starts its own ranks: run it without mpirun")
  end
  local began = core.seconds()
  local verdicts = demo.run {
    outputs = options.outputs,
    say = function(line) io.stderr:write(line, "\n") end,
  }
  local good = count_good(verdicts)
  if options.json then
    print(json.encode { verdicts = verdicts, good = good, count = #verdicts })
  else
    print("\n" .. table_text(verdicts))
    print(("\n%d of %d verdicts are good (%.0f s)"):format(good, #verdicts,
                                                           core.seconds() - began))
  end
  return good == #verdicts and 0 or failed
end

---@type marea.Command
return {
  name = "demo",
  summary = "Run the whole protocol on two ranks and give a table of verdicts.",
  example = "marea demo",
  define = define,
  run = run_command,
}
