-- The public cases: windows of W ranks, by as many ranks where the world has them, played by one
-- process in any world, and by the reference; and tell-tales, which are named when one comes out.

local Session = require "marea.session"
local together = require "marea.together"
local world_of = require "marea.world"
local numeric = dofile "spec/support/numeric.lua"
local scratch = dofile "spec/support/scratch.lua"
local training = dofile "spec/support/training.lua"

local world = world_of.get()
local size, rank = world:size(), world:rank()

local cases = {}

local alone

--- A world of this process alone. All ranks ask together for the first time.
---@return marea.World
function cases.alone()
  alone = alone or world_of.alone()
  return alone
end

local groups = {}

--- The first `ranks` ranks as a world of their own; all ranks ask together.
---@param ranks integer
---@return marea.World? group nil where there are fewer, and on the ranks behind
function cases.group(ranks)
  if groups[ranks] == nil then
    groups[ranks] = ranks == size and world or
      ranks < size and world:split(rank < ranks and 0 or -1) or false
  end
  return groups[ranks] or nil
end

--- One folder for all ranks, made and removed (<close>) by rank 0.
---@return {path: string} folder
function cases.folder()
  local made
  local path = together.on_root(world, function()
    made = scratch.folder()
    return made.path
  end)
  return setmetatable({ path = path }, { __close = function()
    world:barrier()
    local _ <close> = made
  end })
end

--- Asserts a value that is exact but for the last digits, and none of the tell-tales.
---@param right number
---@param found number
---@param never {[1]: number, [2]: string}[] wrong values, and what each is a sign of
---@param tolerance? number 1e-12
function cases.check(right, found, never, tolerance)
  tolerance = tolerance or 1e-12
  for _, tell_tale in ipairs(never) do
    local wrong, meaning = table.unpack(tell_tale)
    assert(math.abs(wrong - right) > 10 * tolerance, "a tell-tale that is the right value")
    if math.abs(found - wrong) <= tolerance * math.max(1, math.abs(right)) then
      error(("%.17g came out in place of %.17g: %s"):format(found, right, meaning), 2)
    end
  end
  local near = math.abs(found - right) <= tolerance * math.max(1, math.abs(right))
  if not near then
    error(("%.17g came out in place of %.17g"):format(found, right), 2)
  end
end

--- The session of a recipe on a world, with its model built.
---@param recipe marea.Recipe
---@param on marea.World
---@return marea.Session session
function cases.session(recipe, on)
  return Session.open(recipe, { world = on }):build()
end

--- The gradient of a toy's window, found in every way that this world can find it.
---@param recipe marea.Recipe a toy
---@param step? integer 1
---@return {[1]: string, [2]: number}[] found how, and the gradient
function cases.gradients(recipe, step)
  local played = cases.session(recipe, cases.alone())
  local reference = training.reference(played, step)
  local found = {
    { "one process playing all ranks", training.play(played, step):get(1) },
    { "the reference", reference.gradient:get(1) }, { "the reference's loss", reference.loss },
  }
  local group = cases.group(recipe.config.ranks)
  if group then
    local gradient = training.run(cases.session(recipe, group), step)
    assert(training.equal_on_all(group, gradient), "ranks have different gradients")
    found[#found + 1] = { "its ranks", gradient:get(1) }
  end
  return found
end

---@class spec.Case
---@field right number
---@field never {[1]: number, [2]: string}[] tell-tales
---@field ranks table as of training.toy
---@field given? table
---@field config? table

--- Asserts the gradient of a toy, and with it the loss (w = 1), under both reductions and in both
--- layouts.
---@param case spec.Case
function cases.expect(case)
  for _, reduction in ipairs { "mean", "sum" } do
    for _, layout in ipairs { "packed", "padded" } do
      local config = { reduction = reduction, layout = layout }
      for key, value in pairs(case.config or {}) do config[key] = value end
      for _, found in ipairs(cases.gradients(training.toy(case.ranks, case.given, config))) do
        local good, problem = pcall(cases.check, case.right, found[2], case.never)
        if not good then
          error(("%s, %s, %s: %s"):format(reduction, layout, found[1], problem), 2)
        end
      end
    end
  end
end

--- Message and code of a refusal: as numeric.refusal.
cases.refusal = numeric.refusal

return cases
