local fault = require "marea.fault"
local plan_of = require "marea.plan"
local sampler = require "marea.sampler"
local scratch = dofile "spec/support/scratch.lua"

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

  -- How many microbatches each rank has in each window.
  local function shapes(count, changes, given)
    local list = {}
    local c = config_of { ranks = 1, accumulation = 4, batch_size_per_rank = 1 }
    for key, value in pairs(changes) do c[key] = value end
    for step, window in ipairs(sampler.shuffled(rows_of(count, 0), c, given)) do
      list[step] = {}
      for rank, microbatches in ipairs(window) do list[step][rank] = #microbatches end
    end
    return list
  end

  it("keeps the short last window of an epoch, which ends with it (B13, B43)", function()
    assert.same({ { 4 }, { 4 }, { 2 } }, shapes(10, { updates = 3 }))
    assert.same({ { 3 } }, shapes(3, { updates = 1 }))
    assert.same({ { 4 }, { 3 }, { 4 }, { 3 } }, shapes(7, { updates = 4 }))
    assert.same({ { 4 }, { 4 }, { 4 }, { 4 } }, shapes(12, { updates = 4 }))
    assert.same({ { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 0 } },
                shapes(7, { ranks = 2, accumulation = 1, updates = 4 }))
  end)

  it("keeps or drops what is left over on all ranks alike (B25)", function()
    local changes = { ranks = 4, accumulation = 1, batch_size_per_rank = 2, updates = 4 }
    local rows, c = rows_of(14, 0), config_of(changes)
    local kept, dropped = sampler.shuffled(rows, c, { last = "keep" }),
                          sampler.shuffled(rows, c, { last = "drop" })
    local function sizes(plan)
      local list = {}
      for step, window in ipairs(plan) do
        list[step] = {}
        for rank, microbatches in ipairs(window) do list[step][rank] = #flat(microbatches) end
      end
      return list
    end
    assert.same({ { 2, 2, 2, 2 }, { 2, 2, 1, 1 }, { 2, 2, 2, 2 }, { 2, 2, 1, 1 } }, sizes(kept))
    assert.same({ { 2, 2, 2, 2 }, { 2, 2, 2, 2 }, { 2, 2, 2, 2 }, { 2, 2, 2, 2 } },
                sizes(dropped))
    assert.same({ kept[1], kept[3] }, { dropped[1], dropped[2] }) -- the same epochs
    assert.same(kept, sampler.shuffled(rows, c))
  end)

  it("has an order of its own in every epoch (B22)", function()
    local plan = sampler.shuffled(rows_of(6, 0), config_of {
      ranks = 1, accumulation = 1, batch_size_per_rank = 2, updates = 12 })
    local orders = {}
    for epoch = 0, 3 do
      local ids = {}
      for step = 1, 3 do flat(plan[epoch * 3 + step][1], ids) end
      orders[table.concat(ids, " ")] = true
      table.sort(ids)
      assert.same({ 1, 2, 3, 4, 5, 6 }, ids)
    end
    local different = 0
    for _ in pairs(orders) do different = different + 1 end
    assert.equal(4, different)
  end)

  it("refuses to drop everything, and options that it does not have", function()
    for given, expected in pairs {
      [{ last = "drop" }] = "the 5 training sequences do not fill one window",
      [{ last = "some" }] = 'last must be "keep" or "drop", got some',
      [{ lats = "keep" }] = 'did you mean "last"?',
    } do
      local ok, raised = pcall(sampler.shuffled, rows_of(5, 0), config_of(), given)
      assert.is_false(ok)
      local message, code = fault.of(raised)
      assert(message:find(expected, 1, true), message)
      assert.equal(2, code)
    end
  end)
end)

describe("sampler.token_budget", function()
  -- Rows with so many tokens each, of twice as many inputs.
  local function rows_with(...)
    local rows = {}
    for i, tokens in ipairs { ... } do
      rows[i] = { id = i, split = "train", tokens = tokens, length = 2 * tokens }
    end
    return rows
  end

  local rows = rows_with(3, 9, 4, 1, 7, 2, 8, 5, 6, 2, 3, 4)

  local function tokens_in(ids, measure)
    local sum = 0
    for _, id in ipairs(ids) do sum = sum + rows[id][measure or "tokens"] end
    return sum
  end

  -- Asserts that each epoch holds every id once, in however many windows.
  local function assert_epochs(plan, count)
    local seen, drawn = {}, 0
    for _, window in ipairs(plan) do
      for _, id in ipairs(ids_of_window(window)) do
        assert.is_nil(seen[id])
        seen[id], drawn = true, drawn + 1
      end
      if drawn == count then seen, drawn = {}, 0 end
    end
  end

  it("gives each rank as many sequences as fit, in the order of the epoch", function()
    local c = config_of { updates = 9, batch_size_per_rank = 2 }
    local plan = sampler.token_budget(rows, c, { tokens = 12 })
    assert_epochs(plan, #rows)
    local counts = {}
    for step, window in ipairs(plan) do
      for rank, microbatches in ipairs(window) do
        local ids = flat(microbatches)
        assert.is_true(tokens_in(ids) <= 12)
        for m, list in ipairs(microbatches) do
          assert.is_true(#list == 2 or m == #microbatches and #list > 0)
        end
        counts[#microbatches] = true
        -- what comes next would not have fitted, unless the epoch was over
        local following = flat(window[rank + 1] or plan[step + 1] and plan[step + 1][1] or {})
        if following[1] and window[rank + 1] then
          assert.is_true(tokens_in(ids) + rows[following[1]].tokens > 12)
        end
      end
    end
    assert.is_true(counts[1] and counts[2]) -- ranks have different numbers of microbatches
  end)

  it("fills every microbatch instead, where that is asked for", function()
    local plan = sampler.token_budget(rows, config_of { updates = 6 },
                                      { tokens = 10, per = "microbatch" })
    assert_epochs(plan, #rows)
    for _, window in ipairs(plan) do
      for _, microbatches in ipairs(window) do
        assert.is_true(#microbatches <= 2)
        for _, ids in ipairs(microbatches) do assert.is_true(tokens_in(ids) <= 10) end
      end
    end
    assert.same({ 2, 2 }, { #plan[1][1], #plan[1][2] })
  end)

  it("measures inputs where those are given", function()
    local plan = sampler.token_budget(rows, config_of { updates = 6 }, { inputs = 18 })
    for _, window in ipairs(plan) do
      for _, microbatches in ipairs(window) do
        assert.is_true(tokens_in(flat(microbatches), "length") <= 18)
      end
    end
    assert.same(plan, sampler.token_budget(rows, config_of { updates = 6 }, { tokens = 9 }))
  end)

  it("keeps or drops a short last window", function()
    local one = rows_with(4, 4, 4, 4, 4)
    local c = config_of { updates = 2, batch_size_per_rank = 1 }
    local kept = sampler.token_budget(one, c, { tokens = 8 })
    assert.same({ 2, 2 }, { #kept[1][1], #kept[1][2] })
    assert.same({ 1, 0 }, { #kept[2][1], #kept[2][2] })
    local dropped = sampler.token_budget(one, c, { tokens = 8, last = "drop" })
    assert.same({ 2, 2 }, { #dropped[2][1], #dropped[2][2] })
    -- four fill both ranks to the brim: nothing is dropped
    local brim = sampler.token_budget(rows_with(4, 4, 4, 4), c, { tokens = 8, last = "drop" })
    assert.same({ 2, 2 }, { #brim[2][1], #brim[2][2] })
    local ok, raised = pcall(sampler.token_budget, one, c, { tokens = 80, last = "drop" })
    assert.is_false(ok)
    assert.truthy(fault.of(raised):find("do not fill one window", 1, true))
  end)

  it("refuses what never fits, and budgets that are none", function()
    for given, expected in pairs {
      [{ tokens = 8 }] = "sequence 2 has 9 tokens, more than the budget of 8",
      [{ inputs = 17 }] = "sequence 2 has 18 inputs, more than the budget of 17",
      [{}] = "expects a budget, either tokens = n or inputs = n",
      [{ tokens = 9, inputs = 9 }] = "expects a budget",
      [{ tokens = 0 }] = "tokens must be an integer of at least 1, got 0",
      [{ tokens = 9, per = "window" }] = 'per must be "rank" or "microbatch", got window',
      [{ token = 9 }] = 'did you mean "tokens"?',
    } do
      local ok, raised = pcall(sampler.token_budget, rows, config_of(), given)
      assert.is_false(ok)
      local message, code = fault.of(raised)
      assert(message:find(expected, 1, true), message)
      assert.equal(2, code)
    end
  end)
end)

describe("sampler.from_file", function()
  local plan = { { { { 1, 2 }, { 3 } }, { { 4 } } }, { { { 5 } }, {} } }

  local function read(text, written)
    local folder <close> = scratch.folder()
    local path = folder.path .. "/plan.json"
    if written then plan_of.write(path, written) else scratch.write(path, text) end
    local ok, found = pcall(sampler.from_file, path)
    if ok then return found end
    return nil, fault.of(found)
  end

  it("reads what a run wrote, and the same steps from other JSON", function()
    assert.same(plan, (read(nil, plan)))
    assert.same(plan, (read '{"steps": [[[[1,2],[3]],[[4]]], [[[5]],[]]]}'))
    assert.same(plan, (read "[[[[1,2],[3]],[[4]]], [[[5]],[]]]"))
  end)

  it("refuses one that was altered, code 3, and what is no plan or not there, code 2", function()
    local folder <close> = scratch.folder()
    local path = folder.path .. "/plan.json"
    plan_of.write(path, plan)
    scratch.write(path, (scratch.read(path):gsub("%[4%]", "[6]")))
    local ok, raised = pcall(sampler.from_file, path)
    assert.is_false(ok)
    local message, code = fault.of(raised)
    assert.truthy(message:find("the plan was altered: expected hash", 1, true), message)
    assert.equal(3, code)
    for text, expected in pairs { ["[[["] = "no plan: ", ["[]"] = "no plan: it has no steps",
                                  ['{"stepz": []}'] = "no plan: it has no steps",
                                  ["7"] = "no plan: it has no steps" } do
      local _, problem, other = read(text)
      assert(problem:find("/plan.json: " .. expected, 1, true), problem)
      assert.equal(2, other)
    end
    ok, raised = pcall(sampler.from_file, folder.path .. "/none.json")
    assert.is_false(ok)
    message, code = fault.of(raised)
    assert.truthy(message:find("there is no file", 1, true))
    assert.equal(2, code)
  end)
end)
