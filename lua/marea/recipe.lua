-- Recipes: what `marea.recipe { ... }` declares, and what `recipe.load` makes of it: every field
-- checked, defaults filled in, the config resolved. Checks run in `load`, which knows the file, so
-- a message begins with the line of the field that is wrong.

local anchor = require "marea.anchor"
local config = require "marea.config"
local device = require "marea.device"
local fault = require "marea.fault"
local kind = require "marea.kind"
local loader = require "marea.loader"
local nearest = require "marea.nearest"
local recipe_lines = require "marea.recipe_lines"
local sorted = require "marea.sorted"
local weightings = require "marea.weightings"

local recipe = {}

local declaration = { __name = "marea.recipe" }

-- type(s) that a field may have; `required` ones must be given.
local fields = {
  name = { "string", required = true },
  description = { "string" },
  config = { "table" },
  corpus = { "function", required = true },
  model = { "function", required = true },
  optimizer = { "function", required = true },
  plan = { "function", required = true },
  loss = { "function" },
  objective = { "table", "function", "string" },
  units = { "table" },
  accumulate = { "function" },
  replicate = { "boolean" },
  schedule = { "function" },
}
local in_order = { "name", "corpus", "model", "optimizer", "plan", "accumulate", "config",
                   "description", "loss", "objective", "replicate", "schedule", "units" }

local function default_loss(model, batch)
  return require("marea.nn").cross_entropy(model(batch), batch.targets)
end

local function default_accumulate(replica, window)
  replica:zero_grad()
  for i, batch in ipairs(window) do
    local _ <close> = i < #window and replica:no_sync()
    replica:loss(batch, window:weights(batch)):backward()
  end
end

-- Where the recipe was declared last, as "file:line: ".
local declared_at

--- Declares a recipe; also `marea.recipe`. The file returns what this returns.
---@param definition marea.Definition name, corpus, model, optimizer and plan must be there
---@return marea.Declaration declaration
function recipe.declare(definition)
  declared_at = fault.where()
  return setmetatable({ definition = definition }, declaration)
end

--- Whether a value was made by `marea.recipe`.
---@param value any
---@return boolean
function recipe.is(value)
  return type(value) == "table" and getmetatable(value) == declaration
end

local function has_type(value, kinds)
  for _, name in ipairs(kinds) do
    if type(value) == name then return true end
  end
  return false
end

local function check_fields(definition, place)
  if type(definition) ~= "table" then
    fault.raise_at(2, place(""), "marea.recipe expects one table, got %s", kind.of(definition))
  end
  for key in pairs(definition) do
    if not fields[key] then
      local near = nearest.find(tostring(key), in_order)
      fault.raise_at(2, place(tostring(key)), "a recipe has no field %q; %s", tostring(key),
                     near and ("did you mean %q?"):format(near) or
                     "it has " .. table.concat(in_order, ", "))
    end
  end
  for _, key in ipairs(in_order) do
    local value, kinds = definition[key], fields[key]
    if value == nil and kinds.required then
      fault.raise_at(2, place(""), "the recipe has no %s: expected a %s", key, kinds[1])
    elseif value ~= nil and not has_type(value, kinds) then
      fault.raise_at(2, place(key), "the recipe's %s must be a %s, got a %s", key,
                     table.concat(kinds, " or a "), type(value))
    end
  end
  for name, unit in pairs(definition.units or {}) do
    if type(unit) ~= "function" and type(unit) ~= "table" then
      fault.raise_at(2, place("units"), "the recipe's unit %s must be a function or a list of " ..
                     "terms, got a %s", tostring(name), type(unit))
    end
  end
  if not definition.name:find("^%w[%w_.-]*$") then
    fault.raise_at(2, place("name"), "the recipe's name becomes a folder: expected letters, " ..
                   "digits, '_', '-' and '.', got %q", definition.name)
  end
end

-- Objectives that can be chosen by name: the library's, and over them the recipe's own units.
local function objectives_by_name(units)
  local named = {}
  for name, value in pairs(require("marea.objective").named) do named[name] = value end
  for name, value in pairs(units or {}) do named[name] = value end
  return named
end

local function find_objective(named, name, place)
  local found = named[name] or weightings.parse(name, named)
  if found then return found end
  local names = sorted.keys(named)
  local near = nearest.find(name, names)
  fault.raise_at(2, place, "there is no objective %q; %s", name,
                 near and ("did you mean %q?"):format(near) or
                 ("there are %s, per:FIELD, scaled_by:FIELD"):format(table.concat(names, ", ")))
end

local function name_of_objective(named, value)
  for _, name in ipairs(sorted.keys(named)) do
    if named[name] == value then return name end
  end
  return weightings.text(value) or "custom"
end

-- The objective's name goes into the config before overrides do, so that `objective=NAME` and the
-- lock treat it like any other key.
local function resolve_objective(definition, values, given_name, place)
  local named, given = objectives_by_name(definition.units), values.objective == given_name
  if given and definition.objective and type(definition.objective) ~= "string" then
    return definition.objective
  end
  return find_objective(named, values.objective, given and given_name and place "objective" or "")
end

local function given_config(definition, place)
  local given = {}
  for key, value in pairs(definition.config or {}) do given[key] = value end
  local objective = definition.objective
  if objective ~= nil and given.objective ~= nil then
    fault.raise_at(2, place("objective"), "the recipe names its objective twice: as a field and " ..
                   "as config.objective")
  end
  if type(objective) == "string" then
    given.objective = objective
  elseif objective ~= nil then
    given.objective = name_of_objective(objectives_by_name(definition.units), objective)
  end
  return given
end

---@class marea.ResolveOptions
---@field overrides? string[]|table<string, any> "key=value" words, or values by key
---@field world_size? integer default of config.ranks
---@field context? marea.Context what loader.run returned

--- A recipe whose fields are checked and complete.
---@class marea.Recipe: marea.Definition
---@field path? string
---@field files marea.RecipeFile[]
---@field config marea.Config
---@field objective marea.Weighting|marea.Term[]
---@field replicate boolean
local loaded = {}
loaded.__index = loaded

--- Makes a checked recipe of a declaration.
--- Errors, code 2: unknown, missing and mistyped fields, anything that config.resolve refuses,
--- unknown objectives.
---@param declared marea.Declaration what recipe.declare returned
---@param options? marea.ResolveOptions
---@return marea.Recipe loaded
function recipe.resolve(declared, options)
  options = options or {}
  local context = options.context or { files = {} }
  local definition = declared.definition
  local place = recipe_lines.finder(context.path, context.text)
  check_fields(definition, place)
  local given = given_config(definition, place)
  local values, rules = config.resolve {
    given = given, overrides = options.overrides, world_size = options.world_size, place = place,
  }
  return setmetatable({
    name = definition.name,
    description = definition.description,
    path = context.path,
    files = context.files,
    config = config.read_only(values, rules),
    corpus = anchor.callback(definition.corpus),
    model = anchor.callback(definition.model),
    optimizer = anchor.callback(definition.optimizer),
    plan = anchor.callback(definition.plan),
    loss = anchor.callback(definition.loss) or anchor.bound(place "loss", default_loss),
    objective = resolve_objective(definition, values, given.objective, place),
    accumulate = anchor.callback(definition.accumulate) or
      anchor.bound(place "accumulate", default_accumulate),
    replicate = definition.replicate ~= false,
    schedule = anchor.callback(definition.schedule),
    units = definition.units or {},
    declared = declared,
    options = options,
    place = place,
    anchors = {},
  }, loaded)
end

--- Calls a function of the library on behalf of a field: what it refuses is blamed on the line of
--- the recipe where the field begins (of the declaration, for a field that is not given).
---@param field string
---@param action function
---@param ... any its arguments
---@return any ... its results
function loaded:at(field, action, ...)
  self.anchors[field] = self.anchors[field] or anchor.place(self.place(field))
  return self.anchors[field](action, ...)
end

--- A recipe of nothing but a loss, for code that drives replicas without a recipe's file: what is
--- refused is blamed on the line that called.
---@param loss fun(model: table, batch: table): marea.tensor
---@return table loaded only its loss can be asked for
function recipe.of_loss(loss)
  local bare = { loss = loss }
  function bare.at(_, _, action, ...) return action(...) end
  return bare
end

--- Loads a recipe's file and puts new tensors on its device; all ranks call it. A script gets the
--- words as its `...`.
--- Errors: as loader.run, recipe.resolve and device.use; code 2 for one declared, not returned.
---@param path string
---@param overrides? string[]|table<string, any> "key=value" words, or values by key
---@param world_size? integer default of config.ranks
---@return marea.Recipe? loaded nil for a script, which has been run: the file returned no recipe
---@return any ... what a script returned
function recipe.load(path, overrides, world_size)
  declared_at = nil
  if device.asked() then device.use_asked() end -- for what the file itself computes
  local context = loader.run(path, table.unpack(overrides or {}))
  local declared = context.results[1]
  if not recipe.is(declared) then
    if declared == nil and declared_at and declared_at:sub(1, #path + 1) == path .. ":" then
      fault.raise_at(2, declared_at:sub(1, -3), "this recipe is declared and not returned; " ..
                     "write: return marea.recipe { ... }")
    end
    return nil, table.unpack(context.results, 1, context.results.n)
  end
  local resolved = recipe.resolve(declared, { overrides = overrides, world_size = world_size,
                                              context = context })
  device.use(resolved.config.device)
  return resolved
end

--- Loads a recipe for a command that needs one: a script is refused, code 2.
---@param path string
---@param overrides? string[]|table<string, any> as of recipe.load
---@param world_size? integer default of config.ranks
---@return marea.Recipe loaded
function recipe.require(path, overrides, world_size)
  local found, other = recipe.load(path, overrides, world_size)
  if not found then
    fault.raise_at(2, path, "this file returns %s; it must end in return marea.recipe { ... }",
                   other == nil and "no recipe" or kind.of(other) .. " and no recipe")
  end
  return found
end

--- The same recipe under further overrides, such as {dtype = "f64"}.
--- Errors, code 2: as recipe.resolve.
---@param changes table<string, any> values by key
---@return marea.Recipe loaded
function loaded:with(changes)
  local overrides = config.values(self.config)
  for key, value in pairs(changes) do overrides[key] = value end
  return recipe.resolve(self.declared, { overrides = overrides, context = self.options.context,
                                         world_size = self.options.world_size })
end

--- Refuses a world that the plan was not made for: code 2, with both numbers.
---@param world_size integer
function loaded:require_ranks(world_size)
  if world_size ~= self.config.ranks then
    local planned = self.config.ranks
    local again = require("marea.next_commands").on_ranks(planned)
    fault.raise_at(2, self.place("ranks"), "the recipe is planned for %d rank%s and was started " ..
                   "on %d; start it on %d, or plan for these with ranks=%d%s", planned,
                   planned == 1 and "" or "s", world_size, planned, world_size,
                   again and ":\n  " .. again or "")
  end
end

return recipe
