local fault = require "marea.fault"
local sampler = require "marea.sampler"

-- `short` rows of 10 inputs with ids from 1, then `long` rows of 100 inputs.
local function rows_of(short, long)
  local rows = {}
  for i = 1, short + long do
    rows[i] = { id = i, split = "train", length = i <= short and 10 or 100 }
  end
  return rows
end

local function config_of(changes)
  local c = { seed = 20, ranks = 2, updates = 6, accumulation = 2, batch_size_per_rank = 3 }
  for key, value in pairs(changes or {}) do c[key] = value end
  return c
end

local function flat(microbatches, into)
  into = into or {}
  for _, ids in ipairs(microbatches) do table.move(ids, 1, #ids, #into + 1, into) end
  return into
end

local function ids_of_window(window)
  local ids = {}
  for _, microbatches in ipairs(window) do flat(microbatches, ids) end
  return ids
end

local function assert_no_repetition(plan)
  for step, window in ipairs(plan) do
    local seen = {}
    for _, id in ipairs(ids_of_window(window)) do
      assert.is_nil(seen[id], ("step %d holds %d twice"):format(step, id))
      seen[id] = true
    end
  end
end

describe("sampler.by_length", function()
  it("gives even ranks short sequences and odd ranks long ones", function()
    local plan = sampler.by_length(rows_of(40, 40), config_of { ranks = 4 })
    assert.equal(6, #plan)
    for _, window in ipairs(plan) do
      assert.equal(4, #window)
      for index, microbatches in ipairs(window) do
        assert.equal(2, #microbatches)
        for _, ids in ipairs(microbatches) do
          assert.equal(3, #ids)
          for _, id in ipairs(ids) do assert.equal(index % 2 == 1, id <= 40) end
        end
      end
    end
    assert_no_repetition(plan)
  end)

  it("takes the limit itself as short", function()
    local rows = rows_of(6, 6)
    for _, row in ipairs(rows) do row.length = row.id <= 6 and 64 or 65 end
    local plan = sampler.by_length(rows, config_of { updates = 1 })
    for _, id in ipairs(flat(plan[1][1])) do assert.is_true(id <= 6) end
    for _, row in ipairs(rows) do row.length = row.id <= 6 and 8 or 9 end
    plan = sampler.by_length(rows, config_of { updates = 1 }, { limit = 8 })
    for _, id in ipairs(flat(plan[1][1])) do assert.is_true(id <= 6) end
  end)

  it("uses every sequence of a class once before any twice", function()
    local plan = sampler.by_length(rows_of(18, 12), config_of { updates = 3 })
    local short = {}
    for _, window in ipairs(plan) do flat(window[1], short) end
    table.sort(short)
    for i = 1, 18 do assert.equal(i, short[i]) end
    assert.equal(18, #short)
  end)

  it("repeats no id within a window where an epoch ends in one", function()
    for _, short in ipairs { 6, 7, 8, 11 } do
      local plan = sampler.by_length(rows_of(short, short), config_of { updates = 40 })
      assert_no_repetition(plan)
    end
    assert_no_repetition(sampler.by_length(rows_of(13, 6), config_of { ranks = 3, updates = 40 }))
  end)

  it("plays rank 0 alone with one rank", function()
    local plan = sampler.by_length(rows_of(6, 0), config_of { ranks = 1 })
    assert.equal(1, #plan[1])
  end)

  it("makes a longer plan begin as a shorter one", function()
    local rows = rows_of(20, 20)
    local short = sampler.by_length(rows, config_of { updates = 5 })
    local long = sampler.by_length(rows, config_of { updates = 9 })
    assert.same(short, table.move(long, 1, 5, 1, {}))
  end)

  it("depends on the seed alone, not on what was drawn before", function()
    local rows = rows_of(20, 20)
    local first = sampler.by_length(rows, config_of())
    assert.same(first, sampler.by_length(rows, config_of()))
    assert.are_not.same(first, sampler.by_length(rows, config_of { seed = 21 }))
  end)

  it("refuses options that it does not have", function()
    local ok, raised = pcall(sampler.by_length, rows_of(40, 40), config_of(), { limits = 8 })
    assert.is_false(ok)
    assert.truthy(fault.of(raised):find('did you mean "limit"?', 1, true))
    ok, raised = pcall(sampler.by_length, rows_of(40, 40), config_of(), { limit = 0 })
    assert.is_false(ok)
    assert.truthy(fault.of(raised):find("limit must be an integer of at least 1, got 0", 1, true))
  end)

  it("refuses a class that cannot fill a window, with the numbers", function()
    local ok, raised = pcall(sampler.by_length, rows_of(40, 5), config_of { ranks = 2 })
    local message, code = fault.of(raised)
    assert.is_false(ok)
    assert.equal(2, code)
    assert.truthy(message:find("draws 6 different long", 1, true))
    assert.truthy(message:find("has 5", 1, true))
    ok, raised = pcall(sampler.by_length, rows_of(11, 40), config_of { ranks = 3 })
    assert.is_false(ok)
    assert.truthy(fault.of(raised):find("draws 12 different short", 1, true))
  end)
end)

describe("sampler.shuffled", function()
  it("holds every row once an epoch and keeps the last short window", function()
    local c = config_of { updates = 6 }
    local plan = sampler.shuffled(rows_of(15, 14), c) -- 29 = 12 + 12 + 5
    for epoch = 0, 1 do
      local ids = {}
      for step = 1, 3 do
        for _, id in ipairs(ids_of_window(plan[epoch * 3 + step])) do ids[#ids + 1] = id end
      end
      table.sort(ids)
      assert.equal(29, #ids)
      for i = 1, 29 do assert.equal(i, ids[i]) end
    end
    assert.same({ 3, 2 }, { #flat(plan[3][1]), #flat(plan[3][2]) })
    assert.equal(1, #plan[3][1])
    assert.are_not.same(plan[1], plan[4])
  end)

  it("leaves ranks without a microbatch rather than repeat anything", function()
    local plan = sampler.shuffled(rows_of(1, 0), config_of { ranks = 3, updates = 2 })
    assert.same({ { { { 1 } }, {}, {} }, { { { 1 } }, {}, {} } }, plan)
  end)

  it("fills microbatches in order", function()
    local plan = sampler.shuffled(rows_of(12, 0), config_of { updates = 1 })
    for _, microbatches in ipairs(plan[1]) do
      assert.same({ 3, 3 }, { #microbatches[1], #microbatches[2] })
    end
  end)

  it("refuses an empty split", function()
    local ok, raised = pcall(sampler.shuffled, {}, config_of())
    assert.is_false(ok)
    assert.equal(2, select(2, fault.of(raised)))
  end)
end)
