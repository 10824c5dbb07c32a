-- Units that are made for a field or a class: the parts of which objectives are composed. Each is a
-- function (sequence, window) like any unit of one's own, and has a text that stands for it in
-- configs, reports and on the command line: "per:book", "per:book,scaled_by:cost".

local fault = require "marea.fault"
local json = require "marea.json"
local nearest = require "marea.nearest"
local units = require "marea.units"

local weightings = {}

-- The texts of units that were made here.
local texts = setmetatable({}, { __mode = "k" })

local function named(unit, text)
  texts[unit] = text
  return unit
end

-- What a window adds to a row; these are no fields of the corpus.
local of_window = { rank = true, microbatch = true, masked = true }

local function check_field(field, what)
  if type(field) ~= "string" or not field:find("^[^%s,:]+$") then
    fault.raise(2, "%s expects the name of a field of the corpus, got %s", what,
                type(field) == "string" and ("%q"):format(field) or
                field == nil and "nothing" or "a " .. type(field))
  end
  if of_window[field] then
    fault.raise(2, "%s: %s is no field of the corpus but a place in the window", what, field)
  end
  return field
end

local own = { id = true, split = true, tokens = true, length = true }

local function fields_text(window, field)
  local corpus = window.session and window.session.corpus
  local names = {}
  for name in pairs(corpus and corpus:sequence(1) or {}) do
    if not own[name] then names[#names + 1] = name end
  end
  table.sort(names)
  local near = nearest.find(field, names)
  if near then return ("did you mean %q?"):format(near) end
  return #names == 0 and "the corpus has no fields" or "it has " .. table.concat(names, ", ")
end

local function field_of(sequence, window, field, text)
  local value = sequence[field]
  if value == nil then
    units.refuse_field(window, 2, "%s needs the field %q, which sequence %s of the corpus does " ..
                       "not have; %s", text, field, tostring(sequence.id),
                       fields_text(window, field))
  end
  return value
end

--- Every value of a field counts the same in a window: 1 / (supervised positions, over all ranks,
--- of the sequences with the same value). So a document whose pieces lie in several sequences,
--- microbatches and ranks counts once.
--- Errors, code 2: no name; when it is asked, a field that the corpus does not have.
---@param field string
---@return marea.Weighting unit
function weightings.per(field)
  local text = "per:" .. check_field(field, "objective.per")
  return named(function(sequence, window)
    return 1 / window:total(field, field_of(sequence, window, field, text))
  end, text)
end

--- Every position counts as much as the numeric field of its sequence says.
--- Errors, code 2: no name; when it is asked, a field that the corpus does not have, or that is no
--- number; code 5: a number that is negative or not finite.
---@param field string
---@return marea.Weighting unit
function weightings.scaled_by(field)
  local text = "scaled_by:" .. check_field(field, "objective.scaled_by")
  return named(function(sequence, window)
    local value = field_of(sequence, window, field, text)
    if type(value) ~= "number" then
      units.refuse_field(window, 2, "%s needs a number in the field %q; that of sequence %s is " ..
                         "a %s, %q", text, field, tostring(sequence.id), type(value),
                         tostring(value))
    elseif not (value >= 0 and value < math.huge) then
      units.refuse_field(window, 5, "window %s: %s needs finite numbers of at least 0 in the " ..
                         "field %q; that of sequence %s is %s", tostring(window.step), text, field,
                         tostring(sequence.id), tostring(value))
    end
    return value
  end, text)
end

local function check_weight(weight, what)
  if type(weight) ~= "number" or not (weight >= 0 and weight < math.huge) then
    fault.raise(2, "%s must be a finite number of at least 0, got %s", what, tostring(weight))
  end
  return weight
end

--- The targets of a sequence's supervised positions in a window.
---@param sequence marea.PlacedSequence
---@param window marea.Window
---@return integer[] targets ids from 0, as many as the sequence has tokens
function weightings.targets(sequence, window)
  local targets = {}
  for _, target in ipairs(window.session.corpus:targets(sequence.id)) do
    if target ~= -100 then targets[#targets + 1] = target end
  end
  local hidden = sequence.masked or 0
  return table.move(targets, hidden + 1, #targets, 1, {})
end

--- Every position counts as much as the class of its target; classes that are not given count 1.
--- Errors, code 2: classes that are no ids, weights that are negative or not finite.
---@param weights table<integer, number> by target id, from 0
---@return marea.Weighting unit
function weightings.by_class(weights)
  local what = "objective.by_class"
  if type(weights) ~= "table" or next(weights) == nil then
    fault.raise(2, "%s expects a table {[id] = weight}, got %s", what,
                type(weights) == "table" and "an empty one" or type(weights))
  end
  local of_class, list = {}, {}
  for class, weight in pairs(weights) do
    if math.type(class) ~= "integer" or class < 0 then
      fault.raise(2, "%s: a class must be a target's id, from 0, got %s", what, tostring(class))
    end
    of_class[class] = check_weight(weight, ("%s: the weight of class %d"):format(what, class))
    list[#list + 1] = class
  end
  table.sort(list)
  for i, class in ipairs(list) do
    list[i] = ("by_class:%d=%s"):format(class, json.number(of_class[class]))
  end
  return named(function(sequence, window)
    local values = weightings.targets(sequence, window)
    for i, target in ipairs(values) do values[i] = of_class[target] or 1 end
    return values
  end, table.concat(list, ","))
end

--- Positions of prompts count `weight` each, the others 1. The corpus must supervise prompts:
--- corpus.jsonl { prompts = "supervised" }.
--- Errors, code 2: a weight that is negative or not finite; when it is asked, a corpus that does
--- not say what is prompt.
---@param weight number
---@return marea.Weighting unit
function weightings.prompts(weight)
  check_weight(weight, "objective.prompts: the weight")
  local text = "prompts:" .. json.number(weight)
  return named(function(sequence, window)
    if sequence.prompt_tokens == nil then
      units.refuse_field(window, 2, "%s needs supervised prompts, as of corpus.jsonl { prompts " ..
                         "= %q }; sequence %s does not say what is prompt", text, "supervised",
                         tostring(sequence.id))
    end
    local prompt, values = sequence.prompt_tokens - (sequence.masked or 0), {}
    for i = 1, sequence.tokens do values[i] = i <= prompt and weight or 1 end
    return values
  end, text)
end

-- --- products -----------------------------------------------------------------------------------

-- Whether a unit gave what can be multiplied; what cannot is left to the check of weights.
local function is_weight(value, tokens)
  if type(value) == "number" then return true end
  if type(value) ~= "table" or #value ~= tokens then return false end
  for _, weight in ipairs(value) do
    if type(weight) ~= "number" then return false end
  end
  return true
end

local function multiply(a, b, tokens)
  if type(a) == "number" and type(b) == "number" then return a * b end
  local values = {}
  for i = 1, tokens do
    values[i] = (type(a) == "table" and a[i] or a) * (type(b) == "table" and b[i] or b)
  end
  return values
end

--- The product of several units: `objective.product { objective.per "book",
--- objective.scaled_by "cost" }` weighs each book alike, then by its cost.
--- Errors, code 2: anything but a list of units.
---@param list marea.Weighting[]
---@return marea.Weighting unit
function weightings.product(list)
  if type(list) ~= "table" or #list == 0 then
    fault.raise(2, "objective.product expects a list of units, got %s",
                type(list) == "table" and "an empty table" or "a " .. type(list))
  end
  local factors, parts = {}, {}
  for i, unit in ipairs(list) do
    if type(unit) ~= "function" then
      fault.raise(2, "objective.product: unit %d must be a function, got a %s", i, type(unit))
    end
    factors[i], parts[#parts + 1] = unit, weightings.text(unit)
  end
  return named(function(sequence, window)
    local product = 1
    for _, unit in ipairs(factors) do
      local value = unit(sequence, window)
      if not is_weight(value, sequence.tokens) then return value end
      product = multiply(product, value, sequence.tokens)
    end
    return product
  end, #parts == #factors and table.concat(parts, ",") or nil)
end

-- --- texts --------------------------------------------------------------------------------------

--- The text that stands for a unit; nil for one of the recipe's own.
---@param unit any
---@return string? text
function weightings.text(unit) return texts[unit] end

--- Gives a unit without arguments its text.
---@param unit marea.Weighting
---@param text string
function weightings.set_text(unit, text) texts[unit] = text end

local makers = { per = weightings.per, scaled_by = weightings.scaled_by }

function makers.by_class(argument)
  local class, weight = argument:match("^(%d+)=(.+)$")
  if not class then
    fault.raise_at(2, "", "objective: expected by_class:ID=WEIGHT, got by_class:%s", argument)
  end
  return weightings.by_class { [math.tointeger(tonumber(class))] = tonumber(weight) or weight }
end

function makers.prompts(argument) return weightings.prompts(tonumber(argument) or argument) end

--- The unit that a text stands for: factors with commas between, each a name of `known` or
--- NAME:ARGUMENT. Errors, code 2: arguments that do not fit.
---@param text string
---@param known table<string, marea.Weighting> units without arguments
---@return marea.Weighting? unit nil for a text that stands for none
function weightings.parse(text, known)
  local factors = {}
  for part in (text .. ","):gmatch("(.-),") do
    local name, argument = part:match("^([%w_]+):(.*)$")
    local unit = known[part]
    if makers[name] then unit = makers[name](argument) end
    if type(unit) ~= "function" then return nil end
    factors[#factors + 1] = unit
  end
  return #factors == 1 and factors[1] or weightings.product(factors)
end

return weightings
