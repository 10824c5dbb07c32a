-- Parity of every recipe on two ranks that share a device: the one that was asked for (marea test
-- --device NAME), or a GPU of the processor where one was built. The models and windows are small;
-- plans, objectives and loops are the recipes' own.

local device = require "marea.device"
local json = require "marea.json"
local launch = require "marea.launch"
local cuda = dofile "spec/support/cuda.lua"
local scratch = dofile "spec/support/scratch.lua"

local asked = device.asked()
local set = not asked and cuda.variables { MAREA_CUDA_DEVICES = "1" } or nil

-- What makes a recipe small; recipes/minimum.lua is in device_training_spec.lua.
local recipes = {
  by_hand = { "batch_size_per_rank=1", "accumulation=1" },
  documents = { "width=16", "layers=1", "budget=300" },
  exercise = {},
  gpt = {},
  prompts = { "width=16", "layers=1", "batch_size_per_rank=1" },
  verses = { "width=16", "layers=1", "batch_size_per_rank=1" },
}

describe("on a device that two ranks share", function()
  if not asked and not cuda.host then
    return pending "was not built for the processor (-DMAREA_CUDA_HOST=ON)"
  end

  it("every recipe has its case", function()
    local found, _, listed = {}, scratch.shell "ls recipes/*.lua"
    for path in listed:gmatch "[^\n]+" do
      local name = path:match "^recipes/(.*)%.lua$"
      assert(name == "minimum" or recipes[name], path)
      found[name] = true
    end
    for name in pairs(recipes) do assert(found[name], name) end
  end)

  for name, config in pairs(recipes) do
    it(name .. " passes parity", function()
      local folder <close> = scratch.folder()
      local argv = table.move(config, 1, #config, 3, { "parity", ("recipes/%s.lua"):format(name) })
      for _, word in ipairs { "--device", asked or "cuda", "--share-gpu", "--json", "--outputs",
                              folder.path } do
        argv[#argv + 1] = word
      end
      local code, output, errors = launch.run({ ranks = 2, threads = 1, set = set,
                                                time_limit = 300 }, argv)
      assert.equal(0, code, errors .. output)
      local report = json.decode(output)
      assert.same({ 0, 0 }, { report.f32.failing, report.f64.failing })
      assert.is_true(report.pass and report.controls_pass)
    end)
  end
end)
