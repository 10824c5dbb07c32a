-- The terminal that standard error goes to. Under mpirun it is a pipe; `marea launch` then tells
-- its ranks of the terminal that the pipe ends in.

local core = require "marea.core"

local terminal = {}

--- The variable in which `marea launch` tells its ranks the width of its terminal.
terminal.variable = "MAREA_TERMINAL"

--- How wide the terminal is.
---@return integer? columns nil where standard error goes to none
function terminal.width()
  return core.process.terminal_width(2) or
    math.tointeger(tonumber(os.getenv(terminal.variable) or ""))
end

--- Whether text may be coloured: on a terminal that knows colours, unless NO_COLOR is set.
---@return boolean
function terminal.has_colours()
  return terminal.width() ~= nil and (os.getenv "NO_COLOR" or "") == "" and
    os.getenv "TERM" ~= "dumb"
end

return terminal
