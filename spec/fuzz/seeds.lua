-- Writes what the fuzzers begin with, a folder for each reader:
--     build/bin/marea spec/fuzz/seeds.lua FOLDER
-- What they found is kept in spec/fuzz/corpus/READER.
local marea = require "marea"
local core = require "marea.core"
local json = require "marea.json"
local plan = require "marea.plan"
local small = dofile "spec/support/small_checkpoint.lua"

local root = ...

local function put(reader, name, text)
  core.file.make_folder(root .. "/" .. reader)
  core.file.write(("%s/%s/%s"):format(root, reader, name), text)
end

-- Under each way of reading, which the first byte chooses.
local function put_ways(reader, name, ways, text)
  for way = 0, ways - 1 do
    put(reader, ("%s-%d"):format(name, way), string.char(way) .. text)
  end
end

-- --- tensor files -----------------------------------------------------------------------------

core.file.make_folder(root .. "/tensors")
core.safetensors.write(root .. "/tensors/tensors.safetensors",
                       { { "w", core.ones({ 2, 3 }) }, { "ids", core.zeros({ 2 }, "i64") } },
                       { tide = "high" })
marea.corpus.symbols { seed = 1, train = 2, validation = 1, test = 1 }:write(
  root .. "/tensors/corpus.safetensors")

-- --- corpora ----------------------------------------------------------------------------------

put_ways("jsonl", "lines", 6, table.concat({
  '{"text": "ebb and flow", "split": "train", "book": "Moon", "cost": 1}',
  '{"text": "t\\u00ecde", "split": "validation", "book": "Sun", "cost": 2.5}',
  '{"text": "neap", "split": "test", "book": "Moon", "cost": -3e2}' }, "\n") .. "\n")
put_ways("jsonl", "text", 6, "ebb\nflow\n\nmoon\r\nté\n%\ntide\n")

-- --- plans, locks, records --------------------------------------------------------------------

plan.write(root .. "/plan.json", { { { { 1, 2 }, { 3 } }, { { 4 } } }, { {}, { { 5, 6 } } } })
put_ways("plan", "plan", 2, core.file.read(root .. "/plan.json"))
core.file.remove(root .. "/plan.json")
put("plan", "lock", "\2" .. json.encode(small.lock()))
put("plan", "record", "\3" .. json.encode {
  id = "1", update = 2, run = "tide", config = { updates = 2 }, outcome = "complete" } .. "\n" ..
  json.encode { update = 2, lr = 0.1, loss_per_token = 1.5 } .. "\n")

-- --- checkpoints ------------------------------------------------------------------------------

small.write(root .. "/step-000002")
for i, name in ipairs(small.files) do
  local text = core.file.read(root .. "/step-000002/" .. name)
  put("checkpoint", name, string.char(2 * i - 2) .. text)
  put("checkpoint", name .. "-sealed", string.char(2 * i - 1) .. text)
end
core.file.remove_folder(root, "step-000002")
