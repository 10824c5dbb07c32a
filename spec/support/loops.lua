-- Loops over a window, right and wrong, as recipes might have them.

local loops = {}

-- The loop of recipes/minimum.lua, with each microbatch's weights passed through `change`.
local function with_weights(change)
  return function(replica, window)
    replica:zero_grad()
    for i, batch in ipairs(window) do
      local _ <close> = i < #window and replica:no_sync()
      replica:loss(batch, change(window:weights(batch), window, batch)):backward()
    end
  end
end

loops.right = with_weights(function(weights) return weights end)

--- Divides once more by the number of microbatches.
loops.divides_again = with_weights(function(weights, window) return weights:scale_(1 / #window) end)

--- Leaves out the factor that undoes the mean over the ranks.
loops.no_factor = with_weights(function(weights, window)
  return weights:scale_(1 / window.ranks)
end)

--- Every position weighs the same, whatever the objective says.
loops.by_token = with_weights(function(weights, window, batch)
  for _, rows in ipairs(batch.supervised) do
    for _, row in ipairs(rows) do weights:set_(row, window.ranks / window.tokens) end
  end
  return weights
end)

--- Takes positions without a target for supervised ones where it counts.
loops.by_rows = with_weights(function(weights, window, batch)
  local rows = 0
  for sequence in window:sequences() do rows = rows + sequence.length end
  return weights:fill_(window.ranks / rows), batch
end)

--- Weighs as another unit does, whatever was declared: the mistake of a loop that brings its own.
---@param unit marea.Weighting that gives one number for all positions of a sequence
---@return fun(replica: marea.Replica, window: marea.Window) accumulate
function loops.weighing_as(unit)
  return with_weights(function(weights, window, batch)
    local total = 0
    for sequence in window:sequences() do
      if sequence.tokens > 0 then total = total + unit(sequence, window) * sequence.tokens end
    end
    for s, rows in ipairs(batch.supervised) do
      for _, row in ipairs(rows) do
        weights:set_(row, window.factor * unit(batch.sequences[s], window) / total)
      end
    end
    return weights
  end)
end

--- Miscounts the supervised positions of the window by one.
function loops.miscounts(replica, window)
  window.denominators[1] = window.denominators[1] + 1
  loops.right(replica, window)
end

--- Runs the right loop, then moves one element of a parameter's gradient.
---@param name string
---@param index integer
---@param by number
---@param on_rank? integer on this rank only
function loops.moved(name, index, by, on_rank)
  return function(replica, window)
    loops.right(replica, window)
    if on_rank and on_rank ~= window.rank then return end
    local gradient = replica.model.unit:parameter(name):gradient()
    gradient:set_(index, gradient:get(index) + by)
  end
end

-- --- by hand (replicate = false) -----------------------------------------------------------------

--- The loop of recipes/by_hand.lua. What it leaves out can be named: zero_grad, all_reduce, scale.
---@param world marea.World
---@param without? table<string, boolean>
function loops.by_hand(world, without)
  without = without or {}
  return function(model, window)
    if not without.zero_grad then model:zero_grad() end
    for _, batch in ipairs(window) do model:loss(batch, window:weights(batch)):backward() end
    local gradients = model:gradients()
    if not without.all_reduce then world:all_reduce(gradients, "sum") end
    if not without.scale then gradients:scale_(1 / world:size()) end
  end
end

return loops
