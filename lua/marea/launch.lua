-- Starts marea on several ranks through mpirun, with the flags that one host needs, and on one
-- rank without it. What `marea launch`, the demo and the specs start, they start here.

local core = require "marea.core"
local device = require "marea.device"
local fault = require "marea.fault"

local launch = {}

---@class marea.LaunchOptions
---@field ranks? integer number of ranks; none: one process without mpirun
---@field threads? integer of each rank (default: the cores divided by the ranks)
---@field time_limit? number seconds (run only)
---@field input? string file for standard input
---@field output? string file for standard output (start only)
---@field errors? string file for standard error (start only)
---@field set? table<string, string> further variables of the environment
---@field gentle? boolean the first request to stop reaches the ranks as SIGUSR1 (start only)

-- Beginnings of the names with which an MPI launcher tells a rank who it is. A program that
-- inherits them cannot start mpirun.
launch.launcher_names = { "OMPI_", "PMIX_", "PRTE_" }

local ranks_per_core = 64 -- at most

-- Variables by which a batch system gives mpirun hosts of its own.
local batch_names = { "SLURM_JOB_ID", "PBS_NODEFILE", "LSB_HOSTS", "PE_HOSTFILE" }

--- This process's rank according to the launcher's environment, without starting MPI.
---@return integer rank 0 when there is no launcher
function launch.rank()
  return math.tointeger(tonumber(os.getenv("OMPI_COMM_WORLD_RANK") or os.getenv("PMIX_RANK"))) or 0
end

--- Whether a launcher such as mpirun started this process.
---@return boolean
function launch.under_launcher()
  return (os.getenv("OMPI_COMM_WORLD_RANK") or os.getenv("PMIX_RANK")) ~= nil
end

--- The words that this process was started with, where it is the marea program.
---@type string[]?
launch.words = nil

--- The root of the checkout or installation that this library belongs to.
---@return string folder
function launch.root()
  local library = debug.getinfo(1, "S").source:match("^@(.*)lua/marea/launch%.lua$")
  return library == "" and "." or (library or "./"):gsub("(.)/$", "%1")
end

--- The path of the marea program that this process is, or that was built beside its library.
---@return string path
function launch.program()
  local own = core.process.program()
  if own and own:match("[^/]*$") == "marea" then return own end
  return launch.root() .. "/build/bin/marea"
end

local function check_count(name, value)
  local count = math.tointeger(tonumber(value))
  if not count or count < 1 then
    fault.raise_at(2, "", "%s must be a whole number of 1 or more, not %s", name, tostring(value))
  end
  return count
end

-- Each rank is a process; far more of them than cores only exhaust the machine.
local function check_ranks(ranks)
  local cores = core.process.cores()
  local most = ranks_per_core * cores
  if ranks > most then
    fault.raise_at(2, "", "-n %d is too many: this host has %d core%s, and marea starts at most " ..
                   "%d ranks a core, %d", ranks, cores, cores == 1 and "" or "s", ranks_per_core,
                   most)
  end
end

local function one_host()
  for _, name in ipairs(batch_names) do
    if os.getenv(name) then return false end
  end
  return true
end

local function mpirun_arguments(ranks, threads)
  local list = { "mpirun", "--quiet", "--oversubscribe", "-n", tostring(ranks) }
  local function add(...)
    for _, word in ipairs { ... } do list[#list + 1] = word end
  end
  -- A rank of one thread stays on its core; ranks that share cores or have several threads move.
  if threads == 1 and ranks <= core.process.cores() then
    add("--bind-to", "core:overload-allowed")
  else
    add("--bind-to", "none")
  end
  -- Shared memory only: half the start-up time, and faster from 16 to 256 KiB without kernel
  -- copies.
  if one_host() then
    add("--mca", "pml", "ob1", "--mca", "btl", "vader,self")
    add("--mca", "btl_vader_single_copy_mechanism", "none")
  end
  return list
end

--- The words of the command that runs marea with `argv`, and the variables it needs.
---@param options marea.LaunchOptions
---@param argv string[] what follows "marea"
---@return string[] words
---@return table<string, string> variables
function launch.arguments(options, argv)
  local words, variables = {}, {}
  if options.ranks then
    local ranks = check_count("-n", options.ranks)
    if one_host() then check_ranks(ranks) end
    local threads = options.threads and check_count("--threads", options.threads)
      or math.max(1, core.process.cores() // ranks)
    words = mpirun_arguments(ranks, threads)
    variables.OMP_NUM_THREADS = tostring(threads)
    variables.OMPI_ALLOW_RUN_AS_ROOT, variables.OMPI_ALLOW_RUN_AS_ROOT_CONFIRM = "1", "1"
  elseif options.threads then
    variables.OMP_NUM_THREADS = tostring(check_count("--threads", options.threads))
  end
  words[#words + 1] = launch.program()
  table.move(argv, 1, #argv, #words + 1, words)
  return words, variables
end

--- One word for the shell, quoted where it has to be.
---@param word string
---@return string quoted
function launch.quote(word)
  if word:match("^[%w%-%./:=,_+@%%]+$") then return word end
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

-- How often a thread of OpenMP looks whether there is more work before it sleeps. libgomp's own
-- 300,000 times keep a core busy that others wait for: beside three busy programs that made small
-- models twice as slow, and 10,000 lose nothing on a quiet machine.
launch.spin_count = "10000"

--- The variables that keep waiting threads from taking cores that others need; none where the
--- environment says how threads wait.
---@return table<string, string> variables
function launch.waiting()
  local said = (os.getenv "GOMP_SPINCOUNT" or "") .. (os.getenv "OMP_WAIT_POLICY" or "")
  return said == "" and { GOMP_SPINCOUNT = launch.spin_count } or {}
end

--- Starts marea and returns its process, which is killed when it is collected before its end.
--- options.input, .output and .errors name files for its standard streams (default: this
--- process's); options.set has further variables. Errors: code 4 when mpirun is missing.
---@param options marea.LaunchOptions
---@param argv string[] what follows "marea"
---@return marea.process process
function launch.start(options, argv)
  local words, variables = launch.arguments(options, argv)
  for _, further in ipairs { launch.waiting(), device.variables() } do
    for name, value in pairs(further) do variables[name] = value end
  end
  for name, value in pairs(options.set or {}) do variables[name] = value end
  return core.process.start {
    arguments = words,
    input = options.input,
    output = options.output,
    errors = options.errors,
    gentle = options.gentle,
    set = variables,
    unset = launch.under_launcher() and launch.launcher_names or nil,
  }
end

--- marea's exit code for the way in which a program or mpirun ended: a rank that a signal killed
--- and a time limit are lost ranks (6).
---@param kind "exit"|"signal"|"limit"
---@param number integer exit code or signal
---@return integer code
function launch.exit_code(kind, number)
  if kind ~= "exit" or number >= 128 then return 6 end
  return number
end

local function take(path)
  local file <close> = assert(io.open(path, "rb"))
  local text = file:read("a")
  os.remove(path)
  return text
end

--- Runs marea to its end without standard input and returns what it wrote. After
--- options.time_limit seconds it is ended, and `ending` is "limit".
---@param options marea.LaunchOptions
---@param argv string[] what follows "marea"
---@return integer code 0 to 7, or another that the program chose
---@return string output
---@return string errors
---@return string ending "exit", "signal" or "limit"
function launch.run(options, argv)
  local output, errors = os.tmpname(), os.tmpname()
  local process <close> = launch.start({
    ranks = options.ranks,
    threads = options.threads,
    set = options.set,
    input = options.input or "/dev/null",
    output = output,
    errors = errors,
  }, argv)
  local kind, number = process:wait(options.time_limit)
  return launch.exit_code(kind, number), take(output), take(errors), kind
end

return launch
