-- What bench measures of a session: its updates, and the matrix products that one of them asks for.

local core = require "marea.core"
local loss = require "marea.loss"
local statistics = require "marea.bench.statistics"

local subject = {}

--- The matrix products of a session's first window, forward and backward, on this rank.
---@param session marea.Session built
---@return marea.products[] list one for each microbatch
function subject.products(session)
  local window, list = session:window(1), {}
  session.statistics = {}
  for i, made in ipairs(window) do
    local value = loss.weighted(session, session.model, made, window:weights(made))
    list[i] = core.products(value)
  end
  window:release()
  collectgarbage()
  return list
end

--- Works out all of them, once.
---@param list marea.products[]
function subject.run(list)
  for _, products in ipairs(list) do products:run() end
end

--- Operations (two for a multiplication with its addition) of a list of products.
---@param list marea.products[]
---@return {single: number, batched: number} sum batched: those of attention
function subject.operations(list)
  local sum = { single = 0, batched = 0 }
  for _, products in ipairs(list) do
    local of_one = products:operations()
    sum.single, sum.batched = sum.single + of_one.single, sum.batched + of_one.batched
  end
  return sum
end

--- One update after the other; the plan begins anew when it is used up.
---@param trainer marea.Trainer
---@return fun() advance does one
---@return fun(): integer sent the bytes that the last one sent
function subject.advancer(trainer)
  local sent
  return function()
    if trainer.update == #trainer.session.plan then trainer.update = 0 end
    sent = trainer:advance().bytes_sent
  end, function() return sent end
end

--- Supervised positions of a session's first window, of all ranks.
---@param session marea.Session
---@return integer tokens
function subject.tokens(session)
  local tokens = 0
  for _, microbatches in ipairs(session.plan[1]) do
    for _, ids in ipairs(microbatches) do
      for _, id in ipairs(ids) do tokens = tokens + session.corpus:sequence(id).tokens end
    end
  end
  return tokens
end

--- How long an action takes, the device's work included.
---@param action fun()
---@return number ms milliseconds
function subject.milliseconds(action)
  core.finish()
  local began = core.seconds()
  action()
  core.finish()
  return (core.seconds() - began) * 1000
end

--- The largest of all ranks' values: of times, that of the slowest, for which all wait.
---@param world marea.World
---@param value number
---@return number
function subject.largest(world, value)
  if world:size() == 1 then return value end
  return world:all_reduce(core.host.from({ value }, "f64", { 1 }), "max"):get(1)
end

--- How long an action takes on this rank.
---@param count integer
---@param action fun()
---@return number ms the median of `count` times
function subject.median(count, action)
  local times = {}
  for i = 1, count do times[i] = subject.milliseconds(action) end
  return statistics.median(times)
end

return subject
