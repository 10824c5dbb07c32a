-- Locks: hashes of everything that decides what a run computes: corpus, plan, config, and every Lua
-- file of the recipe. Two runs under equal locks, on equal ranks, compute the same.
--
-- A run that began with the weights of a file (train --init) has the file's hash as `init`.
--
-- Keys that only say where, how long and how often (device, stop, stop_below, updates, keep,
-- save_every, evaluate_every) are no part of it. So a run may go on under more updates than it was
-- planned for: its plan is then longer, and is compared by the links of its chain (see plan.lua)
-- over the steps that both plans have.

local config = require "marea.config"
local core = require "marea.core"
local fault = require "marea.fault"
local form = require "marea.form"
local json = require "marea.json"
local launch = require "marea.launch"
local nearest = require "marea.nearest"
local plan = require "marea.plan"
local sorted = require "marea.sorted"
local wording = require "marea.wording"

local lock = {}

local free_keys = { device = true, stop = true, stop_below = true, updates = true, keep = true,
                    save_every = true, evaluate_every = true }

local shown_digits = 12 -- of a hash

local function hash_files(files)
  local list = {}
  for i, file in ipairs(files) do
    list[i] = { name = file.name, sha256 = core.file.sha256_of(file.path) }
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return json.array(list)
end

local function locked_config(view)
  local values = config.values(view)
  for key in pairs(free_keys) do values[key] = nil end
  return { values = values, hash = core.file.sha256(json.encode(values)) }
end

--- The lock of a recipe with its corpus and plan.
--- Errors, code 1: a file of the recipe that cannot be read any more.
---@param recipe marea.Recipe a loaded recipe: config, files
---@param corpus marea.Corpus
---@param steps marea.Plan its plan
---@return marea.Lock record
function lock.of(recipe, corpus, steps)
  local hash, chain = plan.hash(steps)
  return {
    corpus = corpus:hash(),
    plan = { ranks = #steps[1], steps = #steps, hash = hash, chain = chain },
    config = locked_config(recipe.config),
    files = hash_files(recipe.files),
    accepted = json.array({}),
  }
end

--- A value of a lock as text for readers; of a hash, what tells it from others.
---@param value any
---@return string
function lock.shown(value)
  local text = wording.shown(value)
  return #text == 64 and text:find("^%x+$") and text:sub(1, shown_digits) or text
end

local function compare_plans(a, b, differences)
  local step = plan.first_difference(a.chain, b.chain)
  if a.ranks ~= b.ranks then
    differences[#differences + 1] = { field = "plan", a = ("for %d ranks"):format(a.ranks),
                                      b = ("for %d ranks"):format(b.ranks) }
  elseif step then
    local from = (", other ids from step %d on"):format(step)
    differences[#differences + 1] = { field = "plan", a = lock.shown(a.hash) .. from,
                                      b = lock.shown(b.hash) .. from }
  end
end

-- Adds a difference for every key whose values differ, in the order of the keys.
local function compare_maps(prefix, a, b, differences)
  for _, key in ipairs(sorted.keys(a, b)) do
    if a[key] ~= b[key] then
      differences[#differences + 1] = { field = prefix .. key, a = a[key], b = b[key] }
    end
  end
end

local function by_name(files)
  local map = {}
  for _, file in ipairs(files) do map[file.name] = file.sha256 end
  return map
end

--- What differs between two locks.
---@param a marea.Lock
---@param b marea.Lock
---@return marea.Difference[] differences a and b are the values, nil where one has none
function lock.compare(a, b)
  local differences = {}
  if a.corpus ~= b.corpus then
    differences[1] = { field = "corpus", a = a.corpus, b = b.corpus }
  end
  compare_plans(a.plan, b.plan, differences)
  compare_maps("config.", a.config.values, b.config.values, differences)
  compare_maps("files.", by_name(a.files), by_name(b.files), differences)
  if a.init ~= b.init then
    differences[#differences + 1] = { field = "init", a = a.init, b = b.init }
  end
  return differences
end

--- A difference as text: "config.lr: 0.1 then, 0.05 now".
---@param difference marea.Difference
---@return string
function lock.describe(difference)
  return ("%s: %s then, %s now"):format(difference.field, lock.shown(difference.a),
                                        lock.shown(difference.b))
end

local function fields_of(records)
  local fields = { "corpus", "plan", "schedule" }
  for _, record in ipairs(records) do
    for key in pairs(record.config.values) do fields[#fields + 1] = "config." .. key end
    for _, file in ipairs(record.files) do fields[#fields + 1] = "files." .. file.name end
  end
  return fields
end

-- The field that was most likely meant: "lr" for "config.lr", else the nearest one.
local function near_field(field, fields)
  for _, name in ipairs(fields) do
    if name:match("^%a+%.(.*)$") == field then return name end
  end
  return nearest.find(field, fields)
end

-- The accepted fields as a set; one that no lock has is a typo.
local function granted_fields(accepted, records)
  local granted, known = {}, {}
  local fields = fields_of(records)
  for _, field in ipairs(fields) do known[field] = true end
  for _, field in ipairs(accepted) do
    if not known[field] then
      local near = near_field(field, fields)
      fault.raise_at(2, "", "--accept: a lock has no field %q; %s", field,
                     near and ("did you mean %q?"):format(near) or
                     "it has corpus, plan, schedule, config.KEY and files.NAME")
    end
    granted[field] = true
  end
  return granted
end

-- Names every difference on a line of its own, and the words that let all of them through.
local function refuse(differences, accepted)
  local lines, words = {}, {}
  for i, field in ipairs(accepted) do words[i] = "--accept " .. launch.quote(field) end
  for i, difference in ipairs(differences) do
    lines[i] = "  " .. lock.describe(difference)
    words[#words + 1] = "--accept " .. launch.quote(difference.field)
  end
  fault.raise_at(3, "", "the run was made under another lock:\n%s\nto go on all the same: %s",
                 table.concat(lines, "\n"), table.concat(words, " "))
end

--- Compares the lock that a run was recorded under with the one that is to go on with it.
--- Errors, code 3: differences that are not accepted, naming each field and both values; code 2: an
--- accepted field that no lock has.
---@param recorded marea.Lock
---@param current marea.Lock
---@param accepted? string[] fields whose difference is let through
---@param further? marea.Difference[] differences that the locks themselves do not show
---@return marea.Lock record the current lock, with every difference that was ever let through
function lock.continue(recorded, current, accepted, further)
  local record = {}
  for key, value in pairs(current) do record[key] = value end
  record.init = recorded.init -- what a run began with stays
  local granted = granted_fields(accepted or {}, { recorded, current })
  local all, seen, refused = {}, {}, {}
  local function add(field)
    if not seen[field] then all[#all + 1] = field end
    seen[field] = true
  end
  for _, field in ipairs(recorded.accepted or {}) do add(field) end
  local differences = lock.compare(recorded, record)
  table.move(further or {}, 1, #(further or {}), #differences + 1, differences)
  for _, difference in ipairs(differences) do
    if granted[difference.field] then
      add(difference.field)
    else
      refused[#refused + 1] = difference
    end
  end
  if #refused > 0 then refuse(refused, accepted or {}) end
  table.sort(all)
  record.accepted = json.array(all)
  return record
end

--- Writes a lock, as a whole or not at all. Errors: code 1.
---@param path string
---@param record marea.Lock
function lock.write(path, record)
  json.write(path, record)
end

--- The form of a lock, as files have it.
---@type marea.Form
lock.form = form.record {
  corpus = form.text,
  plan = form.record { ranks = form.integer, hash = form.text, chain = form.text },
  config = form.record { values = form.map(form.scalar) },
  files = form.list(form.record { name = form.text, sha256 = form.text }),
  accepted = form.list(form.text),
  init = form.optional(form.text),
}

--- Reads what lock.write wrote. Errors: code 1 for a file that cannot be read, code 3 for one that
--- is no lock.
---@param path string
---@return marea.Lock record
function lock.read(path)
  local record, problem = json.decode(core.file.read(path))
  problem = problem or form.problem(record, lock.form)
  if problem then fault.raise_at(3, path, "no lock: %s", problem) end
  return record
end

return lock
