-- What happens to an error that reaches the top of a command: it is printed, once when all ranks
-- failed alike, and becomes the exit code.

local fault = require "marea.fault"

local failure = { trace = false }

--- The message handler of xpcall: what is known about an error where it is raised.
---@param value any the error value
---@return {message: string, code: integer, trace: string}
function failure.catch(value)
  local message, code = fault.of(value)
  return { message = message, code = code, trace = debug.traceback("", 2) }
end

--- Prints a caught error to standard error and returns the exit code.
---@param caught {message: string, code: integer, trace: string}
---@return integer code 1 to 7
function failure.report(caught)
  local launch = require "marea.launch"
  local prefix = ""
  if launch.under_launcher() then prefix = ("rank %d: "):format(launch.rank()) end
  io.stderr:write(("marea: %s%s\n"):format(prefix, caught.message))
  if failure.trace then io.stderr:write(caught.trace, "\n") end
  return caught.code
end

return failure
