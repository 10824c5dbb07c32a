-- What a GPU does: `marea bench --device cuda` without a recipe, and what bench measures on GPUs
-- only, a copy's rate and the least traffic of a step.
--
-- Each subject is a program of its own, so that its peak of memory is its own and what fails stops
-- no other; PyTorch takes turns with it there.

local core = require "marea.core"
local json = require "marea.json"
local launch = require "marea.launch"

local device = {}

local copies_a_turn = 4

---@class marea.Subject
---@field recipe string path from the checkout's root
---@field settings string[]
---@field seconds number of turns

local gpt = "recipes/gpt.lua"

--- The subjects, by the name of their sizes: `full` for GPUs, `tiny` for devices of the processor.
---@type table<string, {ceiling: integer, subjects: marea.Subject[]}>
device.sizes = {
  full = { ceiling = 8192, subjects = {
    { recipe = "recipes/minimum.lua", settings = { "ranks=1" }, seconds = 5 },
    { recipe = gpt, settings = { "size=124M", "dtype=f32" }, seconds = 15 },
    { recipe = gpt, settings = { "size=124M", "dtype=bf16" }, seconds = 15 },
  } },
  tiny = { ceiling = 64, subjects = {
    { recipe = "recipes/minimum.lua", settings = { "ranks=1", "batch_size_per_rank=1" },
      seconds = 0.1 },
    { recipe = gpt, settings = { "size=S", "dtype=f32", "accumulation=8" }, seconds = 0.1 },
    { recipe = gpt, settings = { "size=S", "dtype=bf16", "accumulation=8" }, seconds = 0.1 },
  } },
}

--- Copies from one place of the device's memory to another.
---@param ceiling integer extent of the large product; the copies are of a matrix of that extent
---@return fun() copy does some
---@return integer bytes that they read and write
function device.copier(ceiling)
  local from, to = core.zeros({ ceiling, ceiling }, "f32"), core.zeros({ ceiling, ceiling }, "f32")
  return function()
    for _ = 1, copies_a_turn do to:copy_(from) end
  end, copies_a_turn * 2 * 4 * ceiling * ceiling
end

-- Bytes of a parameter and its gradient in the model's dtype, and how often an update has to move
-- what the optimizer holds in f32 (moments; a master weight beside bf16), read and written.
local widths = { f32 = 4, f64 = 8, bf16 = 2 }
local held = { SGD = 0, AdamW = 2 }

--- The least that a step moves for its parameters alone: forward and backward read each of them
--- once, its gradient is written and read, and the optimizer reads and writes parameter, moments
--- and master weight. Activations come on top; so this bounds a step from below.
---@param session marea.Session built
---@return integer bytes
function device.least_bytes(session)
  local dtype = session.config.dtype
  local width = widths[dtype]
  local state = held[session.optimizer.kind] + (dtype == "bf16" and 1 or 0)
  local of_state = dtype == "f64" and 8 or 4
  return session.model:count() * (6 * width + 2 * of_state * state)
end

local function words_of(subject, sizes, against, folder)
  local words = { "bench", launch.root() .. "/" .. subject.recipe }
  table.move(subject.settings, 1, #subject.settings, #words + 1, words)
  for _, word in ipairs { "--seconds", tostring(subject.seconds), "--ceiling",
                          tostring(sizes.ceiling), "--json", "--outputs", folder } do
    words[#words + 1] = word
  end
  if against then table.move({ "--against", "torch" }, 1, 2, #words + 1, words) end
  return words
end

-- What the subject's program found, or the line in which it said what went wrong.
local function measure_one(subject, sizes, against, time_limit)
  local folder = os.tmpname()
  os.remove(folder)
  local code, output, errors = launch.run({ time_limit = time_limit },
                                          words_of(subject, sizes, against, folder))
  os.execute("rm -rf " .. launch.quote(folder))
  if code == 0 then
    io.stderr:write(errors)
    return json.decode(output)
  end
  return nil, code, errors:match "([^\n]+)%s*$" or
    ("ended with code %d, of at most %d seconds"):format(code, time_limit)
end

---@class marea.DeviceBench
---@field sizes string
---@field seconds number all of it took
---@field subjects table[] records as bench makes them, with `settings`; {recipe, settings, problem}
---of those that failed

--- Measures the subjects one after the other, in one process that opens no device itself.
---@param name "full"|"tiny"
---@param against boolean beside PyTorch
---@param time_limit number seconds for all of them
---@return marea.DeviceBench record
---@return integer code 0, or the first exit code of a subject that failed
function device.measure(name, against, time_limit)
  local sizes, began, first = device.sizes[name], core.seconds(), 0
  local record = { sizes = name, subjects = {} }
  for i, subject in ipairs(sizes.subjects) do
    local left = math.max(1, time_limit - (core.seconds() - began))
    io.stderr:write(("marea: %s %s\n"):format(subject.recipe,
                                               table.concat(subject.settings, " ")))
    local found, code, problem = measure_one(subject, sizes, against, left)
    if not found then
      found = { recipe = subject.recipe, problem = problem }
      if first == 0 then first = code end
    end
    found.settings = subject.settings
    record.subjects[i] = found
  end
  record.seconds = core.seconds() - began
  return record, first
end

return device
