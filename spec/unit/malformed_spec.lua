-- Files that are JSON and sealed, but not what they should be: each value in turn is replaced by
-- one of every other kind. Readers may refuse (a fault) or not mind; they may not stumble.

local checkpoint = require "marea.checkpoint"
local compare = require "marea.compare"
local core = require "marea.core"
local corpus = require "marea.corpus"
local fault = require "marea.fault"
local inventory = require "marea.inventory"
local json = require "marea.json"
local lock = require "marea.lock"
local plan = require "marea.plan"
local saves = require "marea.saves"
local scratch = dofile "spec/support/scratch.lua"
local small = dofile "spec/support/small_checkpoint.lua"

local others = { "null", "true", "-1", "2.5", "1e300", "99999999999", '"x"', '""', "[]", "{}",
                 "[[1]]", '{"a":{}}' }

local function put(path, text)
  local stream <close> = assert(io.open(path, "wb"))
  stream:write(text)
end

-- All texts that differ from a value's in one place.
local function variants(value)
  local list = {}
  local function walk(node, rebuild)
    for _, other in ipairs(others) do list[#list + 1] = rebuild(other) end
    if type(node) ~= "table" then return end
    local keys, is_list = {}, node[1] ~= nil
    for key in pairs(node) do keys[#keys + 1] = key end
    table.sort(keys)
    for position, key in ipairs(keys) do
      walk(node[key], function(inner)
        local parts = {}
        for i, each in ipairs(keys) do
          local text = i == position and inner or json.encode(node[each])
          parts[i] = is_list and text or ("%q:%s"):format(each, text)
        end
        return rebuild((is_list and "[%s]" or "{%s}"):format(table.concat(parts, ",")))
      end)
    end
  end
  walk(value, function(text) return text end)
  return list
end

-- Runs `read` on a variant; returns whether it was refused.
local function is_refused(read, text)
  local good, raised = xpcall(read, function(problem)
    return fault.is(problem) and problem or debug.traceback(tostring(problem), 2)
  end, text)
  if not good and not fault.is(raised) then error(text .. "\n" .. raised, 0) end
  return not good
end

-- How many variants there are, and how many were refused.
local function read_all(value, read)
  local count, refused = 0, 0
  for _, text in ipairs(variants(value)) do
    count = count + 1
    refused = refused + (is_refused(read, text) and 1 or 0)
  end
  return count, refused
end

describe("readers do not stumble over", function()
  local place, folder

  before_each(function()
    place = scratch.folder()
    folder = place.path
  end)

  after_each(function() getmetatable(place).__close(place) end)

  it("plans", function()
    local path = folder .. "/plan.json"
    local rows = corpus.symbols { seed = 1, train = 8, validation = 1, test = 1 }
    plan.write(path, { { { { 1, 2 }, { 3 } }, { { 4 } } }, { {}, { { 5 } } } })
    local whole = json.decode(core.file.read(path))
    local count, refused = read_all(whole, function(text)
      put(path, text)
      local record = json.decode(text)
      if type(record) == "table" and type(record.steps) == "table" then
        record.hash = plan.hash(record.steps)
        put(path, json.encode(record))
      end
      plan.check(plan.read(path), rows, { updates = 2, ranks = 2 })
    end)
    assert.is_true(count > 200 and refused > count / 2, count .. " " .. refused)
  end)

  it("corpora", function()
    local path, sequences = folder .. "/corpus.safetensors", {}
    for i = 1, 3 do
      sequences[i] = { inputs = { 0, 1 }, targets = { 1, -100 }, split = "train",
                       fields = { book = "moon", cost = i, open = true } }
    end
    corpus.from { sequences = sequences, vocabulary = 2, begin = 0 }:write(path)
    local file = core.safetensors.open(path)
    local tensors, metadata = {}, file:metadata()
    for i, name in ipairs(file:names()) do tensors[i] = { name, file:tensor(name) } end
    file:close()
    for _, key in ipairs { "columns", "symbols", "notes" } do
      local whole = metadata[key] and json.decode(metadata[key]) or { source = "x" }
      local count, refused = read_all(whole, function(text)
        local changed = {}
        for name, value in pairs(metadata) do changed[name] = value end
        changed[key] = text
        core.safetensors.write(path, tensors, changed)
        local opened = corpus.open(path)
        return opened.card and #opened:hash()
      end)
      assert.is_true(count >= 24 and (refused > count / 2 or key == "notes"), key)
    end
  end)

  it("locks", function()
    local path = folder .. "/lock.json"
    local count, refused = read_all(small.lock(), function(text)
      put(path, text)
      local read = lock.read(path)
      lock.compare(read, small.lock())
      lock.continue(read, small.lock())
    end)
    assert.is_true(count > 150 and refused > count / 2, count .. " " .. refused)
  end)

  it("records of runs and their logs", function()
    local run = folder .. "/tide"
    core.file.make_folder(run)
    local record = { id = "1", run = "tide", update = 2, config = { updates = 4 }, world = 2,
                     outcome = "running", started = "2026-01-01T00:00:00Z", ended = "2026" }
    local rows = require "marea.cli.runs"
    read_all(record, function(text)
      put(run .. "/run.json", text)
      inventory.runs(folder)
      local print_before = print
      finally(function() print = print_before end) -- luacheck: ignore
      print = function() end -- luacheck: ignore
      for _, as_json in ipairs { true, false } do
        rows.run { outputs = folder, runs = {}, json = as_json }
      end
      print = print_before -- luacheck: ignore
      saves.id_of(run)
    end)
    read_all({ update = 2, lr = 0.1, loss_per_token = 1 }, function(text)
      put(run .. "/metrics.jsonl", text .. "\n")
      inventory.last_update(run)
    end)
  end)

  it("manifests", function()
    local step = folder .. "/step-000002"
    small.write(step)
    local whole = json.decode(core.file.read(step .. "/manifest.json"))
    local count, refused = read_all(whole, function(text)
      local record = json.decode(text)
      put(step .. "/manifest.json", text)
      if type(record) == "table" then
        record.sha256 = nil
        record.sha256 = core.file.sha256(json.encode(record))
        put(step .. "/manifest.json", json.encode(record, { indent = true }) .. "\n")
      end
      checkpoint.open(step)
    end)
    assert.is_true(count > 250 and refused > count / 3, count .. " " .. refused)
  end)

  -- A checkpoint with another content of one file, sealed as if it had been written so.
  local function seal(step, name, text)
    put(step .. "/" .. name, text)
    local record = checkpoint.manifest(step)
    record.files[name] = { bytes = #text, sha256 = core.file.sha256(text) }
    record.sha256 = nil
    record.sha256 = core.file.sha256(json.encode(record))
    put(step .. "/manifest.json", json.encode(record, { indent = true }) .. "\n")
  end

  it("states, also in comparison with a good one", function()
    local step, good = folder .. "/step-000002", folder .. "/good"
    small.write(step)
    small.write(good)
    local whole = json.decode(core.file.read(step .. "/state.json"))
    local count, refused = read_all(whole, function(text)
      seal(step, "state.json", text)
      compare.checkpoints(good, step)
      compare.checkpoints(step, good)
    end)
    assert.is_true(count > 300 and refused > count / 3, count .. " " .. refused)
  end)

  it("histories, also in comparison with a good one", function()
    local step, good = folder .. "/step-000002", folder .. "/good"
    small.write(step)
    small.write(good)
    local state = json.decode(core.file.read(step .. "/state.json"))
    local first = core.file.read(step .. "/history.jsonl"):match("[^\n]*\n")
    local count, refused = read_all({ update = 2, tokens = 5, loss_sums = { 1, 2 },
                                      draws = { 7, 9 } }, function(text)
      local lines = first .. text .. "\n"
      state.history = core.file.sha256(lines)
      seal(step, "history.jsonl", lines)
      seal(step, "state.json", json.encode(state))
      compare.checkpoints(good, step)
      compare.checkpoints(step, good)
    end)
    assert.is_true(count > 80 and refused > 10, count .. " " .. refused)
  end)
end)
