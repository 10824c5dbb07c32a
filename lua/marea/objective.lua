-- Objectives: what is averaged over what. A unit gives the weight of each supervised position; the
-- loss of a window is sum(weight * loss) / sum(weight) over all supervised positions of all ranks.
--
-- A unit of one's own is a function of the same form:
--     function(sequence, window) -> a number, or one number per supervised position of the sequence
-- `sequence` is a row of the corpus with its rank in this window; `window` knows the tokens of all
-- ranks. Nothing else divides: denominators come from the window's count.

local fault = require "marea.fault"
local options_of = require "marea.options"
local weightings = require "marea.weightings"

---@class marea.parts.objective
local objective = {}

--- Every supervised position counts the same.
---@return number weight
function objective.global_token() return 1 end

--- Every sequence counts the same: 1 / (its supervised positions).
---@param sequence marea.PlacedSequence
---@return number weight
function objective.per_sequence(sequence) return 1 / sequence.tokens end

--- Every rank that has tokens counts the same: 1 / (supervised positions of its rank). This is what
--- averaging the ranks' own averages computes.
---@param sequence marea.PlacedSequence
---@param window marea.Window
---@return number weight
function objective.mean_of_means(sequence, window)
  return 1 / window.rank_tokens[sequence.rank + 1]
end

objective.per = weightings.per
objective.scaled_by = weightings.scaled_by
objective.by_class = weightings.by_class
objective.prompts = weightings.prompts
objective.product = weightings.product
objective.targets = weightings.targets

--- The library's objectives by name.
---@type table<string, marea.Weighting>
objective.named = {
  global_token = objective.global_token,
  mean_of_means = objective.mean_of_means,
  per_sequence = objective.per_sequence,
}
for name, unit in pairs(objective.named) do weightings.set_text(unit, name) end

-- Units that give one value each instead of one per position.
local counted = { position = true, sequence = true, microbatch = true, window = true }

local function check_term(term, i)
  local place = ("term %d of the objective"):format(i)
  if type(term) ~= "table" or type(term.name) ~= "string" then
    fault.raise(2, "%s must be {name=, unit=, coefficient=}, got %s", place, type(term))
  end
  options_of.check(term, place, { "name", "unit", "coefficient" })
  if type(term.unit) ~= "function" and not counted[term.unit] then
    fault.raise(2, "%s (%s): unit must be a function, 'position', 'sequence', 'microbatch' or " ..
                "'window', got %s", place, term.name, tostring(term.unit))
  end
  local coefficient = term.coefficient or 1
  if type(coefficient) ~= "number" or coefficient - coefficient ~= 0 then
    fault.raise(2, "%s (%s): coefficient must be a finite number, got %s", place, term.name,
                tostring(coefficient))
  end
  return { name = term.name, unit = term.unit, coefficient = coefficient }
end

--- An objective as a list of terms: a single unit is one term named "loss" with coefficient 1.
--- Errors, code 2: anything else, terms without name or unit, names given twice.
---@param value marea.Weighting|marea.Term[] a unit, or a list of terms
---@return marea.Term[] terms
---@return boolean named whether recipe.loss returns {name = tensor} instead of one tensor
function objective.terms(value)
  if type(value) == "function" then
    return { { name = "loss", unit = value, coefficient = 1 } }, false
  end
  if type(value) ~= "table" or #value == 0 then
    fault.raise(2, "an objective is a function or a list of terms, got %s", type(value))
  end
  local terms, seen = {}, {}
  for i, term in ipairs(value) do
    terms[i] = check_term(term, i)
    if seen[term.name] then
      fault.raise(2, "two terms of the objective have the name %q", term.name)
    end
    seen[term.name] = true
  end
  return terms, true
end

return objective
