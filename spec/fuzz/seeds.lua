-- Writes a small tensor file and a small corpus into a folder, for the fuzzer to begin with:
--     ./marea spec/fuzz/seeds.lua FOLDER
local marea = require "marea"
local core = require "marea.core"

local folder = ...
core.safetensors.write(folder .. "/tensors.safetensors",
                       { { "w", core.ones({ 2, 3 }) }, { "ids", core.zeros({ 2 }, "i64") } },
                       { tide = "high" })
marea.corpus.symbols { seed = 1, train = 2, validation = 1, test = 1 }:write(
  folder .. "/corpus.safetensors")
