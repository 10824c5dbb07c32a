-- How a command ends: the world is closed, or left with an error, which is printed once (by rank 0
-- when all ranks failed alike) and becomes the exit code.

local core = require "marea.core"
local fault = require "marea.fault"
local launch = require "marea.launch"

local failure = { trace = false }

local longest = 4096 -- bytes of a message

-- A message as a terminal can be given it: without control characters, and not without end.
local function printable(message)
  if #message > longest then
    local cut = utf8.offset(message, 0, longest + 1) or longest + 1
    message = ("%s ... (%d more bytes)"):format(message:sub(1, cut - 1), #message - cut + 1)
  end
  return (message:gsub("[^%C\n\t]", function(c) return ("\\x%02X"):format(c:byte()) end))
end

---@class marea.Caught
---@field message string
---@field code integer 1 to 7
---@field peer boolean another rank has said it already
---@field trace string the stack

--- The message handler of xpcall: what is known about an error where it is raised.
---@param value any the error value
---@return marea.Caught caught
function failure.catch(value)
  local raised = fault.seize(value)
  return { message = printable(raised.message), code = raised.code, peer = raised.peer or false,
           trace = debug.traceback("", 2) }
end

-- Standard error's line of this rank, or of all.
local function say(message, for_all)
  if not launch.under_launcher() or for_all then
    if launch.rank() == 0 then io.stderr:write(("marea: %s\n"):format(message)) end
  else
    io.stderr:write(("marea: rank %d: %s\n"):format(launch.rank(), message))
  end
end

-- A rank that could not go on because another one stopped repeats what that one says itself.
local function repeats_peer(problem)
  return problem:find("^rank %d+ stopped: ") ~= nil
end

--- Ends a command that returned a code: 0 closes the world, another one leaves it.
---@param code integer 0 to 7
---@return integer code that the process ends with
function failure.finish(code)
  io.stdout:flush()
  local final, alike, problem = core.end_world(code, "")
  if problem and not repeats_peer(problem) then say(problem, alike) end
  return final
end

--- Prints a caught error, tells the other ranks, and returns the exit code, which is that of the
--- rank that stopped first. Ranks that fail before they have a common world open it now: only
--- there they see whether all fail alike.
---@param caught marea.Caught
---@return integer code 1 to 7
function failure.report(caught)
  io.stdout:flush()
  local message = caught.message .. (failure.trace and caught.trace or "")
  local code, alike = caught.code, true
  if launch.under_launcher() then
    local opened = pcall(core.world)
    code, alike = core.end_world(caught.code, caught.message)
    alike = alike and opened
  end
  if alike or not caught.peer then say(message, alike) end
  return code
end

return failure
