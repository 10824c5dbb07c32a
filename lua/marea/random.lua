-- Random numbers that depend on a seed and a number of a stream, never on time or rank.

local core = require "marea.core"

return { stream = core.stream, normal = core.normal, uniform = core.uniform }
