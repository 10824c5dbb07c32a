-- Optimizers over the flat parameters of a model. lr comes from the recipe's schedule.

local core = require "marea.core"
local fault = require "marea.fault"
local kind = require "marea.kind"
local options_of = require "marea.options"

---@class marea.parts.optim
local optim = {}

---@class marea.Optimizer
---@field kind "SGD"|"AdamW"
---@field lr number
---@field core marea.optimizer
local Optimizer = {}
Optimizer.__index = Optimizer

--- Changes the model's parameters by one step; the gradients stay as they are.
--- Errors, code 1: lr or factor negative or not finite; gradients of a replica that are not
--- reduced, or a window that is still open.
---@param lr? number in place of the optimizer's own
---@param factor? number of the gradients in this step, which clips without a pass (default 1)
function Optimizer:step(lr, factor) self.core:step(lr or self.lr, factor) end

--- Number of steps taken.
---@return integer
function Optimizer:steps() return self.core:steps() end

--- State as flat tensors by name; changing them changes the state.
---@return table<string, marea.tensor> state SGD: "velocity" with momentum; AdamW: "m" and "v"
function Optimizer:state() return self.core:state() end

--- Sets the number of steps taken, after the state was restored.
---@param steps integer
function Optimizer:restore(steps) self.core:restore(steps) end

local function unit_of(parameters, what)
  if type(parameters) ~= "table" or not parameters.unit then
    fault.raise(2, "%s expects the model that the recipe's optimizer callback was given, got %s",
                what, kind.of(parameters))
  end
  return parameters.unit
end

local function learning_rate(given, what)
  local lr = given.lr
  if type(lr) ~= "number" or not (lr >= 0 and lr < math.huge) then
    fault.raise(2, "%s: lr must be a finite number of at least 0, got %s", what, kind.shown(lr))
  end
  return lr
end

local function pick(given, names)
  local picked = {}
  for _, name in ipairs(names) do picked[name] = given[name] end
  return picked
end

local function new(name, lr, made)
  return setmetatable({ kind = name, lr = lr, core = made }, Optimizer)
end

---@class marea.SGDOptions: marea.sgd_options
---@field lr number finite, at least 0

--- Stochastic gradient descent, with momentum, Nesterov's form and weight decay where asked for.
--- Errors: code 2 for a model without parameters, unknown options and a bad lr, code 1 for other
--- settings out of range.
---@param parameters marea.Module the model
---@param given marea.SGDOptions
---@return marea.Optimizer
function optim.SGD(parameters, given)
  local names = { "momentum", "nesterov", "decay", "decay_all" }
  given = options_of.check(given, "optim.SGD", { "lr", table.unpack(names) })
  return new("SGD", learning_rate(given, "optim.SGD"),
             core.sgd(unit_of(parameters, "optim.SGD"), pick(given, names)))
end

---@class marea.AdamWOptions: marea.adamw_options
---@field lr number finite, at least 0

--- Adam with decoupled weight decay; norms and biases do not decay unless decay_all.
--- Errors: as optim.SGD.
---@param parameters marea.Module the model
---@param given marea.AdamWOptions
---@return marea.Optimizer
function optim.AdamW(parameters, given)
  local names = { "beta1", "beta2", "epsilon", "decay", "decay_all" }
  given = options_of.check(given, "optim.AdamW", { "lr", table.unpack(names) })
  return new("AdamW", learning_rate(given, "optim.AdamW"),
             core.adamw(unit_of(parameters, "optim.AdamW"), pick(given, names)))
end

return optim
