-- Plans: which sequences each rank reads in each step, as data: plan[step][rank][microbatch] is a
-- list of sequence ids (rank 0 stands at index 1). A rank may have fewer microbatches than others,
-- or none; windows are never cut to even ranks out.
--
-- A plan is hashed as a chain, one link a step: link(s) = sha256(link(s - 1), text of step s). Two
-- plans agree on their first n steps exactly when their n-th links are equal, so a run that was
-- planned for 100 updates can go on under a plan for 200 with the same beginning, although the
-- plans as wholes differ. `chain` holds the first 16 digits of each link, one after the other.

local core = require "marea.core"
local fault = require "marea.fault"
local json = require "marea.json"
local kind = require "marea.kind"

local plan = {}

local digits_per_link = 16

local function refuse(format, ...)
  fault.raise(2, "plan: " .. format, ...)
end

local function check_list(value, what)
  if type(value) ~= "table" then
    refuse("%sexpected a list, got %s", what, value == nil and "nothing" or "a " .. type(value))
  end
  local count = 0
  for key in pairs(value) do
    count = count + 1
    if math.type(key) ~= "integer" or key < 1 then
      refuse("%sexpected a list, got one with the key %s", what, tostring(key))
    end
  end
  if count ~= #value then refuse("%sexpected a list without holes", what) end
end

local function place_name(step, rank, microbatch)
  return ("step %d, rank %d, microbatch %d"):format(step, rank, microbatch)
end

local function check_id(id, place, corpus)
  if math.type(id) ~= "integer" then
    refuse("%s: expected a sequence id, an integer from 1 to %d, got %s", place, corpus.size,
           kind.shown(id))
  end
  if id < 1 or id > corpus.size then
    refuse("%s: expected a sequence id from 1 to %d, got %d, which the corpus does not have", place,
           corpus.size, id)
  end
  local split = corpus:sequence(id).split
  if split ~= "train" then
    refuse("%s: expected training sequences, got %d, which is of the %s split", place, id, split)
  end
end

local function check_microbatch(ids, place, corpus, seen)
  check_list(ids, place .. ": ")
  for _, id in ipairs(ids) do
    check_id(id, place, corpus)
    if seen[id] then
      refuse("%s: expected ids that do not repeat within a window, got %d, which is also in %s",
             place, id, seen[id] == place and "this microbatch" or seen[id])
    end
    seen[id] = place
  end
end

local function check_window(window, step, corpus, c)
  local ranks, sequences = c.ranks, 0
  check_list(window, ("step %d: "):format(step))
  if #window ~= ranks then
    refuse("step %d: expected microbatches for %d rank%s, got %d", step, ranks,
           ranks == 1 and "" or "s", #window)
  end
  local seen = {}
  for rank = 0, ranks - 1 do
    check_list(window[rank + 1], ("step %d, rank %d: "):format(step, rank))
    for m, ids in ipairs(window[rank + 1]) do
      check_microbatch(ids, place_name(step, rank, m), corpus, seen)
      sequences = sequences + #ids
    end
  end
  if c.global_batch_size and sequences > c.global_batch_size then
    refuse("step %d: expected at most %d sequences (config.global_batch_size), got %d", step,
           c.global_batch_size, sequences)
  end
end

--- Refuses a plan that cannot be run, code 2, naming step, rank, microbatch, expected and found:
--- missing steps or ranks, ids that are unknown, no integers, of another split than the training
--- split, or repeated within a window (on a rank or across ranks); windows beyond the global batch.
---@param steps marea.Plan
---@param corpus marea.Corpus
---@param c {ranks: integer, updates: integer, global_batch_size?: integer} config
---@return marea.Plan steps the same one
function plan.check(steps, corpus, c)
  check_list(steps, "")
  if #steps < c.updates then
    refuse("expected at least %d step%s (config.updates), got %d", c.updates,
           c.updates == 1 and "" or "s", #steps)
  end
  for step, window in ipairs(steps) do check_window(window, step, corpus, c) end
  return steps
end

--- Refuses, with code 2, an update that a plan does not have.
---@param steps marea.Plan
---@param step integer
function plan.require_step(steps, step)
  if not steps[step] then
    fault.raise(2, "the plan has %d step%s, and update %d was asked for", #steps,
                #steps == 1 and "" or "s", step)
  end
end

--- The microbatches of one rank in one step; a rank without any gets one of zero sequences, so the
--- loop of every recipe runs there too.
---@param steps marea.Plan
---@param step integer from 1
---@param rank integer from 0
---@return integer[][] microbatches at least one
function plan.microbatches(steps, step, rank)
  local microbatches = steps[step][rank + 1]
  if #microbatches == 0 then return { {} } end
  return microbatches
end

--- The hash of a plan and of its beginnings.
---@param steps marea.Plan
---@return string hash sha-256 of the whole, 64 digits
---@return string chain 16 digits a step
function plan.hash(steps)
  local link = core.file.sha256("marea plan")
  local parts = {}
  for i, window in ipairs(steps) do
    link = core.file.sha256(link .. json.encode(window))
    parts[i] = link:sub(1, digits_per_link)
  end
  return link, table.concat(parts)
end

--- The first step in which two chains differ, within the shorter of the two.
---@param a string chain
---@param b string chain
---@return integer? step nil when the shorter is the beginning of the longer
function plan.first_difference(a, b)
  local steps = math.min(#a, #b) // digits_per_link
  for step = 1, steps do
    local first, last = (step - 1) * digits_per_link + 1, step * digits_per_link
    if a:sub(first, last) ~= b:sub(first, last) then return step end
  end
end

--- Writes a plan as JSON, as a whole or not at all. Errors: code 1.
---@param path string
---@param steps marea.Plan
function plan.write(path, steps)
  local hash, chain = plan.hash(steps)
  core.file.write(path, json.encode {
    ranks = #steps[1], steps = steps, hash = hash, chain = chain,
  } .. "\n")
end

--- Reads a plan that plan.write wrote. Errors: code 1 for a file that cannot be read, code 3 for
--- one that is damaged.
---@param path string
---@return marea.Plan steps
function plan.read(path)
  local record, problem = json.decode(core.file.read(path))
  if type(record) ~= "table" or type(record.steps) ~= "table" then
    fault.raise_at(3, path, "no plan: %s", problem or "it has no steps")
  end
  local hash = plan.hash(record.steps)
  if hash ~= record.hash then
    fault.raise_at(3, path, "the plan was altered: expected hash %s, got %s",
                   tostring(record.hash), hash)
  end
  return record.steps
end

return plan
