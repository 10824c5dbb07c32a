-- Preparation: what a recipe's callbacks say about data, made and checked before anything is
-- computed: corpus, plan, lock. All ranks make it alike; rank 0 writes it.

local card = require "marea.corpus.card"
local config = require "marea.config"
local core = require "marea.core"
local corpus_of = require "marea.corpus"
local fault = require "marea.fault"
local json = require "marea.json"
local lock = require "marea.lock"
local plan_of = require "marea.plan"
local together = require "marea.together"

local prepare = {}

--- The corpus of a recipe. Errors: code 2 when the callback returns none, and what it raises.
---@param recipe marea.Recipe a loaded recipe
---@return marea.Corpus corpus
function prepare.corpus(recipe)
  local corpus = recipe.corpus(recipe.config)
  recipe:at("corpus", function()
    if not corpus_of.is(corpus) then
      fault.raise(2, "the recipe's corpus must return a corpus, got %s",
                  corpus == nil and "nothing" or "a " .. type(corpus))
    end
  end)
  return corpus
end

--- The plan of a recipe, checked. Errors: code 2 for what plan.check refuses.
---@param recipe marea.Recipe
---@param corpus marea.Corpus
---@return marea.Plan steps
function prepare.plan(recipe, corpus)
  local steps = recipe.plan(corpus:rows("train"), recipe.config)
  return recipe:at("plan", plan_of.check, steps, corpus, recipe.config)
end

-- Refuses, with code 6, a config that is not the same on all ranks, in a key that is no part of the
-- lock too: ranks that stop or save at different updates part.
local function check_config(recipe, world)
  local all = together.gather(world, config.values(recipe.config))
  local function check(key, r)
    local first, other = all[1][key], all[r][key]
    if first == other then return end
    fault.raise_at(6, "", "config.%s is not the same on all ranks: %s on rank 0, %s on rank %d",
                   key, first == nil and "none" or tostring(first),
                   other == nil and "none" or tostring(other), r - 1)
  end
  for r = 2, #all do
    for _, values in ipairs { all[1], all[r] } do
      for key in pairs(config.read_only(values, {})) do check(key, r) end -- in their order
    end
  end
end

--- Corpus, plan and lock of a recipe.
--- Errors: as prepare.corpus and prepare.plan; code 6 when ranks made different ones.
---@param recipe marea.Recipe a loaded recipe
---@param world marea.World
---@return marea.Prepared prepared
function prepare.make(recipe, world)
  local corpus = prepare.corpus(recipe)
  local steps = prepare.plan(recipe, corpus)
  local record = lock.of(recipe, corpus, steps)
  together.same(world, "the corpus", record.corpus, recipe.place "corpus")
  together.same(world, "the plan", record.plan.hash, recipe.place "plan")
  check_config(recipe, world)
  return { corpus = corpus, plan = steps, lock = record, world = world }
end

-- The corpus file is only written where it would change.
local function write_corpus(path, corpus)
  if core.file.exists(path) then
    local ok, old = pcall(corpus_of.open, path)
    if ok and old:hash() == corpus:hash() then return end
  end
  corpus:write(path)
end

--- Refuses, with code 3, to put files beside a run that was trained under another lock. What
--- weights that run began with is no difference: nothing that is prepared depends on it.
---@param run marea.Run
---@param prepared marea.Prepared
---@return string? init the run's own, on all ranks
function prepare.refuse_other_lock(run, prepared)
  return together.on_root(run.world, function()
    if not (run:was_trained() and run:has("lock.json")) then return nil end
    local old, own = lock.read(run:path("lock.json")), {}
    for key, value in pairs(prepared.lock) do own[key] = value end
    own.init = old.init
    local differences = lock.compare(old, own)
    if #differences > 0 then
      fault.raise_at(3, run.folder, "a run was trained here under another lock: %s; give --run " ..
                     "NAME", lock.describe(differences[1]))
    end
    return old.init
  end)
end

--- Writes corpus.safetensors, corpus-card.json, plan.json and lock.json into a run's folder. All
--- ranks call it; rank 0 writes. Errors, on all ranks: code 1.
---@param run marea.Run
---@param prepared marea.Prepared what prepare.make returned
---@return marea.Card record the corpus card with the plan's tokens per rank
function prepare.write(run, prepared)
  local record = card.with_plan(prepared.corpus, prepared.plan)
  together.on_root(run.world, function()
    write_corpus(run:path("corpus.safetensors"), prepared.corpus)
    json.write(run:path("corpus-card.json"), record)
    plan_of.write(run:path("plan.json"), prepared.plan)
    lock.write(run:path("lock.json"), prepared.lock)
  end)
  return record
end

return prepare
