-- Where the time of updates goes on this rank: operations forward and backward, summing gradients
-- over the ranks, waiting for other ranks, window, norm, optimizer; what is left over is Lua and
-- what the tape does between calls.
-- Every moment is in one part, so the parts add up to the whole.

local core = require "marea.core"

local profile = {}

---@class marea.ProfileRow
---@field name string of an operation
---@field calls number an update
---@field forward number milliseconds an update
---@field backward number milliseconds an update

---@class marea.Profile milliseconds of an update
---@field operations marea.ProfileRow[] the dearest first
---@field parts table<string, number> forward, backward, window, zero_grad, norm, optimizer,
---  reduction (sums in shared windows), waiting (through MPI: the reduction too), rest
---@field total number
---@field updates integer that it is the mean of

-- Shadows a method of an object by one that adds up its time, waits left out.
local function watch(object, method, world, seconds, name)
  local own = object[method]
  object[method] = function(...)
    local began = core.seconds() - world:waited()
    local results = table.pack(own(...))
    seconds[name] = (seconds[name] or 0) + core.seconds() - world:waited() - began
    return table.unpack(results, 1, results.n)
  end
  return function() object[method] = nil end
end

local function watch_all(trainer, seconds)
  local session, world = trainer.session, trainer.world
  local undo = {
    watch(session, "window", world, seconds, "window"),
    watch(trainer, "gradient_norm", world, seconds, "norm"),
    watch(session.optimizer, "step", world, seconds, "optimizer"),
  }
  if session.recipe.replicate then
    undo[#undo + 1] = watch(session.driver, "zero_grad", world, seconds, "zero_grad")
  end
  return undo
end

local function operations(updates)
  local rows, forward, backward = core.profiled(), 0, 0
  for _, row in ipairs(rows) do
    row.calls = row.calls / updates
    row.forward, row.backward = row.forward * 1000 / updates, row.backward * 1000 / updates
    forward, backward = forward + row.forward, backward + row.backward
  end
  table.sort(rows, function(a, b) return a.forward + a.backward > b.forward + b.backward end)
  return rows, forward, backward
end

--- Does updates and tells where their time went. All ranks call it.
---@param trainer marea.Trainer
---@param advance fun() does one update
---@param updates integer
---@return marea.Profile
function profile.measure(trainer, advance, updates)
  local seconds, world = {}, trainer.world
  local undo = watch_all(trainer, seconds)
  core.profile(true)
  local began, waited = core.seconds(), world:waited()
  local summed, while_waiting = world:summed()
  for _ = 1, updates do advance() end
  local total = (core.seconds() - began) * 1000 / updates
  local all_summed, all_while_waiting = world:summed()
  all_summed, all_while_waiting = all_summed - summed, all_while_waiting - while_waiting
  local parts = { reduction = all_summed * 1000 / updates,
                  waiting = (world:waited() - waited - all_while_waiting) * 1000 / updates }
  local rows
  rows, parts.forward, parts.backward = operations(updates)
  core.profile(false)
  for _, restore in ipairs(undo) do restore() end
  for name, value in pairs(seconds) do parts[name] = value * 1000 / updates end
  local known = 0
  for _, value in pairs(parts) do known = known + value end
  parts.rest = total - known
  return { operations = rows, parts = parts, total = total, updates = updates }
end

return profile
