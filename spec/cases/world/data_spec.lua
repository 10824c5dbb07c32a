-- Public cases of data: ranks get numbers of batches that go together.

local marea = require "marea"
local cases = dofile "spec/support/cases.lua"
local training = dofile "spec/support/training.lua"

local check = cases.check

-- By construction: a window is dealt out as a whole, kept or dropped on all ranks alike, and its
-- position is one number.
describe("B25: 14 items on four ranks, in microbatches of two", function()
  local function plan_of(last, updates)
    local list = {}
    for i = 1, 14 do list[i] = { id = i } end
    return marea.sampler.shuffled(list, { seed = 20, ranks = 4, accumulation = 1, updates = updates,
                                          batch_size_per_rank = 2 }, { last = last })
  end

  local function counts(window)
    local batches, items = {}, {}
    for r, microbatches in ipairs(window) do
      batches[r], items[r] = #microbatches, 0
      for _, ids in ipairs(microbatches) do items[r] = items[r] + #ids end
    end
    return batches, items
  end

  it("kept: one full step, and one of the six that are left; the position is 14", function()
    local steps = plan_of("keep", 3)
    local batches, items = counts(steps[1])
    assert.same({ { 1, 1, 1, 1 }, { 2, 2, 2, 2 } }, { batches, items })
    batches, items = counts(steps[2])
    assert.same({ { 1, 1, 1, 1 }, { 2, 2, 1, 1 } }, { batches, items })
    local seen, used = {}, 0
    for step = 1, 2 do
      for _, microbatches in ipairs(steps[step]) do
        for _, ids in ipairs(microbatches) do
          for _, id in ipairs(ids) do
            assert.is_nil(seen[id])
            seen[id], used = true, used + 1
          end
        end
      end
    end
    check(14, used, { { 48, "positions 16 16 8 8" }, { 12, "short batches dropped" } })
    assert.same({ 2, 2, 2, 2 }, select(2, counts(steps[3]))) -- the next epoch
  end)

  it("dropped: the six are left out on all ranks", function()
    local steps = plan_of("drop", 3)
    for step = 1, 3 do
      assert.same({ { 1, 1, 1, 1 }, { 2, 2, 2, 2 } }, { counts(steps[step]) })
    end
  end)

  it("the short step has N = 6 on all ranks, as one process has it", function()
    local steps = plan_of("keep", 2)
    local items = {}
    for i = 1, 14 do items[i] = { i } end
    local toy = training.toy({ { items } }, { steps = steps }, { updates = 2, ranks = 4 })
    local session = cases.session(toy, cases.alone())
    local sum = 0
    for _, microbatches in ipairs(steps[2]) do
      for _, ids in ipairs(microbatches) do
        for _, id in ipairs(ids) do sum = sum + id end
      end
    end
    for _, found in ipairs(cases.gradients(toy, 2)) do
      check(sum / 6, found[2], { { sum / 8, "N of a full step" } })
    end
    local window = require("marea.window").new(session, 2, 3)
    assert.same({ 6, { 2, 2, 1, 1 } }, { window.tokens, window.rank_tokens })
  end)
end)
