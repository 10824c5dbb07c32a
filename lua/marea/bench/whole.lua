-- Whole trainings, from the command to its end, in turns with PyTorch's of the same plan: all
-- updates, with start-up and without.

local core = require "marea.core"
local fault = require "marea.fault"
local json = require "marea.json"
local launch = require "marea.launch"
local statistics = require "marea.bench.statistics"

local whole = {}

local turns, time_limit = 3, 600

-- Seconds of all updates as the run wrote them down.
local function loop_seconds(folder)
  local sum = 0
  for line in core.file.read(folder .. "/metrics.jsonl"):gmatch "[^\n]+" do
    local row = json.decode(line)
    sum = sum + (row.ms or 0) / 1000
  end
  return sum
end

local function train(words, recipe)
  local folder = os.tmpname()
  os.remove(folder)
  local arguments = { "train", table.unpack(words) }
  for _, word in ipairs { "--continuous", "--quiet", "--outputs", folder } do
    arguments[#arguments + 1] = word
  end
  local began = core.seconds()
  local code, _, errors = launch.run({ ranks = recipe.config.ranks, time_limit = time_limit },
                                     arguments)
  local seconds = core.seconds() - began
  local loop = code == 0 and loop_seconds(folder .. "/" .. recipe.name)
  os.execute("rm -rf " .. launch.quote(folder))
  if not loop then
    fault.raise_at(code, "", "--whole-run: the training ended with code %d: %s", code,
                   errors:match "^%s*(.-)%s*$")
  end
  return { seconds = seconds, loop = loop }
end

---@class marea.WholeRun
---@field ranks integer of one thread or more each
---@field updates integer
---@field seconds marea.Spread from the command to its end
---@field loop_seconds marea.Spread of the updates alone
---@field torch? {version: string, seconds: marea.Spread, loop_seconds: marea.Spread}
---@field ratio? marea.Spread PyTorch's seconds over ours, of turns
---@field loop_ratio? marea.Spread the same of the updates alone

--- Measures; one process, while nothing else runs. Errors: as training; those of the peer.
---@param recipe marea.Recipe
---@param words string[] the recipe's path and settings
---@param peer? fun(): {seconds: number, loop: number, version: string} one training of PyTorch
---@return marea.WholeRun
function whole.measure(recipe, words, peer)
  local ours, theirs, version = { seconds = {}, loop = {} }, { seconds = {}, loop = {} }, nil
  local function note(list, i, found) list.seconds[i], list.loop[i] = found.seconds, found.loop end
  for i = 1, turns do
    note(ours, i, train(words, recipe))
    if peer then
      local found = peer()
      note(theirs, i, found)
      version = found.version
    end
  end
  local spread = statistics.spread
  local record = { ranks = recipe.config.ranks, updates = recipe.config.updates,
                   seconds = spread(ours.seconds), loop_seconds = spread(ours.loop) }
  if peer then
    record.torch = { version = version, seconds = spread(theirs.seconds),
                     loop_seconds = spread(theirs.loop) }
    record.ratio = statistics.ratio(theirs.seconds, ours.seconds)
    record.loop_ratio = statistics.ratio(theirs.loop, ours.loop)
  end
  return record
end

return whole
