local fault = require "marea.fault"
local plan = require "marea.plan"

-- Ids 1 to 8 train, 9 validation, 10 test.
local corpus = {
  size = 10,
  sequence = function(_, id)
    return { id = id, split = id <= 8 and "train" or id == 9 and "validation" or "test" }
  end,
}
local c = { ranks = 2, updates = 2 }

local function good()
  return { { { { 1, 2 }, { 3 } }, { { 4, 5 } } }, { { { 1 } }, {} } }
end

local function refusal(steps, changes)
  local ok, raised = pcall(plan.check, steps, corpus, changes or c)
  assert.is_false(ok)
  return fault.of(raised)
end

local function assert_refused(expected, steps, changes)
  local message, code = refusal(steps, changes)
  assert.truthy(message:find(expected, 1, true), message)
  assert.equal(2, code)
end

describe("plan.check", function()
  it("accepts uneven ranks, empty microbatches and ranks without any", function()
    local steps = good()
    steps[2][1][2] = {}
    assert.equal(steps, plan.check(steps, corpus, c))
  end)

  it("accepts an id in several windows and more steps than updates", function()
    assert.has_no.errors(function() plan.check(good(), corpus, { ranks = 2, updates = 1 }) end)
  end)

  it("refuses ids that repeat on a rank, naming both places", function()
    local steps = good()
    steps[1][1][2][1] = 2
    assert_refused("step 1, rank 0, microbatch 2: expected ids that do not repeat within a " ..
                   "window, got 2, which is also in step 1, rank 0, microbatch 1", steps)
    steps = good()
    steps[1][2][1][2] = 4
    assert_refused("step 1, rank 1, microbatch 1: expected ids that do not repeat within a " ..
                   "window, got 4, which is also in this microbatch", steps)
  end)

  it("refuses ids that repeat across ranks", function()
    local steps = good()
    steps[1][2][1][1] = 3
    assert_refused("step 1, rank 1, microbatch 1: expected ids that do not repeat within a " ..
                   "window, got 3, which is also in step 1, rank 0, microbatch 2", steps)
  end)

  it("refuses unknown ids", function()
    for _, id in ipairs { 0, -1, 11 } do
      local steps = good()
      steps[2][1][1][1] = id
      assert_refused(("step 2, rank 0, microbatch 1: expected a sequence id from 1 to 10, got %d")
        :format(id), steps)
    end
  end)

  it("refuses validation and test ids", function()
    local steps = good()
    steps[1][2][1][1] = 9
    assert_refused("got 9, which is of the validation split", steps)
    steps[1][2][1][1] = 10
    assert_refused("got 10, which is of the test split", steps)
  end)

  it("refuses ids that are no integers", function()
    for _, case in ipairs { { 1.5, "got 1.5" }, { "1", 'got "1"' }, { 1.0, "got 1.0" },
                            { true, "got true" } } do
      local steps = good()
      steps[1][1][1][1] = case[1]
      assert_refused("step 1, rank 0, microbatch 1: expected a sequence id, an integer from 1 " ..
                     "to 10, " .. case[2], steps)
    end
  end)

  it("refuses missing ranks and missing steps", function()
    local steps = good()
    steps[2][2] = nil
    assert_refused("step 2: expected microbatches for 2 ranks, got 1", steps)
    assert_refused("step 1: expected microbatches for 3 ranks, got 2", good(),
                   { ranks = 3, updates = 2 })
    assert_refused("expected at least 5 steps (config.updates), got 2", good(),
                   { ranks = 2, updates = 5 })
  end)

  it("refuses what is no list", function()
    assert_refused("plan: expected a list, got nothing", nil)
    assert_refused("step 1, rank 1: expected a list, got a number", { { {}, 4 }, { {}, {} } })
    assert_refused("step 1, rank 0, microbatch 1: expected a list, got a number",
                   { { { 1 }, {} }, { {}, {} } })
    assert_refused("expected a list, got one with the key name", { name = {} })
    assert_refused("step 1: expected a list without holes", { { {}, nil, {} }, { {}, {} } })
  end)
end)

describe("a window of a plan", function()
  it("has one microbatch of zero sequences on a rank without any", function()
    assert.same({ {} }, plan.microbatches(good(), 2, 1))
    assert.same({ { 1, 2 }, { 3 } }, plan.microbatches(good(), 1, 0))
  end)
end)

describe("a plan's hash", function()
  it("is a chain: a longer plan with the same beginning has the shorter one's links", function()
    local hash, chain = plan.hash(good())
    local longer = good()
    longer[3] = { { { 7 } }, { { 8 } } }
    local longer_hash, longer_chain = plan.hash(longer)
    assert.equal(64, #hash)
    assert.equal(32, #chain)
    assert.are_not.equal(hash, longer_hash)
    assert.equal(chain, longer_chain:sub(1, #chain))
    assert.is_nil(plan.first_difference(chain, longer_chain))
  end)

  it("sees every change, also between ranks and microbatches", function()
    local _, chain = plan.hash(good())
    local moved = good()
    moved[2][2] = { { 6 } }
    assert.equal(2, plan.first_difference(chain, select(2, plan.hash(moved))))
    local regrouped = good()
    regrouped[1][1] = { { 1 }, { 2, 3 } }
    assert.equal(1, plan.first_difference(chain, select(2, plan.hash(regrouped))))
    local reordered = good()
    reordered[1][1][1] = { 2, 1 }
    assert.equal(1, plan.first_difference(chain, select(2, plan.hash(reordered))))
  end)
end)

describe("a plan on disk", function()
  local path

  before_each(function() path = os.tmpname() end)
  after_each(function() os.remove(path) end)

  it("reads back as written, empty ranks too", function()
    plan.write(path, good())
    local steps = plan.read(path)
    assert.same(good(), steps)
    assert.equal((plan.hash(good())), (plan.hash(steps)))
  end)

  it("is refused when it was altered or is no plan", function()
    plan.write(path, good())
    local file = assert(io.open(path))
    local text = file:read("a")
    file:close()
    for _, altered in ipairs { (text:gsub("%[1,2%]", "[1,6]")), text:sub(1, 40), "[]" } do
      file = assert(io.open(path, "w"))
      file:write(altered)
      file:close()
      local ok, raised = pcall(plan.read, path)
      local message, code = fault.of(raised)
      assert.is_false(ok)
      assert.equal(3, code)
      assert.equal(path, message:sub(1, #path))
    end
  end)
end)
