-- Where the time of an update goes on one rank, for rank-R.jsonl.
--
-- Up to the step every moment belongs to one phase, so the phases of an update add up to its time.
-- Within accumulate the engine knows how long backwards took and how long this rank waited for
-- others; the rest is forward. So it is the same for a replica and for a loop by hand: `reduction`
-- is what a rank waits for while it accumulates, and what overlaps with backward is no part of it.

local core = require "marea.core"

---@class marea.PhaseTimes milliseconds
---@field count number the window's batches, and the count over all ranks
---@field forward number
---@field backward number
---@field reduction number waits within accumulate
---@field step number norm, shared record and optimizer
---@field save number of the checkpoint behind the update; 0 without one
---@field evaluate? number of the evaluation behind the update, where there is one

---@class marea.Phases
---@field world marea.World
---@field seconds table<string, number>
local Phases = {}
Phases.__index = Phases

local phases = {}

--- Milliseconds as a log has them: to the microsecond.
---@param seconds number
---@return number milliseconds
function phases.milliseconds(seconds) return math.floor(seconds * 1e6 + 0.5) / 1000 end

--- A clock of phases; it runs from `begin`.
---@param world marea.World
---@return marea.Phases
function phases.new(world) return setmetatable({ world = world, seconds = {} }, Phases) end

local function mark(self)
  self.at, self.waited = core.seconds(), self.world:waited()
  self.backward = core.backward_seconds()
end

--- Begins an update.
function Phases:begin()
  self.seconds = { count = 0, forward = 0, backward = 0, reduction = 0, step = 0, save = 0 }
  mark(self)
  self.began, self.waited_before = self.at, self.waited
end

--- Gives the time since the last phase to this one.
---@param name string
function Phases:done(name)
  local at = self.at
  mark(self)
  self.seconds[name] = (self.seconds[name] or 0) + self.at - at
end

--- Gives the time since the last phase to forward, backward and reduction.
function Phases:done_accumulating()
  local at, backward, waited = self.at, self.backward, self.waited
  mark(self)
  local seconds = self.seconds
  seconds.backward, seconds.reduction = self.backward - backward, self.waited - waited
  seconds.forward = math.max(0, self.at - at - seconds.backward - seconds.reduction)
end

--- How long the update has taken up to the last phase.
---@return number seconds
function Phases:total() return self.at - self.began end

--- The time of each phase since the update began.
---@return marea.PhaseTimes times
---@return number waiting milliseconds of waits for other ranks, in all phases together
function Phases:times()
  local times = {}
  for name, seconds in pairs(self.seconds) do times[name] = phases.milliseconds(seconds) end
  return times, phases.milliseconds(self.world:waited() - self.waited_before)
end

return phases
