-- Units: the weights that an objective's terms give to the sequences of a window, checked.
--
-- A term's unit is a function (a weight for every supervised position) or one of "position",
-- "sequence", "microbatch" and "window" (one value each).

local fault = require "marea.fault"
local kind = require "marea.kind"
local nearest = require "marea.nearest"

local units = {}

--- Refuses a window on all ranks alike: code 5, with the update.
---@param window marea.Window
---@param format string as of string.format
---@param ... any
function units.refuse(window, format, ...)
  local recipe = window.session.recipe
  fault.raise_at(5, recipe and recipe.path and recipe.place("plan") or "", "window %d: " .. format,
                 window.step, ...)
end

local library = debug.getinfo(1, "S").source:match("^(.*)units%.lua$")

-- The line where a unit of a recipe's own begins, or that of the recipe's objective.
local function place_of(window, unit)
  local recipe, info = window.session.recipe, type(unit) == "function" and debug.getinfo(unit, "S")
  if not (recipe and recipe.path) then return "" end
  if info and info.source:sub(1, 1) == "@" and info.source:sub(1, #library) ~= library then
    return ("%s:%d"):format(info.source:sub(2), info.linedefined)
  end
  return recipe.place("objective")
end

--- Refuses a window for what a term's unit gives: as units.refuse, with the unit's line.
---@param window marea.Window
---@param term marea.Term
---@param format string as of string.format
---@param ... any
function units.refuse_term(window, term, format, ...)
  fault.raise_at(5, place_of(window, term.unit), "window %d: " .. format, window.step, ...)
end

--- Refuses what the objective asks of a corpus that cannot give it, with the objective's line.
---@param window marea.Window
---@param code integer 2 for what the corpus does not have, 5 for weights that must not be
---@param format string as of string.format
---@param ... any
function units.refuse_field(window, code, format, ...)
  fault.raise_at(code, window.session and place_of(window) or "", format, ...)
end

--- Refuses, with code 2 and the nearest one, a field that no sequence of a window has.
---@param window marea.Window
---@param field string
function units.require_field(window, field)
  local names = {}
  for sequence in window:sequences() do
    if sequence[field] ~= nil then return end
    if #names == 0 then
      for name in pairs(window.session.corpus:sequence(sequence.id)) do names[#names + 1] = name end
    end
  end
  if #names == 0 then return end
  table.sort(names)
  local near = nearest.find(tostring(field), names)
  fault.raise(2, "the sequences have no field %s; %s", kind.shown(field),
              near and ("did you mean %q?"):format(near) or
              "they have " .. table.concat(names, ", "))
end

--- Refuses, with code 2, to look for nil in a field: no sequence has that, so the field or the name
--- that was read for it is mistaken.
---@param window marea.Window
---@param field string
function units.refuse_nil(window, field)
  units.require_field(window, field)
  for sequence in window:sequences() do
    if sequence[field] == nil then
      fault.raise(2, "sequence %d has no field %s", sequence.id, kind.shown(field))
    end
  end
  fault.raise(2, "window:total(%s, nil): expected a value of that field, which every sequence has",
              kind.shown(field))
end

local function shown(value)
  if value ~= value then return "not a number" end
  if type(value) == "number" then return tostring(value) end
  return value == nil and "nothing" or "a " .. type(value)
end

local function check_weight(window, term, sequence, weight)
  if type(weight) == "number" and weight >= 0 and weight < math.huge then return weight end
  units.refuse_term(window, term, "the unit of %s must give finite weights of at least 0, got " ..
                    "%s for sequence %s on rank %d", term.name, shown(weight),
                    tostring(sequence.id), sequence.rank)
end

--- Whether a term has one loss, and one weight, per supervised position.
---@param term marea.Term
---@return boolean
function units.per_position(term)
  return term.unit == "position" or type(term.unit) == "function"
end

--- The first term of some that has one loss per position: the one that is reported, weighed and
--- broken.
---@param terms marea.Term[]
---@return integer? t
---@return marea.Term? term
function units.main_term(terms)
  for t, term in ipairs(terms) do
    if units.per_position(term) then return t, term end
  end
end

--- Weights of a sequence under a term per position; 0 for one without supervised positions, which a
--- unit is not asked about.
--- Errors: code 5 for weights that are negative or not finite, or a list of another length.
---@param window marea.Window
---@param term marea.Term
---@param sequence marea.PlacedSequence
---@return number|number[] weights a number for all positions, or one for each
function units.of_sequence(window, term, sequence)
  if sequence.tokens == 0 then return 0 end
  if term.unit == "position" then return 1 end
  local given = term.unit(sequence, window)
  if type(given) ~= "table" then return check_weight(window, term, sequence, given) end
  if #given ~= sequence.tokens then
    units.refuse_term(window, term, "the unit of %s gave %d weights for sequence %s, which has " ..
                      "%d supervised positions", term.name, #given, tostring(sequence.id),
                      sequence.tokens)
  end
  for _, weight in ipairs(given) do check_weight(window, term, sequence, weight) end
  return given
end

local function sum_of_sequence(window, term, sequence)
  if term.unit == "sequence" then return sequence.tokens > 0 and 1 or 0 end
  local weights = units.of_sequence(window, term, sequence)
  if type(weights) == "number" then return weights * sequence.tokens end
  local sum = 0
  for _, weight in ipairs(weights) do sum = sum + weight end
  return sum
end

--- The weight sum of a term over one microbatch. A microbatch without supervised positions has no
--- value of its own and counts in no mean over microbatches; a window's value is the same in every
--- microbatch, so each is given its share.
---@param window marea.Window
---@param term marea.Term
---@param sequences marea.PlacedSequence[] of the microbatch
---@return number sum
function units.sum(window, term, sequences)
  if term.unit == "window" then return 1 end
  local tokens, sum = 0, 0
  for _, sequence in ipairs(sequences) do
    tokens = tokens + sequence.tokens
    if term.unit ~= "microbatch" then sum = sum + sum_of_sequence(window, term, sequence) end
  end
  if term.unit == "microbatch" then return tokens > 0 and 1 or 0 end
  return sum
end

return units
