-- Modules: a tree of parameters and the function that uses them.
--
-- A module declares parameters and children when it is made; `materialize` then lays all of them
-- out in one flat unit, in the order of declaration, and gives each its tensor. So the order of
-- parameters follows from the recipe's text, and the dtype is chosen by whoever runs the recipe.

local core = require "marea.core"
local fault = require "marea.fault"
local kind = require "marea.kind"
local options_of = require "marea.options"

---@class marea.ParameterOptions
---@field std? number standard deviation of initial values from N(0, std)
---@field value? number a constant in place of draws (default 0)
---@field decay? boolean whether weight decay applies (default true)

---@class marea.DeclaredParameter: marea.ParameterOptions
---@field name string
---@field shape integer[]

---@class marea.Module
---@field unit? marea.unit parameters and gradients of the whole tree; on the root once materialized
---@field declared marea.DeclaredParameter[]
---@field children {name: string, module: marea.Module}[]
---@field layer? integer number of this module within the model, once materialized
---@field forward fun(self: marea.Module, ...: any): marea.tensor what a call of the module computes
---@field [string] any its parameters, once the root is materialized, and its children
---@overload fun(...: any): marea.tensor calls forward
local Module = {}
Module.__index = Module

--- A class of one's own; its functions init and forward are the author's.
---@class marea.ModuleClass: marea.Module
---@field init fun(self: marea.ModuleClass, options: table)
---@overload fun(options?: table): marea.Module

-- A module computes once it is whole: it can, and the model that it is a child of has parameters.
local function check_callable(module)
  if not module.forward then
    fault.raise(2, "%s has no function forward, which a call of it runs", module.name)
  end
  local first = module.declared[1]
  if first and not rawget(module, first.name) then
    fault.raise(2, "%s was called before its parameters were made; a module is a child of the " ..
                "one that calls it: self:child(name, module)", module.name)
  end
end

--- Makes a class of modules: `local Mine = nn.class "Mine"`, then `function Mine:init(options)`
--- declares parameters and children, `function Mine:forward(...)` computes. Mine{...} makes one.
---@param name string for messages
---@return marea.ModuleClass class called with a table of options, it makes a module
function Module.class(name)
  local class = setmetatable({ name = name }, {
    __index = Module,
    __call = function(class, options)
      local self = setmetatable({ declared = {}, children = {} }, class)
      self:init(options or {})
      return self
    end,
  })
  class.__index = class
  class.__name = name
  class.__call = function(self, ...)
    check_callable(self)
    local unit = rawget(self, "unit")
    if unit then unit:refresh() end
    return self:forward(...)
  end
  return class
end

--- Declares nothing; classes with parameters or children have their own.
function Module.init() end

-- self[name] becomes the part: it must hide none of the functions.
local function check_name(module, name)
  if type(name) ~= "string" or name == "" or type(module[name]) == "function" then
    fault.raise(2, "a part of %s must have a name that is none of its functions', got %s",
                module.name, tostring(name))
  end
end

--- Declares a parameter; self[name] is its tensor once the root is materialized. Errors, code 2: a
--- name that a function of the module has; unknown options.
---@param name string
---@param shape integer[]
---@param options? marea.ParameterOptions
function Module:parameter(name, shape, options)
  check_name(self, name)
  if type(shape) ~= "table" then
    fault.raise(2, "parameter %s of %s must have a shape, a list of integers, got %s", name,
                self.name, kind.of(shape))
  end
  options = options_of.check(options, "parameter " .. name, { "std", "value", "decay" })
  table.insert(self.declared, {
    name = name, shape = shape, std = options.std, value = options.value or 0,
    decay = options.decay ~= false,
  })
end

--- Declares a child; self[name] is the child. Errors, code 2: a child that is no module; a name
--- that a function of the module has.
---@generic T
---@param name string
---@param child T
---@return T child
function Module:child(name, child)
  check_name(self, name)
  if type(child) ~= "table" or not rawget(child, "declared") then
    fault.raise(2, "child %q of %s must be a module, got %s", name, self.name, kind.of(child))
  end
  table.insert(self.children, { name = name, module = child })
  self[name] = child
  return child
end

-- Calls visit(module, prefix) for every module of the tree, parents first.
local function walk(module, prefix, visit)
  visit(module, prefix)
  for _, child in ipairs(module.children) do
    walk(child.module, prefix .. child.name .. ".", visit)
  end
end

local function collect(root)
  local list, seen, layers = {}, {}, 0
  walk(root, "", function(module, prefix)
    if seen[module] then
      fault.raise(2, "one module stands at two places of the model (%s and %s): share its " ..
                  "parameters by calling it twice instead", seen[module], prefix)
    end
    seen[module] = prefix
    layers = layers + 1
    module.layer = layers
    for _, parameter in ipairs(module.declared) do
      table.insert(list, { name = prefix .. parameter.name, module = module,
                           parameter = parameter })
    end
  end)
  return list
end

local function initialize(tensor, parameter, ordinal, seed)
  if parameter.std then
    tensor:copy_(core.normal(parameter.shape, {
      std = parameter.std, seed = seed, stream = ordinal, dtype = tensor:dtype() }))
  elseif parameter.value ~= 0 then
    tensor:fill_(parameter.value)
  end
end

--- Makes the unit of the tree whose root this is, and fills it with initial values: parameter
--- number i draws from stream i of the seed, so a value depends on no rank. In f64 the values are
--- those of f32; in bf16 they are those of f32, rounded, of which an optimizer moves the f32.
--- Errors, code 2: one module at two places of the tree.
---@param options {seed: integer, dtype: "f32"|"f64"|"bf16"}
---@return marea.Module self
function Module:materialize(options)
  local list, ranges = collect(self), {}
  for i, item in ipairs(list) do
    ranges[i] = { name = item.name, shape = item.parameter.shape, decay = item.parameter.decay }
  end
  self.unit = core.unit(ranges, options.dtype)
  for _, item in ipairs(list) do
    item.module[item.parameter.name] = self.unit:parameter(item.name)
  end
  local master = self.unit:master()
  for i, range in ipairs(self.unit:ranges()) do
    initialize(master:slice(range.offset + 1, range.count), list[i].parameter, i, options.seed)
  end
  self.unit:refresh()
  return self
end

local function unit_of(module)
  if not module.unit then
    fault.raise(1, "this model has no parameters yet: only the root of a materialized model has")
  end
  return module.unit
end

--- Sets all gradients to zero.
function Module:zero_grad() unit_of(self):zero_grad() end

--- The flat buffer of all gradients; changing it changes them.
---@return marea.tensor tensor [elements with gaps]
function Module:gradients() return unit_of(self):gradients() end

--- The flat buffer of all parameters, as an optimizer moves them: in f32 where the model computes
--- in bf16. Changing it changes them, from the model's next call on.
---@return marea.tensor tensor [elements with gaps]
function Module:values() return unit_of(self):master() end

--- Number of parameters, without the gaps.
---@return integer count
function Module:count() return unit_of(self):parameters() end

return Module
