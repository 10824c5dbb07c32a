-- The loop of training: window, accumulate, one shared record of statistics, step.
--
-- Ranks share one record per update, after the gradients are reduced and before the step: so all
-- see the same reason to stop, and none steps where another does not. `history` (on rank 0) keeps
-- what an update was for checkpoints, `journal` for people.

local core = require "marea.core"
local fault = require "marea.fault"
local phases_of = require "marea.phases"

---@class marea.Trainer
---@field update integer updates done
---@field microbatches integer[] used so far, for each rank
---@field sequences integer[] used so far, for each rank
---@field stream marea.stream this rank's own random numbers
---@field phases marea.Phases of the update under way
---@field stop_asked? boolean set on any rank: all stop after the update that is under way
local Trainer = {}
Trainer.__index = Trainer

local trainer = {}

-- The ranks' own streams of the run's seed.
local first_stream = 1000

--- The stream of random numbers that belongs to one rank, at its beginning.
---@param seed integer
---@param rank integer
---@return marea.stream stream
function trainer.new_stream(seed, rank) return core.stream(seed, first_stream + rank) end

local function check_schedule(factor)
  if type(factor) ~= "function" then
    fault.raise(2, "the recipe's schedule must return a function from the update to a factor of " ..
                "lr, got %s", factor == nil and "nothing" or "a " .. type(factor))
  end
  return factor
end

local function schedule_of(recipe)
  if not recipe.schedule then return function() return 1 end end
  return recipe:at("schedule", check_schedule, recipe.schedule(recipe.config))
end

local function zeros(count)
  local list = {}
  for i = 1, count do list[i] = 0 end
  return list
end

--- Makes the loop of a session whose model is built, at update 0.
---@param session marea.Session
---@param options? {history?: marea.History, journal?: marea.Journal, draws_from?: integer}
---  draws_from: a control; dropout takes the update after this one for the first
---@return marea.Trainer
function trainer.new(session, options)
  options = options or {}
  local world = session.world
  return setmetatable({
    session = session, world = world, rank = world:rank(), config = session.config,
    factor = schedule_of(session.recipe), history = options.history, journal = options.journal,
    draws_from = options.draws_from,
    update = 0, tokens_seen = 0, microbatches = zeros(world:size()),
    sequences = zeros(world:size()), stream = trainer.new_stream(session.config.seed, world:rank()),
    phases = phases_of.new(world),
  }, Trainer)
end

-- Bytes that this rank handed to collectives and messages so far.
local function bytes_sent(world)
  local sum = 0
  for kind, entry in pairs(world:ledger()) do
    if kind ~= "receive" then sum = sum + entry.bytes end
  end
  return sum
end

local function finite(value) return value - value == 0 end

--- The norm of all gradients, before clipping.
---@return number norm
function Trainer:gradient_norm() return self.session.model.unit:norm() end

-- Clips by the step, where the config says so: the gradients themselves stay as they are.
local function step(session, lr, norm)
  local limit = session.config.clip_norm
  session.optimizer:step(lr, limit and session.model.unit:clip_factor(limit, norm))
end

---@class marea.Shared
---@field loss_sums number[] of each rank
---@field norms number[] of each rank's gradients
---@field checksums number[] sum of each rank's parameters
---@field draws integer[] of each rank's own stream
---@field has_loss boolean? whether there are losses per position
---@field stop boolean? whether some rank was asked to stop

--- Gathers one record of every rank; all ranks call it.
---@param norm number
---@return marea.Shared shared the same on all ranks
function Trainer:share(norm)
  local statistics = self.session.statistics
  local mine = { statistics.loss_sum or 0, norm, self.session.model:values():total(),
                 self.stream:next(), statistics.loss_sum and 1 or 0, self.stop_asked and 1 or 0 }
  local all = self.world:all_gather(core.host.from(mine, "f64")):values()
  local shared = { loss_sums = {}, norms = {}, checksums = {}, draws = {} }
  for r = 1, self.world:size() do
    local at = (r - 1) * #mine
    shared.loss_sums[r], shared.norms[r] = all[at + 1], all[at + 2]
    shared.checksums[r], shared.draws[r] = all[at + 3], math.tointeger(all[at + 4])
    shared.has_loss = shared.has_loss or all[at + 5] == 1
    shared.stop = shared.stop or all[at + 6] == 1
  end
  return shared
end

local function first_not_finite(values)
  for r, value in ipairs(values) do
    if not finite(value) then
      return r - 1, (tostring(value):gsub("^%-?nan$", "not a number"))
    end
  end
end

-- The first loss or norm that is not finite, in words. One rank's loss makes the reduced gradients
-- of all what it is, so losses are looked at first.
local function non_finite(shared)
  local rank, value = first_not_finite(shared.loss_sums)
  if rank then return ("the loss of rank %d is %s"):format(rank, value) end
  rank, value = first_not_finite(shared.norms)
  if rank then return ("the gradient norm, on rank %d, is %s"):format(rank, value) end
end

--- Looks for a loss or norm that is not finite. All ranks hold the same record here, so all skip
--- the step or stop with the same words, or none does.
--- Errors, code 5: there is one, and config.nonfinite does not say to skip.
---@param update integer
---@param shared marea.Shared
---@return string? reason why the step is skipped
function Trainer:check_finite(update, shared)
  local problem = non_finite(shared)
  if problem and self.config.nonfinite ~= "skip" then
    fault.raise(5, "update %d: %s; nobody stepped, so the parameters are those of update %d",
                update, problem, update - 1)
  end
  return problem
end

--- The optimizer's lr times the factor of the recipe's schedule.
--- Errors, code 2: a factor that is negative or not finite.
---@param update integer
---@return number lr
function Trainer:learning_rate(update)
  local factor = self.factor(update)
  if type(factor) ~= "number" or not (factor >= 0 and factor < math.huge) then
    fault.raise(2, "the recipe's schedule must give a finite factor of at least 0, got %s for " ..
                "update %d", tostring(factor), update)
  end
  return self.session.optimizer.lr * factor
end

local function spread(values)
  local least, most = math.huge, -math.huge
  for _, value in ipairs(values) do
    least, most = math.min(least, value), math.max(most, value)
  end
  return most - least
end

--- Adds the microbatches and sequences of an update to what was used.
---@param update integer
function Trainer:count_position(update)
  for r, microbatches in ipairs(self.session.plan[update]) do
    self.microbatches[r] = self.microbatches[r] + #microbatches
    for _, ids in ipairs(microbatches) do
      self.sequences[r] = self.sequences[r] + #ids
    end
  end
end

--- Adds the update to the metrics, and begins its line in this rank's own log.
---@param result marea.Metrics what the ranks know together
---@param shared marea.Shared
function Trainer:note(result, shared)
  if self.rank == 0 and self.history then
    self.history:add { update = result.update, tokens = result.tokens,
                       loss_sums = shared.loss_sums, draws = shared.draws,
                       factor = self.factor(result.update),
                       skipped = result.skipped and true or nil }
  end
  if not self.journal then return end
  self.journal:write_metrics(result)
  self.journal:begin_rank {
    update = result.update, tokens = result.rank_tokens[self.rank + 1],
    loss_sum = shared.loss_sums[self.rank + 1], draw = shared.draws[self.rank + 1],
    ms = phases_of.milliseconds(self.phases:total()) }
end

--- Ends an update whose evaluation and checkpoint, if there are any, are done: writes its line with
--- the time of each phase to this rank's own log.
function Trainer:end_update()
  local times, waiting = self.phases:times()
  self.journal:end_rank { phases = times, waiting = waiting }
end

local function sum(list)
  local total = 0
  for _, value in ipairs(list) do total = total + value end
  return total
end

local function renumber_dropout(window, update)
  for _, batch in ipairs(window) do batch.update = update end
end

--- A line of metrics.jsonl.
---@class marea.Metrics
---@field update integer
---@field objective string
---@field tokens_seen integer of all updates so far
---@field loss_per_token number? none where the recipe has no loss per position
---@field tokens integer of all ranks
---@field rank_tokens integer[] of each rank
---@field sequences integer
---@field grad_norm number before clipping
---@field lr number
---@field skipped string? why no rank stepped
---@field parameter_spread number largest difference between the ranks' sums of parameters
---@field ms number of this rank
---@field tokens_per_second number
---@field bytes_sent integer of this rank

--- Does the next update. All ranks call it.
--- Errors: code 5 for a window without supervised positions, or a loss or gradient norm that is
--- not finite, unless such windows are skipped (on all ranks alike, before the step); what
--- callbacks raise.
---@return marea.Metrics result
---@return boolean stop whether some rank was asked to stop
function Trainer:advance()
  local update, session = self.update + 1, self.session
  local phases, sent = self.phases, bytes_sent(self.world)
  phases:begin()
  local window = session:window(update)
  if self.draws_from then renumber_dropout(window, update - self.draws_from) end
  session.statistics = {}
  phases:done "count"
  session:accumulate(window)
  phases:done_accumulating()
  local norm = self:gradient_norm()
  local shared = self:share(norm)
  local skipped = session.recipe:at("loss", self.check_finite, self, update, shared)
  local lr = session.recipe:at("schedule", self.learning_rate, self, update)
  if not skipped then step(session, lr, norm) end
  window:release()
  self.update, self.tokens_seen = update, self.tokens_seen + window.tokens
  self:count_position(update)
  phases:done "step"
  local seconds = phases:total()
  local result = {
    update = update, objective = self.config.objective,
    loss_per_token = shared.has_loss and sum(shared.loss_sums) / window.tokens or nil,
    tokens = window.tokens, rank_tokens = window.rank_tokens, sequences = window.sequence_count,
    tokens_seen = self.tokens_seen,
    grad_norm = shared.norms[1], lr = lr, skipped = skipped,
    parameter_spread = spread(shared.checksums),
    ms = seconds * 1000, tokens_per_second = window.tokens / seconds,
    bytes_sent = bytes_sent(self.world) - sent,
  }
  self:note(result, shared)
  return result, shared.stop or false
end

return trainer
