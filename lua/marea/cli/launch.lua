-- marea launch: any command on several ranks, through mpirun with the flags that one host needs.

local core = require "marea.core"
local fault = require "marea.fault"
local launch = require "marea.launch"
local terminal = require "marea.terminal"

local function run(options)
  if #options.words == 0 then
    fault.raise_at(2, "", "launch: which command? (see marea launch --help)")
  end
  local words = table.move(options.words, 1, #options.words, 1, {})
  if options.outputs ~= "outputs" then
    words[#words + 1] = "--outputs"
    words[#words + 1] = options.outputs
  end
  if options.run then
    words[#words + 1] = "--run"
    words[#words + 1] = options.run
  end
  if options.json then words[#words + 1] = "--json" end
  if options.trace then words[#words + 1] = "--trace" end
  local width = core.process.terminal_width(2)
  -- mpirun hands SIGUSR1 to all ranks and ends them on any other signal. Without the terminal as
  -- their input they do not get what is typed there; only a script may want to read it.
  local process <close> = launch.start({
    ranks = options.n, threads = options.threads, gentle = true,
    input = not words[1]:find("%.lua$") and "/dev/null" or nil,
    set = { [terminal.variable] = width and tostring(width) or "" } }, words)
  local kind, number, stopped = process:wait(tonumber(options.time_limit))
  if kind == "limit" then
    io.stderr:write(("marea: the time limit of %s seconds ended the run\n")
      :format(options.time_limit))
  elseif stopped and (kind == "signal" or number >= 128) then
    io.stderr:write(("marea: signal %d ended the ranks\n"):format(stopped))
  elseif kind == "signal" or number >= 128 then
    io.stderr:write(("marea: a rank was lost: mpirun ended with %s %d\n"):format(
      kind == "exit" and "code" or kind, number))
  end
  local code = launch.exit_code(kind, number)
  -- mpirun says 1 when a signal ended it; what marea says itself, such as 7, stands.
  return stopped and code == 1 and 6 or code
end

local function seconds(text)
  local value = tonumber(text)
  if not value or value <= 0 then
    return nil, ("--time-limit must be a number of seconds, not %s"):format(text)
  end
  return text
end

---@type marea.Command
return {
  name = "launch",
  summary = "Start a command on several ranks of this machine.",
  example = "marea launch -n 2 train recipes/minimum.lua lr=0.05",
  hands_on = true,
  define = function(parser)
    parser:option("-n", "Number of ranks."):argname("W"):count(1)
    parser:option("--threads", "Threads of each rank (default: cores divided by ranks).")
      :argname("T")
    parser:option("--time-limit", "End the run after so many seconds (exit code 6)."):argname("S")
      :convert(seconds)
    parser:usage("Usage: marea launch -n W [--threads T] [--time-limit S] <command> ...")
  end,
  run = run,
}
