-- Optimizers over the flat parameters of a model. lr comes from the recipe's schedule.

local core = require "marea.core"
local fault = require "marea.fault"
local options_of = require "marea.options"

local optim = {}

---@class marea.Optimizer
local Optimizer = {}
Optimizer.__index = Optimizer

--- Steps once; `lr` overrides the optimizer's own.
---@param lr? number
function Optimizer:step(lr) self.core:step(lr or self.lr) end

--- Number of steps taken.
---@return integer
function Optimizer:steps() return self.core:steps() end

--- State as flat tensors by name; changing them changes the state.
---@return table<string, userdata>
function Optimizer:state() return self.core:state() end

--- Sets the number of steps taken, after the state was restored.
---@param steps integer
function Optimizer:restore(steps) self.core:restore(steps) end

local function unit_of(parameters, what)
  if type(parameters) ~= "table" or not parameters.unit then
    fault.raise(2, "%s expects the model that the recipe's optimizer callback was given, got %s",
                what, type(parameters))
  end
  return parameters.unit
end

local function learning_rate(given, what)
  local lr = given.lr
  if type(lr) ~= "number" or not (lr >= 0 and lr < math.huge) then
    fault.raise(2, "%s: lr must be a finite number of at least 0, got %s", what, tostring(lr))
  end
  return lr
end

local function pick(given, names)
  local picked = {}
  for _, name in ipairs(names) do picked[name] = given[name] end
  return picked
end

local function new(kind, lr, made)
  return setmetatable({ kind = kind, lr = lr, core = made }, Optimizer)
end

--- Stochastic gradient descent, with momentum, Nesterov's form and weight decay where asked for.
---@param parameters table the model
---@param given {lr: number, momentum?: number, nesterov?: boolean, decay?: number,
---  decay_all?: boolean} decay_all: decay norms and biases too
---@return marea.Optimizer
function optim.SGD(parameters, given)
  local names = { "momentum", "nesterov", "decay", "decay_all" }
  options_of.check(given, "optim.SGD", { "lr", table.unpack(names) })
  return new("SGD", learning_rate(given, "optim.SGD"),
             core.sgd(unit_of(parameters, "optim.SGD"), pick(given, names)))
end

--- Adam with decoupled weight decay; norms and biases do not decay unless decay_all.
---@param parameters table the model
---@param given {lr: number, beta1?: number, beta2?: number, epsilon?: number, decay?: number,
---  decay_all?: boolean} defaults 0.9, 0.999, 1e-8, 0.01
---@return marea.Optimizer
function optim.AdamW(parameters, given)
  local names = { "beta1", "beta2", "epsilon", "decay", "decay_all" }
  options_of.check(given, "optim.AdamW", { "lr", table.unpack(names) })
  return new("AdamW", learning_rate(given, "optim.AdamW"),
             core.adamw(unit_of(parameters, "optim.AdamW"), pick(given, names)))
end

return optim
