-- Parts of the demo that run on the ranks themselves, on the minimum recipe with another plan.

local core = require "marea.core"
local fault = require "marea.fault"
local launch = require "marea.launch"
local parity = require "marea.parity"
local recipe_of = require "marea.recipe"
local Session = require "marea.session"
local world_of = require "marea.world"

local parts = {}

local function load_minimum(world)
  return recipe_of.load(launch.root() .. "/recipes/minimum.lua", {}, world:size())
end

-- Whether all ranks hold the same number.
local function alike(world, number)
  local all = world:all_gather(core.host.from({ number }, "f64", { 1 })):values()
  for _, value in ipairs(all) do
    if value ~= all[1] then return false end
  end
  return true
end

--- A window in which no rank has a sequence: every rank must refuse it with the same code, and no
--- parameter may move.
---@param world marea.World
---@return {good: boolean, detail: string} found
parts["empty-window"] = function(world)
  local recipe = load_minimum(world)
  local ranks = {}
  for r = 1, world:size() do ranks[r] = {} end
  local session = Session.open(recipe, { world = world, plan = { ranks } }):build()
  local before = session.model:values():hash()
  local good, problem = pcall(function() session:accumulate(session:window(1)) end)
  local message, code = fault.of(problem)
  local refused = not good and code == 5
  local same = alike(world, code or 0)
  local untouched = session.model:values():hash() == before
  return { good = refused and same and untouched,
           detail = good and "it was accepted" or ("code %d on %d ranks: %s"):format(
             code, world:size(), message) }
end

--- Rank 0 has no sequence in the window, so its loop runs on one microbatch of zero sequences.
---@param world marea.World
---@return {good: boolean, detail: string}? found on rank 0
parts["empty-rank"] = function(world)
  local recipe = load_minimum(world)
  local session = Session.open(recipe, { world = world })
  local window = table.move(session.plan[1], 1, world:size(), 1, {})
  window[1] = {}
  local report = parity.run(recipe, { shared = {
    world = world, corpus = session.corpus, plan = { window } } })
  if not report then return nil end
  return { good = report.f32.failing == 0 and report.f64.failing == 0 and
             report.equal_on_all_ranks,
           detail = ("tokens %s; largest error %.3g in f32, %.3g in f64"):format(
             table.concat(report.window.rank_tokens, " + "), report.f32.max_abs,
             report.f64.max_abs) }
end

--- Runs a part on all ranks; rank 0 gets what it found. Errors, code 2: no such part.
---@param name string
---@return {good: boolean, detail: string}? found
function parts.run(name)
  if not parts[name] or name == "run" then
    fault.raise_at(2, "", "the demo has no part %q", name)
  end
  return parts[name](world_of.get())
end

return parts
