-- Which spec files there are, in which worlds they run, and the runs themselves: spec/unit and
-- spec/program each in one process without mpirun, spec/world and spec/cases/world under mpirun on
-- each number of ranks.

local core = require "marea.core"
local fault = require "marea.fault"
local json = require "marea.json"
local launch = require "marea.launch"

local suite = {}

local LOG_LINES = 30

-- "world", "unit" or "program" by the folder's name; a file elsewhere runs in one process.
local function kind_of(path)
  return path:match("spec/(world)/") or path:match("spec/cases/(world)/") or
    path:match("spec/(unit)/") or "program"
end

--- The spec files under the paths, sorted, by kind. Errors: code 2 for a path that does not exist.
---@param paths string[] files and folders
---@return table<string, string[]> files unit, world and program
function suite.find(paths)
  local files, seen = { unit = {}, world = {}, program = {} }, {}
  for _, path in ipairs(paths) do
    local probe = io.open(path)
    if not probe then fault.raise_at(2, "", "test: no file or folder '%s'", path) end
    probe:close()
    local command = ("find %s -type f | LC_ALL=C sort"):format(launch.quote(path))
    local listing <close> = assert(io.popen(command))
    for file in listing:lines() do
      if (file == path or file:match("_spec%.lua$")) and not seen[file] then
        seen[file] = true
        table.insert(files[kind_of(file)], file)
      end
    end
  end
  return files
end

---@class marea.SpecRun
---@field label string for people
---@field kind "unit"|"world"|"program"
---@field ranks integer
---@field mpi boolean whether it runs under mpirun
---@field files string[]
---@field filter? string
---@field complete? boolean once it has ended: every worker came to its end
---@field seconds? number once it has ended

--- The runs of those files, in order: unit, the worlds, program.
---@param files table<string, string[]>
---@param worlds integer[] numbers of ranks
---@param filter? string
---@return marea.SpecRun[] runs
function suite.plan(files, worlds, filter)
  local runs = {}
  local function add(kind, label, ranks, mpi)
    if #files[kind] == 0 then return end
    runs[#runs + 1] = { label = label, kind = kind, ranks = ranks, mpi = mpi, files = files[kind],
                        filter = filter }
  end
  add("unit", "one process", 1, false)
  for _, ranks in ipairs(worlds) do
    add("world", ranks == 1 and "1 rank" or ranks .. " ranks", ranks, true)
  end
  add("program", "one process outside mpirun", 1, false)
  return runs
end

local function read_events(path)
  local events = {}
  local stream = io.open(path)
  if not stream then return events end
  for line in stream:lines() do
    local entry = json.decode(line)
    if entry then events[#events + 1] = entry end -- a worker that died may leave half a line
  end
  stream:close()
  os.remove(path)
  return events
end

local function last_lines(path)
  local lines = {}
  for line in io.lines(path) do lines[#lines + 1] = line end
  return table.concat(lines, "\n", math.max(1, #lines - LOG_LINES + 1))
end

---@class marea.StartedRun
---@field process marea.process
---@field results string path of the workers' notes, without the rank
---@field log string path of their output
---@field began number seconds

--- Starts the workers of a run.
---@param run marea.SpecRun
---@return marea.StartedRun started
function suite.start(run)
  local results = os.tmpname()
  local words = { "test", "--worker", results }
  if run.filter then table.move({ "--filter", run.filter }, 1, 2, #words + 1, words) end
  words[#words + 1] = "--"
  table.move(run.files, 1, #run.files, #words + 1, words)
  local log = results .. ".log"
  local process = launch.start({ ranks = run.mpi and run.ranks or nil, input = "/dev/null",
                                 output = log, errors = log }, words)
  return { process = process, results = results, log = log, began = core.seconds() }
end

--- Waits for the workers of a run and adds what they noted to a tally.
---@param run marea.SpecRun
---@param started marea.StartedRun
---@param time_limit number seconds for the whole run
---@param tally marea.Tally
---@param verbose boolean show all that the workers printed
---@return integer? stopped the signal that asked this process to stop
function suite.finish(run, started, time_limit, tally, verbose)
  local process <close> = started.process
  local kind, number, stopped = process:wait(time_limit)
  run.seconds = core.seconds() - started.began
  local events = {}
  for rank = 0, run.ranks - 1 do
    events[rank + 1] = read_events(("%s.%d"):format(started.results, rank))
  end
  if verbose then for line in io.lines(started.log) do io.stderr:write(line, "\n") end end
  tally:add_run(run, events, { kind = kind, number = number, log = last_lines(started.log) })
  os.remove(started.results)
  os.remove(started.log)
  return stopped
end

return suite
