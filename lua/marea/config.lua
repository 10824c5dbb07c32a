-- The config of a recipe: keys that every recipe knows, with their defaults and ranges, then the
-- recipe's own keys, then `key=value` words from the command line. What comes out is read-only, and
-- asking it for a key that nobody declared is an error: a typo never reads as nil.

local device = require "marea.device"
local fault = require "marea.fault"
local nearest = require "marea.nearest"
local rule_of = require "marea.config_rule"
local sorted = require "marea.sorted"

local config = {}

--- Stands for the default of a key that has none.
config.no_default = {}

-- kind, default, range. `optional` keys may be absent, and `key=none` takes them away again.
local known = {
  seed = { kind = "integer", default = 20, at_least = 0 },
  ranks = { kind = "integer", at_least = 1 }, -- default: the size of the world
  updates = { kind = "integer", default = 100, at_least = 1 },
  stop = { kind = "integer", optional = true, at_least = 1 },
  accumulation = { kind = "integer", default = 1, at_least = 1 },
  batch_size_per_rank = { kind = "integer", default = 4, at_least = 1 },
  global_batch_size = { kind = "integer", optional = true, at_least = 1 },
  lr = { kind = "number", default = 0.1, above = 0 },
  objective = { kind = "string", default = "global_token" },
  reduction = { kind = "string", default = "mean", choice = { "mean", "sum" } },
  dtype = { kind = "string", default = "f32", choice = { "f32", "f64", "bf16" } },
  device = { kind = "string", default = "cpu", check = device.is_name,
             text = '"cpu", "cuda", "cuda:N" or "auto"' },
  dropout = { kind = "number", default = 0, at_least = 0, below = 1 },
  layout = { kind = "string", default = "packed", choice = { "packed", "padded" } },
  clip_norm = { kind = "number", optional = true, above = 0 },
  save_every = { kind = "integer", optional = true, at_least = 1 },
  evaluate_every = { kind = "integer", optional = true, at_least = 1 },
  stop_below = { kind = "number", optional = true },
  nonfinite = { kind = "string", default = "stop", choice = { "stop", "skip" } },
  keep = { kind = "integer", default = 3, at_least = 1 },
}

local function quoted(value)
  return type(value) == "string" and ("%q"):format(value) or tostring(value)
end

-- The value as stored: integers as integers, so that 4 and 4.0 hash alike.
local function checked(key, rule, value, place)
  if not rule_of.fits(rule, value) then
    fault.raise_at(2, place, "config.%s must be %s, got %s", key, rule_of.wanted(rule),
                   quoted(value))
  end
  return rule.kind == "integer" and math.tointeger(value) or value
end

local function own_rule(key, value, place)
  local kind = type(value)
  if kind ~= "number" and kind ~= "string" and kind ~= "boolean" then
    fault.raise_at(2, place, "config.%s must be a number, a string or a boolean, got a %s", key,
                   kind)
  end
  return { kind = kind }
end

-- A word of the command line as a value of the rule's kind; a word that does not read as one stays
-- a string, which the check then refuses with the text that was given.
local function parse(rule, word)
  if rule.optional and word == "none" then return nil end
  if rule.kind == "integer" or rule.kind == "number" then return tonumber(word) or word end
  if rule.kind == "boolean" then
    if word == "true" then return true elseif word == "false" then return false end
  end
  return word
end

local function split_word(word)
  local key, value = tostring(word):match("^([%w_]+)=(.*)$")
  if not key then
    fault.raise_at(2, "", "expected key=value on the command line, got %s", quoted(word))
  end
  return key, value
end

-- Overrides come as a list of "key=value" words, or as a map of key to value.
local function each_override(overrides)
  local list = {}
  for _, word in ipairs(overrides or {}) do
    local key, value = split_word(word)
    list[#list + 1] = { key = key, value = value }
  end
  if #list > 0 then return list end
  for _, key in ipairs(sorted.keys(overrides or {})) do
    list[#list + 1] = { key = key, value = overrides[key] }
  end
  return list
end

-- What other tools call it.
local also_called = {
  learning_rate = "lr", batch_size = "batch_size_per_rank", batchsize = "batch_size_per_rank",
  micro_batch_size = "batch_size_per_rank", steps = "updates", max_steps = "updates",
  iterations = "updates", accumulation_steps = "accumulation", grad_accumulation = "accumulation",
  gradient_accumulation_steps = "accumulation", world_size = "ranks", max_grad_norm = "clip_norm",
  grad_clip = "clip_norm", eval_every = "evaluate_every", save_steps = "save_every",
  precision = "dtype", random_seed = "seed",
}

local function near_key(key, keys)
  return nearest.find(key, keys) or also_called[nearest.find(key, sorted.keys(also_called))]
end

local function unknown_key(key, rules)
  local keys = sorted.keys(rules)
  local near = near_key(key, keys)
  return ("config has no key %q; %s"):format(
    key, near and ("did you mean %q?"):format(near) or "it has " .. table.concat(keys, ", "))
end

-- Microbatches of a rank from the sequences of a whole window, which ranks and microbatches must
-- fill: nothing is rounded. Of the two, the command line's goes before the recipe's.
local function settle_accumulation(values, places, overridden)
  local size, where = values.global_batch_size, places.global_batch_size
  if not size then return end
  local each = values.ranks * values.batch_size_per_rank
  local given = places.accumulation ~= nil
  if given and overridden.accumulation ~= overridden.global_batch_size then
    if overridden.accumulation then
      values.global_batch_size = each * values.accumulation
      return
    end
    given = false
  end
  if size % each ~= 0 then
    fault.raise_at(2, where, "config.global_batch_size must be a multiple of ranks x " ..
                   "batch_size_per_rank = %d x %d = %d, got %d", values.ranks,
                   values.batch_size_per_rank, each, size)
  end
  if given and values.accumulation ~= size // each then
    fault.raise_at(2, where, "config.global_batch_size = %d asks for an accumulation of %d on " ..
                   "%d rank%s, and config.accumulation is %d: give one of the two", size,
                   size // each, values.ranks, values.ranks == 1 and "" or "s",
                   values.accumulation)
  end
  values.accumulation = size // each
end

local function check_stop_below(values, places)
  if values.stop_below and not values.evaluate_every then
    fault.raise_at(2, places.stop_below, "config.stop_below is compared with the validation " ..
                   "loss of evaluations, and needs config.evaluate_every")
  end
end

--- The defaults of the keys that every recipe knows: config.no_default for `ranks`, which is the
--- size of the world, and for keys that may be absent.
---@return table<string, any> defaults
function config.defaults()
  local defaults = {}
  for key, rule in pairs(known) do
    defaults[key] = rule.default == nil and config.no_default or rule.default
  end
  return defaults
end

---@class marea.ConfigOptions
---@field given table<string, any> the recipe's own
---@field overrides? string[]|table<string, any> "key=value" words, or values by key
---@field world_size? integer default of `ranks`
---@field place? fun(key: string): string "file:line" where the recipe sets a key, or ""

--- Resolves a config. Errors, all of code 2, name key, expected and found: wrong types, values out
--- of range, overrides of keys that neither marea nor the recipe knows (with the nearest name), and
--- keys that do not go together.
---@param options marea.ConfigOptions
---@return table<string, any> values optional keys that are not set are absent
---@return table<string, marea.Rule> rules for every key that may be asked for
function config.resolve(options)
  local place = options.place or function() return "" end
  local values, rules = {}, {}
  for key, rule in pairs(known) do
    rules[key], values[key] = rule, rule.default
  end
  values.ranks = options.world_size or 1
  local given, places, overridden = options.given or {}, {}, {} -- where each key was set
  for key, value in pairs(given) do
    if type(key) ~= "string" then
      fault.raise_at(2, place("config"), "config must have names as keys, got %s", quoted(key))
    end
    rules[key] = rules[key] or own_rule(key, value, place(key))
    places[key] = place(key)
    values[key] = checked(key, rules[key], value, places[key])
  end
  local asked = device.asked()
  if asked then values.device = checked("device", rules.device, asked, "") end
  for _, override in ipairs(each_override(options.overrides)) do
    local rule = rules[override.key]
    if not rule then fault.raise_at(2, "", "%s", unknown_key(override.key, rules)) end
    local value = override.value
    if type(value) == "string" then value = parse(rule, value) end
    if value ~= nil then value = checked(override.key, rule, value, "") end
    values[override.key], places[override.key], overridden[override.key] = value, "", true
  end
  settle_accumulation(values, places, overridden)
  check_stop_below(values, places)
  return values, rules
end

-- Keys of its own that a view was asked for; every view has an entry.
local asked = setmetatable({}, { __mode = "k" })

--- Keys of a recipe's own that nobody has asked a view for and that are near a key of all recipes:
--- they look like typos.
---@param view marea.Config what config.read_only made
---@return {[1]: string, [2]: string}[] pairs_of_keys its own, and the near one; sorted
function config.likely_typos(view)
  local found, names = {}, sorted.keys(known)
  for key in pairs(view) do
    local near = not known[key] and not asked[view][key] and near_key(key, names)
    if near then found[#found + 1] = { key, near } end
  end
  return found
end

--- A read-only view of resolved values, as callbacks of a recipe get it. Writing raises, and so
--- does reading a key that is not declared. `pairs` walks the set keys in sorted order.
---@param values table<string, any>
---@param rules table<string, marea.Rule> keys that may be asked for
---@return marea.Config view
function config.read_only(values, rules)
  local view, own = {}, {}
  asked[view] = own
  return setmetatable(view, {
    __name = "config",
    __index = function(_, key)
      local value = values[key]
      own[key] = true
      if value == nil and not rules[key] then
        fault.raise(2, "%s", unknown_key(tostring(key), rules))
      end
      return value
    end,
    __newindex = function(_, key)
      fault.raise(2, "config is read-only: config.%s cannot be set while running", tostring(key))
    end,
    __pairs = function()
      local keys, i = sorted.keys(values), 0
      return function()
        i = i + 1
        return keys[i], values[keys[i]]
      end
    end,
  })
end

--- A plain copy of a config, for files and messages.
---@param view marea.Config
---@return table<string, any> values
function config.values(view)
  local copy = {}
  for key, value in pairs(view) do copy[key] = value end
  return copy
end

return config
