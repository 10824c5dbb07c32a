-- What `marea doctor` looks at on every rank. A check returns whether it is good, what it found,
-- and what to do when it is not.

local core = require "marea.core"
local device = require "marea.device"
local fault = require "marea.fault"
local launch = require "marea.launch"

local doctor = {}

local LEAST_MEMORY, LEAST_DISK, LEAST_SHARED = 0.5, 1, 0.015 -- GiB; the last for each rank

local function read_first(path, pattern)
  local stream <close> = io.open(path)
  return stream and stream:read("a"):match(pattern)
end

-- First line of a command's output, or nil when it fails.
local function output_of(words)
  local path = os.tmpname()
  local good, process = pcall(core.process.start, { arguments = words, input = "/dev/null",
    output = path, errors = path, unset = launch.launcher_names })
  local line
  if good and process:wait(20) == "exit" then line = read_first(path, "^[^\n]*") end
  os.remove(path)
  return line ~= "" and line or nil
end

-- GiB that are free in the file system of a folder, or nil where df does not tell.
local function free_space(folder)
  local stream <close> = assert(io.popen("df -Pk " .. launch.quote(folder) .. " 2>/dev/null"))
  stream:read("l")
  local line = stream:read("l")
  local free = line and line:match("%s(%d+)%s+%d+%%%s")
  return free and tonumber(free) / 1024 ^ 2
end

local function check_blas()
  local blas = core.device().blas
  return blas ~= "" and not blas:lower():find("generic"), blas,
    "install an OpenBLAS that knows this processor, or set OPENBLAS_CORETYPE"
end

-- The product of two matrices of small integers is exact in both dtypes, whatever the order.
local function product_is_right(rows, inner, columns, dtype)
  local a, b = {}, {}
  for i = 1, rows * inner do a[i] = (i * 7) % 11 - 5 end
  for i = 1, inner * columns do b[i] = (i * 5) % 13 - 6 end
  local found = core.from(a, dtype, { rows, inner }):matmul(core.from(b, dtype, { inner, columns }))
  local values, at = found:values(), 0
  for r = 0, rows - 1 do
    for c = 1, columns do
      local sum = 0
      for k = 1, inner do sum = sum + a[r * inner + k] * b[(k - 1) * columns + c] end
      at = at + 1
      if values[at] ~= sum then return false end
    end
  end
  return true
end

-- Without --device this is the processor, which there always is.
local function check_device()
  device.use_asked()
  local facts = core.device()
  return true, facts.model == "" and facts.name or ("%s, %s"):format(facts.name, facts.model)
end

local function check_kernel()
  local used = core.device()
  for _, dtype in ipairs { "f32", "f64" } do
    for _, shape in ipairs { { 2, 2, 2 }, { 33, 65, 47 } } do
      if not product_is_right(shape[1], shape[2], shape[3], dtype) then
        return false, ("a %s product of %d x %d x %d is wrong"):format(dtype, table.unpack(shape)),
          used.model ~= "" and "the GPU, its driver or its memory is at fault: see nvidia-smi -q" or
          "this OpenBLAS computes wrong results here: update it, or set OPENBLAS_CORETYPE=Haswell"
      end
    end
  end
  return true, ("products are right on %s (%s)"):format(used.name, used.instruction_set)
end

local function check_mpi()
  local version = output_of { "mpirun", "--version" }
  return version ~= nil and version:find("Open MPI", 1, true) ~= nil,
    version or "mpirun was not found", "install Open MPI 4 or later (Debian: openmpi-bin)"
end

local function check_all_reduce(world)
  local one = core.ones({ 1 }, "f64")
  world:all_reduce(one, "sum")
  local sum, size = one:item(), world:size()
  local text = ("the ones of %d rank%s add up to %g"):format(size, size == 1 and "" or "s", sum)
  return sum == size, text,
    "MPI moves wrong data between these processes: see that all ranks use one Open MPI"
end

-- A rank that is bound has its cores for itself; ranks that are not share all of them.
local function check_threads(world)
  local threads, ranks, cores = core.device().threads, world:local_size(), core.process.cores()
  local text = ("%d thread%s x %d rank%s, %d core%s for this rank"):format(threads,
    threads == 1 and "" or "s", ranks, ranks == 1 and "" or "s", cores, cores == 1 and "" or "s")
  local all = tonumber(output_of { "getconf", "_NPROCESSORS_ONLN" }) or cores
  local good = threads <= cores and (cores < all or threads * ranks <= cores or threads == 1)
  if threads == 1 and ranks > all then text = text .. " (ranks share cores: slow, but right)" end
  return good, text, "use marea launch, or set OMP_NUM_THREADS to cores divided by ranks"
end

local function check_memory()
  local kib = read_first("/proc/meminfo", "MemAvailable:%s+(%d+)")
  if not kib then return true, "free memory is not told on this system" end
  local free = tonumber(kib) / 1024 ^ 2
  return free >= LEAST_MEMORY, ("%.1f GiB free"):format(free),
    ("close other programs: %.1f GiB are wanted"):format(LEAST_MEMORY)
end

local function check_disk(_, outputs)
  core.file.make_folder(outputs)
  local free = free_space(outputs)
  if not free then return true, "free space is not told for " .. outputs end
  return free >= LEAST_DISK, ("%.1f GiB free in %s"):format(free, outputs),
    ("make room for at least %.1f GiB, or use --outputs"):format(LEAST_DISK)
end

local function check_shared_memory(world)
  local free = free_space("/dev/shm")
  if not free then return true, "/dev/shm is not told on this system" end
  local wanted = LEAST_SHARED * world:local_size()
  return free >= wanted, ("%.2f GiB free in /dev/shm"):format(free),
    ("%.2f GiB are wanted: in a container, start it with a larger --shm-size"):format(wanted)
end

local checks = {
  { "blas", check_blas }, { "device", check_device }, { "kernel", check_kernel },
  { "mpi", check_mpi }, { "all_reduce", check_all_reduce }, { "threads", check_threads },
  { "memory", check_memory }, { "disk", check_disk }, { "shared_memory", check_shared_memory },
}

---@class marea.Finding
---@field name string
---@field ok boolean
---@field found string
---@field remedy? string what to do where it is not good

--- Runs every check on this rank; all ranks call it together.
---@param world marea.group the engine's group of all ranks
---@param outputs string the folder of all runs
---@return marea.Finding[] items
function doctor.examine(world, outputs)
  local items = {}
  for _, check in ipairs(checks) do
    local ran, good, found, remedy = pcall(check[2], world, outputs)
    if not ran then good, found, remedy = false, (fault.of(good)), "see the message" end
    items[#items + 1] = { name = check[1], ok = good and true or false, found = found,
                          remedy = not good and remedy or nil }
  end
  return items
end

--- Whether mpirun can start two ranks here; for a doctor that runs without it.
---@return marea.Finding item
function doctor.try_two_ranks()
  local started, code, _, errors = pcall(launch.run, { ranks = 2, time_limit = 60 },
                                         { "doctor", "--probe" })
  if not started then code, errors = 4, tostring(code) end
  local reason = errors:match("^[^\n]*") or ""
  return {
    name = "two_ranks", ok = code == 0,
    found = code == 0 and "mpirun starts two ranks, and their all-reduce is right"
      or ("two ranks under mpirun ended with code %d: %s"):format(code, reason),
    remedy = code ~= 0 and "run marea launch -n 2 doctor and see its messages" or nil,
  }
end

return doctor
