-- Weighing: the weight that every supervised position of a window has in the loss, under the
-- declared objective and under others. No model takes part.
--
-- The weight of a position is coefficient * unit weight / denominator: what the gradient of the
-- window's loss is multiplied with at that position, after everything.

local objective = require "marea.objective"
local Session = require "marea.session"
local sorted = require "marea.sorted"
local units = require "marea.units"
local Window = require "marea.window"

local weigh = {}

local function sum_of(weights)
  local sum = 0
  for _, weight in ipairs(weights) do sum = sum + weight end
  return sum
end

local function weigh_sequence(window, term, share, sequence)
  local unit = units.of_sequence(window, term, sequence)
  local entry = { id = sequence.id, rank = sequence.rank, microbatch = sequence.microbatch,
                  tokens = sequence.tokens }
  if type(unit) == "table" then
    entry.weights = {}
    for j, weight in ipairs(unit) do entry.weights[j] = weight * share end
    entry.share = sum_of(entry.weights)
  else
    entry.weight = unit * share
    entry.share = entry.weight * sequence.tokens
  end
  return entry
end

--- Sums of sequences by rank.
---@param weighed {window: marea.Window, sequences: marea.SequenceShare[]}
---@return marea.RankShare[] ranks rank 0 first
function weigh.ranks(weighed)
  local window, sequences, ranks = weighed.window, weighed.sequences, {}
  for r, tokens in ipairs(window.rank_tokens) do
    ranks[r] = { rank = r - 1, tokens = tokens, share = 0 }
  end
  for _, entry in ipairs(sequences) do
    local rank = ranks[entry.rank + 1]
    rank.share = rank.share + entry.share
  end
  for _, rank in ipairs(ranks) do
    rank.per_token = rank.tokens > 0 and rank.share / rank.tokens or nil
  end
  return ranks
end

---@class marea.RankShare
---@field rank integer
---@field tokens integer supervised positions
---@field share number
---@field per_token? number none for a rank without tokens

---@class marea.SequenceShare
---@field id integer
---@field rank integer
---@field microbatch integer
---@field tokens integer
---@field share number
---@field weight? number of every position
---@field weights? number[] of each position, where they are not alike

---@class marea.Weighed
---@field ranks marea.RankShare[]
---@field sequences marea.SequenceShare[]

---@class marea.WeighedObjective: marea.Weighed
---@field name string
---@field declared boolean whether it is the recipe's

---@class marea.WeighReport
---@field recipe string
---@field step integer
---@field world integer planned ranks
---@field tokens integer
---@field rank_tokens integer[]
---@field objectives marea.WeighedObjective[]

--- The weights of a counted window under its session's objective.
--- Errors, code 5: an objective without a term per position; weights that its unit must not give.
---@param window marea.Window
---@return marea.Weighed weights whose shares add up to the coefficient
function weigh.window(window)
  local t, term = units.main_term(window.session.terms)
  if not term then units.refuse(window, "the objective has no term per position to weigh") end
  local share, sequences = term.coefficient / window.denominators[t], {}
  for sequence in window:sequences() do
    sequences[#sequences + 1] = weigh_sequence(window, term, share, sequence)
  end
  local ranks = weigh.ranks { window = window, sequences = sequences }
  return { ranks = ranks, sequences = sequences }
end

-- The declared objective first, then the library's others, then the recipe's own units.
local function objectives_of(recipe)
  local list, seen = { { name = recipe.config.objective, value = recipe.objective,
                         declared = true } }, { [recipe.config.objective] = true }
  local function add(named)
    for _, name in ipairs(sorted.keys(named)) do
      if not seen[name] then list[#list + 1] = { name = name, value = named[name] } end
      seen[name] = true
    end
  end
  add(objective.named)
  add(recipe.units)
  return list
end

--- Weighs a window of a recipe under every objective; one process plays all planned ranks.
--- Errors, code 5: a window that an objective refuses, or an objective without a term per position.
---@param recipe marea.Recipe
---@param step integer update, from 1
---@param shared? marea.SessionParts what is at hand already
---@return marea.WeighReport report
function weigh.recipe(recipe, step, shared)
  local session = Session.open(recipe, shared)
  local report = { recipe = recipe.name, step = step, objectives = {} }
  for i, entry in ipairs(objectives_of(recipe)) do
    local window, weights = session:with_terms(function()
      local counted = Window.new(session, step, 0):count()
      return counted, weigh.window(counted)
    end, objective.terms(entry.value))
    report.world, report.tokens = window.ranks, window.tokens
    report.rank_tokens = window.rank_tokens
    report.objectives[i] = { name = entry.name, declared = entry.declared or false,
                             ranks = weights.ranks, sequences = weights.sequences }
  end
  return report
end

return weigh
