-- What a run says on standard error while it goes on: rank 0, one plain line per update or per
-- second, whichever is rarer, the first, the last and those that were skipped always.

local core = require "marea.core"

---@class marea.Progress
---@field silent boolean on every rank but 0
local Progress = {}
Progress.__index = Progress

local progress = {}

--- Makes the progress of a run from update `first` to `last`.
---@param world marea.World
---@param first integer update
---@param last integer update
---@return marea.Progress
function progress.new(world, first, last)
  return setmetatable({ silent = world:rank() ~= 0, first = first, last = last, shown = 0,
                        width = #tostring(last) }, Progress)
end

--- Says a line of text.
---@param format string as of string.format
---@param ... any
function Progress:say(format, ...)
  if not self.silent then io.stderr:write("marea: ", format:format(...), "\n") end
end

local function loss_text(loss) return loss and ("loss %.4f"):format(loss) or "loss -" end

--- Shows an update when it is time to.
---@param result marea.Metrics
function Progress:update(result)
  local now = core.seconds()
  local always = result.update == self.first or result.update == self.last or result.skipped
  if self.silent or not always and now - self.shown < 1 then return end
  self.shown = now
  local step = ("%" .. self.width .. "d/%d"):format(result.update, self.last)
  self:say("update %s  %s  %d tokens (%s)  gradient norm %.4g  lr %.4g  %.0f ms  %.0f tokens/s",
           step, loss_text(result.loss_per_token), result.tokens,
           table.concat(result.rank_tokens, " + "), result.grad_norm, result.lr, result.ms,
           result.tokens_per_second)
  if result.skipped then self:say("update %s  skipped: %s", step, result.skipped) end
end

--- Shows the result of an evaluation.
---@param result marea.Evaluation
function Progress:evaluation(result)
  self:say("update %" .. self.width .. "d: %s split: %s a token%s, %d sequences", result.update,
           result.split, loss_text(result.loss), result.accuracy and
           (", accuracy %.2f %%"):format(100 * result.accuracy) or "", result.sequences)
end

return progress
