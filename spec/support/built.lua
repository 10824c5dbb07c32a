-- Programs that are built beside marea for the specs.

local launch = require "marea.launch"

local built = {}

--- The path of a program beside marea's, or nil where it was not built.
---@param name string
---@return string? path
function built.path(name)
  local path = (launch.program():match("^(.*/)") or "./") .. name
  local file <close> = io.open(path, "rb")
  return file and path or nil
end

--- Runs such a program; standard error is returned with its output.
---@param path string
---@param words string
---@return integer? code nil when it ended by a signal
---@return string output
function built.run(path, words)
  local stream = assert(io.popen(("timeout 300 '%s' %s 2>&1"):format(path, words)))
  local output = stream:read("a")
  local _, how, code = stream:close()
  return how == "exit" and code or nil, output
end

return built
