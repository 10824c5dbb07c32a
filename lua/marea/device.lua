-- The device that a run computes on: "cpu", "cuda" (the GPU of the rank's number on its host),
-- "cuda:N", or "auto" (a GPU where every rank can have one, else the CPU, said in one line).
--
-- All ranks choose together, so that none computes elsewhere than the others.

local core = require "marea.core"
local fault = require "marea.fault"

local device = {}

--- The variables by which a program hands its choice on to those that it starts.
device.variable, device.share_variable = "MAREA_DEVICE", "MAREA_SHARE_GPU"

local given, given_share -- on this process's command line
local used -- the name in use

--- Says what the command line asked for. It goes before what recipes say.
--- Errors, code 2: no device has that name.
---@param name? string
---@param share? boolean whether ranks may share a GPU
function device.give(name, share)
  if name and not device.is_name(name) then
    fault.raise_at(2, "", '--device must be "cpu", "cuda", "cuda:N" or "auto", got %q', name)
  end
  given, given_share = name or given, share or given_share
end

--- The device that was asked for on the command line or by the program that started this one; nil
--- when nothing was said.
---@return string? name
function device.asked()
  local named = os.getenv(device.variable)
  return given or named ~= "" and named or nil
end

--- Whether ranks may share a GPU.
---@return boolean
function device.may_share()
  return given_share or os.getenv(device.share_variable) == "1"
end

--- Variables for a program that is to make the same choice.
---@return table<string, string> variables
function device.variables()
  return { [device.variable] = device.asked(),
           [device.share_variable] = device.may_share() and "1" or nil }
end

--- Whether a name is that of a device.
---@param name any
---@return boolean
function device.is_name(name)
  return name == "cpu" or name == "cuda" or name == "auto" or
    type(name) == "string" and name:find("^cuda:%d%d?$") ~= nil
end

-- Opens this rank's GPU. Without a number it is the one of the rank's number on its host; ranks
-- begin anew where there are fewer GPUs, which is refused, or shared, once all know.
local function open(name, world)
  local ordinal = math.tointeger(tonumber(name:match(":(%d+)$")))
  ordinal = ordinal or world:local_rank() % core.count_cuda()
  core.use_device("cuda", ordinal)
end

-- What this rank has to tell of its GPU.
local function try(name, world)
  local good, problem = xpcall(open, fault.seize, name, world)
  local facts = core.device()
  if not good then return { problem = (fault.of(problem)) } end
  return { name = facts.name, model = facts.model, host = core.process.host(),
           place = facts.place }
end

-- What stands against the GPUs of all ranks, or nil; and whether ranks share one.
local function problem_of(ranks)
  local shared = false
  local owner = {}
  for r, rank in ipairs(ranks) do
    if rank.problem then
      return #ranks == 1 and rank.problem or ("rank %d: %s"):format(r - 1, rank.problem)
    end
    local place = rank.host .. " " .. rank.place
    if owner[place] and not device.may_share() then
      return ("ranks %d and %d would both compute on %s (%s) of %s; start one rank for each " ..
              "GPU, or let them share it with --share-gpu"):format(owner[place] - 1, r - 1,
                                                                   rank.name, rank.model,
                                                                   rank.host)
    end
    shared = shared or owner[place] ~= nil
    owner[place] = r
  end
  return nil, shared
end

-- Lets NCCL move data between the ranks' GPUs. Where it is missing they go by way of the host,
-- which rank 0 says.
local function connect(world)
  local name, missing = world:use_nccl()
  if name or missing == "" or world:rank() ~= 0 then return end
  io.stderr:write(("marea: between GPUs data go by way of the host: %s\n"):format(missing))
end

-- Leaves the CPU in use where a GPU could not be had.
local function choose(name, world)
  local ranks = require("marea.together").gather(world, try(name, world))
  local problem, shared = problem_of(ranks)
  if not problem then
    if not shared then connect(world) end
    return name
  end
  core.use_device "cpu"
  if name ~= "auto" then fault.raise_at(4, "", "device %s: %s", name, problem) end
  if world:rank() == 0 then
    io.stderr:write(("marea: no GPU is used: %s\n"):format(problem))
  end
  return "cpu"
end

--- Puts new tensors on a device; all ranks call it.
--- Errors, code 4, alike on all ranks: what keeps one from computing there; or NCCL cannot connect
--- the ranks.
---@param name string as of device.is_name
function device.use(name)
  if name == used or not used and name == "cpu" then return end
  used = nil
  if name == "cpu" then
    core.use_device "cpu"
  else
    choose(name, require("marea.world").get())
    used = name
  end
end

--- Puts new tensors on the device that was asked for, or on the CPU: for what no recipe is behind.
--- Errors as use.
function device.use_asked() device.use(device.asked() or "cpu") end

return device
