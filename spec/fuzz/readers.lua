-- What spec/fuzz/lua_reader.c feeds: for each reader a function that gets a folder to work in and
-- returns what reads one input. The first byte of an input chooses among the ways of reading it, so
-- that what a hash would refuse at once is also sealed anew and read to its end.

local checkpoint = require "marea.checkpoint"
local core = require "marea.core"
local corpus_of = require "marea.corpus"
local inventory = require "marea.inventory"
local json = require "marea.json"
local lock = require "marea.lock"
local nn = require "marea.nn"
local optim = require "marea.optim"
local plan = require "marea.plan"
local state = require "marea.state"
local small = require "spec.support.small_checkpoint"

local readers = {}

local function put(path, text)
  local stream <close> = assert(io.open(path, "wb"))
  stream:write(text)
end

-- The choice, from 0 to `ways` - 1, and the rest of an input.
local function split(input, ways)
  return (input:byte(1) or 0) % ways, input:sub(2)
end

-- --- corpora ------------------------------------------------------------------------------------

local function check_corpus(made)
  assert(made.size > 0 and #made:hash() == 64)
  for id = 1, made.size do
    local row, targets = made:sequence(id), made:targets(id)
    assert(row.tokens == #targets and row.length == #made:inputs(id))
    for _, target in ipairs(targets) do assert(target >= 0 and target < 256) end
  end
end

function readers.jsonl(folder)
  local path = folder .. "/lines"
  local ways = {
    [0] = function() return corpus_of.jsonl { path = path } end,
    function()
      return corpus_of.jsonl { path = path, split = { validation = 0.2, test = 0.2, seed = 1 } }
    end,
    function()
      return corpus_of.jsonl { path = path, fields = { "book", "cost" }, context = 40 }
    end,
    function() return corpus_of.text { path = path, separator = "line" } end,
    function() return corpus_of.text { path = path, separator = "blank", context = 40 } end,
    function() return corpus_of.text { path = path, separator = "%" } end,
  }
  return function(input)
    local way, text = split(input, #ways + 1)
    put(path, text)
    check_corpus(ways[way]())
  end
end

-- --- plans, locks, records ----------------------------------------------------------------------

-- A plan under the hash that it should have.
local function seal_plan(path, text)
  local record = json.decode(text)
  if type(record) ~= "table" or type(record.steps) ~= "table" then return end
  record.hash, record.chain = plan.hash(record.steps)
  put(path, json.encode(record))
end

function readers.plan(folder)
  local path, run = folder .. "/plan.json", folder .. "/run"
  local rows = corpus_of.symbols { seed = 1, train = 12, validation = 2, test = 2 }
  core.file.make_folder(run)
  local function read_plan()
    local steps = plan.check(plan.read(path), rows, { updates = 1, ranks = 2 })
    for step = 1, #steps do
      assert(#plan.microbatches(steps, step, 1) > 0)
    end
  end
  local ways = {
    [0] = function(text)
      put(path, text)
      read_plan()
    end,
    function(text)
      put(path, text)
      seal_plan(path, text)
      read_plan()
    end,
    function(text)
      put(path, text)
      local read = lock.read(path)
      lock.compare(read, small.lock())
      lock.continue(small.lock(), read, { "config.lr" })
    end,
    function(text)
      put(run .. "/run.json", text)
      put(run .. "/metrics.jsonl", text)
      for _, found in ipairs(inventory.runs(folder)) do inventory.last_update(found.folder) end
    end,
  }
  return function(input)
    local way, text = split(input, #ways + 1)
    ways[way](text)
  end
end

-- --- checkpoints --------------------------------------------------------------------------------

-- A manifest under the hash that it should have.
local function seal_manifest(folder, record)
  record.sha256 = nil
  record.sha256 = core.file.sha256(json.encode(record))
  put(folder .. "/manifest.json", json.encode(record, { indent = true }) .. "\n")
end

-- Reads all that a resume reads.
local function restore(folder, model, optimizer)
  local opened = checkpoint.open(folder)
  local parameters <close> = opened.parameters
  local moments <close> = opened.optimizer
  lock.continue(opened.state.lock, small.lock())
  for _, text in ipairs(opened.state.streams) do core.stream(1, 1):restore(text) end
  state.restore_parameters(model, parameters)
  state.restore_optimizer(model, optimizer, moments)
end

function readers.checkpoint(root)
  local folder, whole = root .. "/step-000002", {}
  small.write(folder)
  for _, name in ipairs(small.files) do whole[name] = core.file.read(folder .. "/" .. name) end
  local record = checkpoint.manifest(folder)
  local model = nn.Linear { input = 3, output = 2 }:materialize { seed = 1, dtype = "f32" }
  local optimizer = optim.SGD(model, { lr = 0.1, momentum = 0.9 })
  local changed = {}
  return function(input)
    local way, text = split(input, 2 * #small.files)
    local name = small.files[way // 2 + 1]
    for each in pairs(changed) do put(folder .. "/" .. each, whole[each]) end
    changed = { ["manifest.json"] = true, [name] = true }
    put(folder .. "/" .. name, text)
    local sealed = way % 2 == 1
    if sealed and name == "manifest.json" then
      local value = json.decode(text)
      if type(value) == "table" then seal_manifest(folder, value) end
    elseif sealed then
      local kept = record.files[name]
      -- What is sealed was written as a whole; a foreign tensor file has no seal of its tensors.
      record.files[name] = { bytes = #text, sha256 = core.file.sha256(text) }
      seal_manifest(folder, record)
      record.files[name] = kept
    end
    restore(folder, model, optimizer)
    assert(sealed or text == whole[name], "damage was not seen")
  end
end

return readers
