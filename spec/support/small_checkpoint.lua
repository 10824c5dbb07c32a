-- A checkpoint of a few hundred bytes a file, made without a run.

local checkpoint = require "marea.checkpoint"
local core = require "marea.core"
local history = require "marea.history"

local small = {}

--- The files of a checkpoint.
small.files = { "history.jsonl", "manifest.json", "optimizer.safetensors", "parameters.safetensors",
                "state.json" }

local function hash(text) return core.file.sha256(text) end

--- A lock as a recipe of two ranks has it.
---@return marea.Lock
function small.lock()
  return { corpus = hash "corpus", accepted = {},
           plan = { ranks = 2, steps = 2, hash = hash "plan", chain = hash("plan"):sub(1, 32) },
           config = { values = { lr = 0.1 }, hash = hash "config" },
           files = { { name = "tide.lua", sha256 = hash "tide" } } }
end

--- Writes the checkpoint of update 2 of a run.
---@param folder string
---@param run? string its id
---@param update? integer (default 2)
---@param shift? number added to the first value of each part (default 0)
function small.write(folder, run, update, shift)
  shift = shift or 0
  local lines = history.new()
  for u = 1, update or 2 do
    lines:add { update = u, tokens = 5, loss_sums = { 1.5, 2.25 }, draws = { 7, 8 } }
  end
  checkpoint.write(folder, {
    run = run or "0123456789abcdef",
    parameters = { { "weight", core.from({ 1 + shift, 2, 3, 4, 5, 6 }, "f32", { 2, 3 }) },
                   { "bias", core.from({ -1, 0.5, 8 }, "f32") } },
    optimizer = { { "m.weight", core.full({ 2, 3 }, shift) }, { "m.bias", core.ones({ 3 }) } },
    optimizer_metadata = { kind = "marea optimizer", optimizer = "sgd", steps = "2" },
    state = { update = update or 2, world = 2, streams = { "philox 20 1000 2", "philox 20 1001 2" },
              microbatches = { 2, 2 }, sequences = { 4, 4 }, lock = small.lock() },
    history = lines,
  })
end

return small
