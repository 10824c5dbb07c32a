-- Sessions: a recipe brought to life on the ranks of a world: corpus, plan, model, optimizer, and
-- the replica (or the bare model) that its accumulation loop drives.

local bare = require "marea.bare"
local core = require "marea.core"
local fault = require "marea.fault"
local kind = require "marea.kind"
local objective = require "marea.objective"
local plan = require "marea.plan"
local prepare = require "marea.prepare"
local Replica = require "marea.replica"
local Window = require "marea.window"
local world_of = require "marea.world"

---@class marea.SessionParts
---@field world? marea.World
---@field corpus? marea.Corpus
---@field plan? marea.Plan

---@class marea.BuildOptions
---@field world? marea.World over which gradients are reduced (default: the session's)
---@field broadcast? boolean whether parameters become rank 0's (default true)
---@field overlap? boolean
---@field bucket_bytes? integer
---@field seed? integer of the initial parameters (default: the config's)
---@field extra? {name: string, shape: integer[]} a parameter that the recipe does not know of

---@class marea.Session
---@field recipe marea.Recipe
---@field config marea.Config
---@field world marea.World
---@field rank integer
---@field corpus marea.Corpus
---@field plan marea.Plan
---@field terms marea.Term[]
---@field named_terms boolean whether recipe.loss returns a tensor for each term
---@field model marea.Module once it is built
---@field optimizer marea.Optimizer once it is built
---@field driver marea.Replica|marea.Bare once it is built
---@field init? {file: string, sha256: string} whose weights it began with
---@field statistics? {term: string?, loss_sum: number?} of the window under way
local Session = {}
Session.__index = Session

local function check_model(model)
  if type(model) ~= "table" or not rawget(model, "declared") then
    fault.raise(2, "the recipe's model must return a module of nn, got %s", kind.of(model))
  end
  return model
end

local function check_dtype(config)
  if config.dtype ~= "bf16" or core.device().name ~= "cpu" then return end
  fault.raise(2, "dtype=bf16 is for GPUs, and this run computes on the CPU: give --device cuda, " ..
              "or dtype=f32")
end

local function check_optimizer(optimizer)
  local is_one = type(optimizer) == "table" and type(optimizer.lr) == "number"
  for _, method in ipairs { "step", "steps", "state", "restore" } do
    is_one = is_one and type(optimizer[method]) == "function"
  end
  if not is_one then
    fault.raise(2, "the recipe's optimizer must return an optimizer of optim, got %s",
                kind.of(optimizer))
  end
  return optimizer
end

--- Makes corpus and plan of a recipe; nothing else is set up yet.
--- Errors, code 2: as prepare.corpus and prepare.plan.
---@param recipe marea.Recipe a loaded recipe
---@param options? marea.SessionParts what is at hand already
---@return marea.Session
function Session.open(recipe, options)
  options = options or {}
  local self = setmetatable({ recipe = recipe, config = recipe.config }, Session)
  self.world = options.world or world_of.get()
  self.rank = self.world:rank()
  self.corpus = options.corpus or prepare.corpus(recipe)
  self.plan = options.plan or prepare.plan(recipe, self.corpus)
  self.terms, self.named_terms = recipe:at("objective", objective.terms, recipe.objective)
  return self
end

--- The model of a recipe with its first parameters, in the config's dtype.
--- Errors, code 2, with the recipe's line: a callback that returns no module, or none that can be.
---@param recipe marea.Recipe
---@param options? marea.BuildOptions only seed and extra count
---@return marea.Module model root module, materialized
function Session.new_model(recipe, options)
  options = options or {}
  local config = recipe.config
  recipe:at("dtype", check_dtype, config)
  local model = recipe:at("model", check_model, recipe.model(config))
  if options.extra then model:parameter(options.extra.name, options.extra.shape) end
  recipe:at("model", model.materialize, model,
            { seed = options.seed or config.seed, dtype = config.dtype })
  return model
end

--- Makes the model in the config's dtype, its replica and its optimizer; all ranks call it.
--- Errors, code 2: a callback that returns something else.
---@param options? marea.BuildOptions
---@return marea.Session self
function Session:build(options)
  options = options or {}
  local recipe = self.recipe
  self.model = Session.new_model(recipe, options)
  recipe:at("model", self.drive, self, options)
  self.optimizer = recipe:at("optimizer", check_optimizer,
                             recipe.optimizer(self.model, self.config))
  return self
end

--- Runs body() with other terms than the declared ones, which stand again afterwards, whatever
--- happens.
---@param body fun(): ...
---@param terms marea.Term[]
---@param named_terms? boolean nil: as it is
---@return ... what body returned
function Session:with_terms(body, terms, named_terms)
  local own, own_named = self.terms, self.named_terms
  self.terms = terms
  if named_terms ~= nil then self.named_terms = named_terms end
  local results = table.pack(xpcall(body, fault.seize))
  self.terms, self.named_terms = own, own_named
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

--- Gives the model a replica, or what watches a bare model; an earlier one is closed.
---@param options? marea.BuildOptions without seed
function Session:drive(options)
  options = options or {}
  local world = options.world or self.world
  if self.driver then self.driver:close() end
  if self.recipe.replicate then
    self.driver = Replica.new(self, self.model, world, {
      reduction = self.config.reduction, broadcast = options.broadcast,
      overlap = options.overlap, bucket_bytes = options.bucket_bytes })
  else
    self.driver = bare.new(self, self.model, world)
  end
end

--- What the recipe's accumulate is given: the replica, or the bare model.
---@return marea.Replica|marea.Module driven
function Session:driven() return self.recipe.replicate and self.driver or self.model end

--- The counted window of an update, as this rank sees it; all ranks call it.
--- Errors: code 2 for an update behind the plan, code 5 and 6 as Window:count.
---@param step integer from 1
---@param options? marea.WindowOptions
---@return marea.Window window
function Session:window(step, options)
  plan.require_step(self.plan, step)
  local window = Window.new(self, step, self.rank, options):count(self.world)
  window.factor = self.config.reduction == "mean" and self.world:size() or 1
  return window
end

local function end_window(session, version)
  if session.model.unit:version() ~= version then
    fault.raise(1, "accumulate changed the model's parameters, which only the optimizer may")
  end
  session.driver:end_window()
end

--- Runs the recipe's accumulate on a window: afterwards the gradients are those of the window.
--- Errors, code 1: a loop that changes parameters, or does not reduce once, after all backwards.
---@param window marea.Window
function Session:accumulate(window)
  local version = self.model.unit:version()
  self.driver:begin_window(window)
  self.recipe.accumulate(self:driven(), window)
  self.recipe:at("accumulate", end_window, self, version)
end

return Session
