-- Random numbers that depend on a seed and a number of a stream, never on time or rank.

local core = require "marea.core"

---@class marea.parts.random
local random = { stream = core.stream, normal = core.normal, uniform = core.uniform }

return random
