-- What happens to an error that reaches the top of a command: it is printed, by rank 0 alone when
-- all ranks failed alike, and becomes the exit code.

local core = require "marea.core"
local fault = require "marea.fault"
local launch = require "marea.launch"

local failure = { trace = false }

--- The message handler of xpcall: what is known about an error where it is raised.
---@param value any the error value
---@return {message: string, code: integer, peer: boolean, trace: string}
function failure.catch(value)
  local message, code = fault.of(value)
  return { message = message, code = code, peer = fault.is(value) and value.peer or false,
           trace = debug.traceback("", 2) }
end

-- Tells the other ranks that this one stops. Returns the exit code of the rank that stopped first,
-- and whether all ranks stopped with this rank's message. Without a common world (MPI did not
-- start) nothing is known of the others.
local function leave(caught)
  local good, code, alike = pcall(core.leave, caught.code, caught.message)
  if not good then return caught.code, false end
  return code, alike
end

--- Prints a caught error to standard error, tells the other ranks, and returns the exit code, which
--- is that of the rank that stopped first.
---@param caught {message: string, code: integer, peer: boolean, trace: string}
---@return integer code 1 to 7
function failure.report(caught)
  if failure.trace then caught.message = caught.message .. caught.trace end
  if not launch.under_launcher() then
    io.stderr:write(("marea: %s\n"):format(caught.message))
    return caught.code
  end
  io.stdout:flush()
  local code, alike = leave(caught)
  if alike then
    if launch.rank() == 0 then io.stderr:write(("marea: %s\n"):format(caught.message)) end
  elseif not caught.peer then
    io.stderr:write(("marea: rank %d: %s\n"):format(launch.rank(), caught.message))
  end
  return code
end

return failure
