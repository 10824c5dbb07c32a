-- The weighted sum of a recipe's losses over one microbatch.

local batch = require "marea.batch"
local fault = require "marea.fault"
local kind = require "marea.kind"
local units = require "marea.units"

local loss = {}

local function expected_shape(term, made)
  if term.unit == "sequence" then return { #made.sequences }, "one loss per sequence" end
  if term.unit == "microbatch" or term.unit == "window" then return {}, "one value" end
  return { made.rows }, "one loss per position"
end

local function shape_text(tensor) return "[" .. table.concat(tensor:shape(), ",") .. "]" end

local function check(term, value, made, named)
  local what = named and ("recipe.loss: " .. term.name) or "recipe.loss"
  local shape, meaning = expected_shape(term, made)
  local wanted = "[" .. table.concat(shape, ",") .. "]"
  if not kind.is_tensor(value) then
    fault.raise(1, "%s must be a tensor %s (%s), got %s", what, wanted, meaning, kind.of(value))
  end
  if shape_text(value) ~= wanted then
    fault.raise(1, "%s must have shape %s (%s), got %s", what, wanted, meaning, shape_text(value))
  end
end

--- Sum of the losses that count: a recipe's loss may have any value where there is no target.
---@param value marea.tensor [rows]
---@param made marea.Batch
---@return marea.tensor sum an f64 scalar
function loss.supervised_sum(value, made)
  if made.tokens == made.rows then return value:deferred_total() end
  local ones = {}
  for i = 1, #made.sequences do ones[i] = 1 end
  local counts = batch.per_position(made, value:dtype(), ones, 1)
  return value:detach():multiply(counts):deferred_total()
end

-- Statistics add up what each microbatch gave when they are asked for, so that no microbatch waits
-- for the device.
local adding_up = {
  __index = function(self, name)
    local parts, sum = rawget(self, "parts")[name], 0
    for _, part in ipairs(parts or {}) do sum = sum + part:item() end
    return parts and sum
  end,
}

local function add_part(statistics, name, part)
  if not rawget(statistics, "parts") then
    statistics.parts = {}
    setmetatable(statistics, adding_up)
  end
  statistics[name] = nil
  statistics.parts[name] = statistics.parts[name] or {}
  table.insert(statistics.parts[name], part)
end

-- Whether the sum of that name is under way, without reading it.
local function has(statistics, name)
  local parts = rawget(statistics, "parts")
  return rawget(statistics, name) ~= nil or parts and parts[name] ~= nil
end

local function add_statistics(statistics, term, value, made)
  if not statistics or statistics.term and statistics.term ~= term.name then return end
  if not units.per_position(term) then return end
  statistics.term = term.name
  add_part(statistics, "loss_sum", loss.supervised_sum(value, made))
end

-- A microbatch without supervised positions counts in no mean over microbatches, whatever its value
-- is: a mean over nothing is not a number, and 0 times that would not be 0.
local function is_silent(term, made) return term.unit == "microbatch" and made.tokens == 0 end

-- Refuses what is no batch and no weights of one, before the model sees it.
local function check_arguments(session, made, weights)
  if type(made) ~= "table" or type(rawget(made, "rows")) ~= "number" then
    fault.raise(1, "the loss is of a batch of the window, got %s", kind.of(made))
  end
  if kind.is_tensor(weights) or session.named_terms and type(weights) == "table" then return end
  fault.raise(1, "the loss expects the batch's weights, window:weights(batch), got %s",
              kind.of(weights))
end

--- Sum over all terms of coefficient * sum(weight * loss).
--- Errors, code 1: no batch or no weights; a loss that is no tensor, or not of the shape that its
--- term's unit asks for.
---@param session marea.Session its statistics get the sum, unweighted, of the first term that has
---  one loss per position, and add up the result where they have a field `weighted`; its probe, if
---  it has one, is added to the losses
---@param model marea.Module
---@param made marea.Batch a batch
---@param weights marea.Weights as window:weights gives them
---@return marea.tensor loss a scalar
function loss.weighted(session, model, made, weights)
  check_arguments(session, made, weights)
  local losses = session.recipe.loss(model, made)
  if not session.named_terms then losses, weights = { loss = losses }, { loss = weights } end
  if type(losses) ~= "table" then
    fault.raise(1, "recipe.loss must return a table {name = tensor} for the objective's terms, " ..
                "got %s", kind.of(losses))
  end
  local total
  for t, term in ipairs(session.terms) do
    local value = losses[term.name]
    session.recipe:at("loss", check, term, value, made, session.named_terms)
    add_statistics(session.statistics, term, value, made)
    if session.probe then value = session.probe:add_to(value, made, term) end
    if not is_silent(term, made) or t == #session.terms and not total then
      local part = value:weighted_sum(weights[term.name])
      if term.coefficient ~= 1 then part = part:scale(term.coefficient) end
      total = total and total:add(part) or part
    end
  end
  local statistics = session.statistics
  if statistics and has(statistics, "weighted") then
    add_part(statistics, "weighted", total:detach())
  end
  return total
end

return loss
