-- Controls: ways of getting a distributed gradient wrong, each broken into the mechanism that the
-- recipe's own loop runs on. Parity must see every one that the window can tell from the right
-- answer; `apart` says whether it can, or why not.
--
-- A weighting control changes what window:share returns (or the unit that is weighted with);
-- whether the window tells it apart is decided by the weights that its positions would get.

local objective = require "marea.objective"
local units = require "marea.units"

local controls = {}

local function world_factor(window, world) return window.factor / world end

-- --- weightings -------------------------------------------------------------------------------

-- share(window, made, t, W): what the unit's weight is multiplied with. W: ranks of the reduction.
local shares = {}

function shares.divided_by_microbatches(window, _, t)
  return window.factor / window.denominators[t] / #window
end

-- A mean over ranks without the factor that undoes it; a sum with a factor that nothing undoes.
function shares.no_factor(window, _, t, world)
  local factor = window.factor == world and 1 or world
  return factor / window.denominators[t]
end

-- The mean of the microbatches' own means, averaged over the ranks.
function shares.own_count(window, made, t, world)
  local sum = window:sum_of(made, t)
  return sum > 0 and world_factor(window, world) / sum / #window or 0
end

-- Each rank's own mean, treated as if it were a sum: the factor W stays.
function shares.local_mean(window, _, t)
  local sum = 0
  for _, made in ipairs(window) do sum = sum + window:sum_of(made, t) end
  return sum > 0 and window.factor / sum or 0
end

local function with_share(name)
  return { name = name, weighting = true, share = shares[name] }
end

local function with_unit(name, unit)
  return { name = name, weighting = true, unit = unit or objective.named[name] }
end

-- --- effective weights ------------------------------------------------------------------------

-- The weight that each supervised position of all ranks ends up with, in rank order.
local function effective(windows, term, t, share)
  local weights = {}
  for _, window in ipairs(windows) do
    for _, made in ipairs(window) do
      local factor = share(window, made, t)
      for _, sequence in ipairs(made.sequences) do
        local unit = units.of_sequence(window, term, sequence)
        for j = 1, sequence.tokens do
          weights[#weights + 1] = factor * (type(unit) == "table" and unit[j] or unit)
        end
      end
    end
  end
  return weights
end

local function right_share(window, made, t) return window:share(made, t) end

local function differ(a, b)
  for i, weight in ipairs(a) do
    if math.abs(weight - b[i]) > 1e-9 * math.max(math.abs(weight), math.abs(b[i])) then
      return true
    end
  end
  return false
end

--- The same terms with another unit for the main one.
---@param terms marea.Term[]
---@param unit marea.Weighting
---@return marea.Term[] terms
function controls.replaced_terms(terms, unit)
  local changed, main = {}, units.main_term(terms)
  for t, term in ipairs(terms) do
    changed[t] = t == main and { name = term.name, unit = unit, coefficient = term.coefficient } or
                 term
  end
  return changed
end

-- body(terms) with the windows counted under another unit; nil when that unit refuses them.
local function recounted(windows, unit, body)
  local session, kept = windows[1].session, {}
  for i, window in ipairs(windows) do kept[i] = window.denominators end
  local good, result = pcall(session.with_terms, session, function()
    for _, window in ipairs(windows) do window:count() end
    return body(session.terms)
  end, controls.replaced_terms(session.terms, unit))
  for i, window in ipairs(windows) do window.denominators = kept[i] end
  return good and result or nil
end

local function weighting_apart(control, windows, world)
  local terms = windows[1].session.terms
  local t = units.main_term(terms)
  if not t then return false, "the objective has no term per position" end
  local right = effective(windows, terms[t], t, right_share)
  local wrong
  if control.unit then
    wrong = recounted(windows, control.unit, function(changed)
      return effective(windows, changed[t], t, right_share)
    end)
  else
    wrong = effective(windows, terms[t], t, function(window, made, term)
      return control.share(window, made, term, world)
    end)
  end
  if not wrong then return false, "this window is refused under it" end
  if differ(right, wrong) then return true end
  return false, "every position of this window gets the weight that it should have"
end

-- --- mechanisms -------------------------------------------------------------------------------

local function one_rank() return false, "one rank has nothing to reduce" end

local function same_data(windows)
  local first
  for _, window in ipairs(windows) do
    local seen = {}
    for _, made in ipairs(window) do
      seen[#seen + 1] = made.ids:hash() .. made.targets:hash() .. made.lengths:hash()
    end
    local text = table.concat(seen, " ")
    first = first or text
    if text ~= first then return false end
  end
  return true
end

local function reduction_apart(windows, world)
  if world == 1 then return one_rank() end
  if same_data(windows) then return false, "all ranks hold the same data" end
  return true
end

local function several_microbatches(windows)
  for _, window in ipairs(windows) do
    local with_tokens = 0
    for _, made in ipairs(window) do
      if made.tokens > 0 then with_tokens = with_tokens + 1 end
    end
    if with_tokens > 1 then return true end
  end
  return false, "no rank has more than one microbatch with supervised positions"
end

---@class marea.Control
---@field name string
---@field weighting? boolean it changes weights only, by unit or by share
---@field unit? marea.Weighting
---@field share? fun(window: marea.Window, made: marea.Batch, t: integer, world: integer): number
---@field apart fun(windows: marea.Window[], world: integer): boolean, string? or why it is not

--- All controls, in the order of the report.
---@type marea.Control[]
controls.list = {
  with_unit "mean_of_means",
  with_unit "per_sequence",
  with_unit "global_token",
  with_share "divided_by_microbatches",
  with_share "no_factor",
  with_share "own_count",
  with_share "local_mean",
  { name = "no_reduction", apart = reduction_apart },
  { name = "forgotten_zero_grad", apart = function() return true end },
  { name = "zero_grad_each_microbatch", apart = several_microbatches },
}
local function complete(control)
  function control.apart(windows, world) return weighting_apart(control, windows, world) end
  return control
end

for _, control in ipairs(controls.list) do
  if control.weighting then complete(control) end
end

--- What each control does wrong, for reports.
controls.meaning = {
  mean_of_means = "every rank's own average, averaged",
  per_sequence = "every sequence weighted alike",
  global_token = "every position weighted alike",
  divided_by_microbatches = "divided once more by the number of microbatches",
  no_factor = "the factor W that undoes the mean over ranks is wrong",
  own_count = "each microbatch divided by its own count",
  local_mean = "a rank's own mean handed in for a sum",
  no_reduction = "gradients not reduced over the ranks",
  forgotten_zero_grad = "another window's gradients not cleared",
  zero_grad_each_microbatch = "gradients cleared after every microbatch",
}

--- The controls of a recipe: all of them, and its own units that it does not declare.
---@param recipe marea.Recipe
---@return marea.Control[] list
function controls.of(recipe)
  local list, names = table.move(controls.list, 1, #controls.list, 1, {}), {}
  for name, unit in pairs(recipe.units) do
    local known = controls.meaning[name] or unit == recipe.objective
    if type(unit) == "function" and not known then names[#names + 1] = name end
  end
  table.sort(names)
  for i, name in ipairs(names) do
    table.insert(list, i, complete(with_unit(name, recipe.units[name])))
  end
  return list
end

return controls
