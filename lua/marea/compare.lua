-- Comparison of two checkpoints, part by part, to the last bit: lock, parameters, optimizer,
-- position, history, random states. Each part says what differs first and by how much.

local checkpoint = require "marea.checkpoint"
local core = require "marea.core"
local json = require "marea.json"
local lock_of = require "marea.lock"
local wording = require "marea.wording"

local compare = {}

local function differ(what, a, b)
  return ("%s: %s and %s"):format(what, wording.shown(a), wording.shown(b))
end

local function shape_text(file, name)
  return file:dtype(name) .. " " .. wording.shape(file:shape(name))
end

-- --- lock -------------------------------------------------------------------------------------

local function compare_locks(a, b)
  local differences = lock_of.compare(a.state.lock, b.state.lock)
  local granted_a = table.concat(a.state.lock.accepted, ", ")
  local granted_b = table.concat(b.state.lock.accepted, ", ")
  if granted_a ~= granted_b then
    differences[#differences + 1] = { field = "accepted", a = granted_a, b = granted_b }
  end
  local first = differences[1]
  return {
    part = "lock", equal = not first, count = #differences,
    first = first and differ(first.field, lock_of.shown(first.a), lock_of.shown(first.b)),
    differences = json.array(differences),
  }
end

-- --- tensors ----------------------------------------------------------------------------------

local function names_of_both(a, b)
  local names, seen = {}, {}
  for _, file in ipairs { a, b } do
    for _, name in ipairs(file:names()) do
      if not seen[name] then names[#names + 1] = name end
      seen[name] = true
    end
  end
  return names
end

-- nil when equal in every bit; else what differs, the number of values, and the largest difference.
local function tensor_difference(a, b, name)
  for _, file in ipairs { a, b } do
    if not file:has(name) then return name .. ": only one has it", 0, nil end
  end
  if shape_text(a, name) ~= shape_text(b, name) then
    return ("%s: %s and %s"):format(name, shape_text(a, name), shape_text(b, name)), 0, nil
  end
  local left, right = a:tensor(name), b:tensor(name)
  if left:hash() == right:hash() then return nil, 0, nil end
  local found = core.compare(left, right, { absolute = 0, relative = 0 })
  local where = ""
  if found.worst > 0 then
    where = (", most in value %d: %s and %s"):format(found.worst, wording.shown(found.worst_a),
                                                     wording.shown(found.worst_b))
  end
  return ("%s: %d of %d values%s"):format(name, found.failing, found.count, where), found.failing,
         found.max_abs
end

local function count_values(file)
  local total = 0
  for _, name in ipairs(file:names()) do
    local count = 1
    for _, extent in ipairs(file:shape(name)) do count = count * extent end
    total = total + count
  end
  return total
end

local function compare_files(part, a, b)
  local result = { part = part, equal = true, values = count_values(a), differing = 0, max_abs = 0 }
  for _, name in ipairs(names_of_both(a, b)) do
    local difference, failing, max_abs = tensor_difference(a, b, name)
    if difference then
      result.equal, result.first = false, result.first or difference
      result.differing = result.differing + failing
      if max_abs then result.max_abs = math.max(result.max_abs, max_abs) end
    end
  end
  return result
end

local function compare_optimizers(a, b)
  local result = compare_files("optimizer", a.optimizer, b.optimizer)
  local left, right = a.optimizer:metadata(), b.optimizer:metadata()
  for _, key in ipairs { "optimizer", "steps" } do
    if left[key] ~= right[key] then
      result.equal = false
      result.first = differ(key, left[key], right[key])
    end
  end
  return result
end

-- --- numbers and lines ------------------------------------------------------------------------

-- The first rank for which two lists differ.
local function list_difference(what, a, b)
  for r = 1, math.max(#a, #b) do
    if a[r] ~= b[r] then
      return differ(("%s, rank %d"):format(what, r - 1), a[r], b[r])
    end
  end
end

local function compare_positions(a, b)
  local first
  for _, key in ipairs { "update", "world" } do
    if a.state[key] ~= b.state[key] then
      first = first or differ(key, a.state[key], b.state[key])
    end
  end
  for _, key in ipairs { "microbatches", "sequences" } do
    first = first or list_difference(key, a.state[key], b.state[key])
  end
  return { part = "position", equal = not first, first = first }
end

-- What differs between the records of one update.
local function record_difference(update, a, b)
  local place = ("update %d, "):format(update)
  for _, key in ipairs { "loss_sums", "draws" } do
    local difference = list_difference(place .. key, a[key] or {}, b[key] or {})
    if difference then return difference end
  end
  return ("%stokens: %s and %s"):format(place, wording.shown(a.tokens), wording.shown(b.tokens))
end

local function compare_histories(a, b)
  local result = { part = "history", equal = true, differing = 0,
                   values = math.max(a.history:count(), b.history:count()) }
  for update = 1, result.values do
    if a.history.lines[update] ~= b.history.lines[update] then
      local left, right = a.history:get(update), b.history:get(update)
      result.equal, result.differing = false, result.differing + 1
      result.first = result.first or (left and right and record_difference(update, left, right)) or
        ("update %d: only one has it"):format(update)
    end
  end
  return result
end

-- "at draw 100": how far a rank's stream is, and which one it is unless both are the same one.
local function stream_text(state, other)
  local seed, id, position = tostring(state):match("^philox (%d+) (%d+) (%d+)$")
  if not seed then return state end -- of one that has fewer ranks
  local which = ("philox %s %s "):format(seed, id)
  local same = tostring(other):sub(1, #which) == which
  return "at draw " .. position .. (same and "" or (" of stream %s of seed %s"):format(id, seed))
end

local function compare_streams(a, b)
  local left, right, first = a.state.streams, b.state.streams, nil
  for r = 1, math.max(#left, #right) do
    if left[r] ~= right[r] then
      first = first or differ(("the stream of rank %d"):format(r - 1),
                              stream_text(left[r], right[r]), stream_text(right[r], left[r]))
    end
  end
  return { part = "random states", equal = not first, first = first,
           values = math.max(#a.state.streams, #b.state.streams) }
end

---@class marea.ComparedPart
---@field part string "lock", "parameters" and so on
---@field equal boolean in every bit
---@field first? string what differs first
---@field values? integer how many were compared
---@field differing? integer how many differ
---@field max_abs? number largest difference
---@field differences? marea.Difference[] of the lock

---@class marea.ComparisonReport
---@field a string folder
---@field b string folder
---@field equal boolean
---@field parts marea.ComparedPart[]

--- Compares two checkpoints; every byte of both is verified first.
--- Errors, code 3: one is damaged.
---@param folder_a string
---@param folder_b string
---@return marea.ComparisonReport report
function compare.checkpoints(folder_a, folder_b)
  local a, b = checkpoint.open(folder_a), checkpoint.open(folder_b)
  local parts = {
    compare_locks(a, b), compare_files("parameters", a.parameters, b.parameters),
    compare_optimizers(a, b), compare_positions(a, b), compare_histories(a, b),
    compare_streams(a, b),
  }
  for _, opened in ipairs { a, b } do
    opened.parameters:close()
    opened.optimizer:close()
  end
  local equal = true
  for _, part in ipairs(parts) do equal = equal and part.equal end
  return { a = folder_a, b = folder_b, equal = equal, parts = parts }
end

return compare
