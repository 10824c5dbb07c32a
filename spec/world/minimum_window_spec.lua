-- The published window on two ranks, through the replica: every component under three objectives,
-- with both reductions, which agree in every bit.

local core = require "marea.core"
local golden = dofile "spec/support/golden_window.lua"
local training = dofile "spec/support/training.lua"

local world = require("marea.world").get()
local size = world:size()

local function gradient(objective, reduction, dtype)
  local session = golden.session { objective = objective, reduction = reduction, dtype = dtype }
  return training.run(session), session.model
end

describe("the golden window on two ranks", function()
  for _, objective in ipairs(golden.objectives) do
    it("has the published gradient under " .. objective .. " with either reduction", function()
      if size ~= 2 then return pending "needs two ranks" end
      local mean, model = gradient(objective, "mean", "f64")
      local found = core.compare(mean, golden.gradient(model, objective),
                                 { absolute = 1e-9, relative = 1e-7 })
      assert.equal(0, found.failing)
      assert.is_true(found.dot_bb > 0)
      assert.equal(mean:hash(), gradient(objective, "sum", "f64"):hash())
    end)
  end

  it("is within 1e-7 of f64 in f32, with either reduction the same bits", function()
    if size ~= 2 then return pending "needs two ranks" end
    local mean = gradient("global_token", "mean", "f32")
    local found = core.compare(mean, gradient("global_token", "mean", "f64"), { absolute = 1e-7 })
    assert.equal(0, found.failing)
    assert.equal(mean:hash(), gradient("global_token", "sum", "f32"):hash())
  end)
end)

-- Twelve sequences over the ranks of this world in uneven microbatches.
local function uneven_plan()
  local counts = {}
  for r = 1, size do counts[r] = { r, (r % 3) + 1 } end
  return training.dealt(counts)
end

describe("the reductions mean and sum", function()
  for _, dtype in ipairs { "f32", "f64" } do
    for _, objective in ipairs(golden.objectives) do
      it(("give one gradient in %s under %s"):format(dtype, objective), function()
        local flat = {}
        for _, reduction in ipairs { "mean", "sum" } do
          local session = training.session(training.small(
            { steps = uneven_plan() },
            { dtype = dtype, objective = objective, reduction = reduction }))
          flat[reduction] = training.run(session)
        end
        assert.is_true(flat.mean:hash() ~= core.zeros(flat.mean:shape(), dtype):hash())
        if size == 3 then
          local gate = dtype == "f32" and { absolute = 1e-7, relative = 1e-5 } or training.gate
          assert.equal(0, core.compare(flat.mean, flat.sum, gate).failing)
        else
          assert.equal(flat.mean:hash(), flat.sum:hash())
        end
      end)
    end
  end
end)
