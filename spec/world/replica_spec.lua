-- Replicas on the ranks of this world: what they broadcast, when they reduce, what they refuse.

local core = require "marea.core"
local marea = require "marea"
local trainer = require "marea.trainer"
local training = dofile "spec/support/training.lua"

local world = require("marea.world").get()
local rank, size = world:rank(), world:size()

-- A window in which rank r has r % 2 + 2 microbatches, of 1, 2, 3 sequences.
local function uneven_plan()
  local counts = {}
  for r = 1, size do counts[r] = r % 2 == 1 and { 1, 2 } or { 1, 2, 3 } end
  return training.dealt(counts)
end

-- The head is tied to the embedding: a parameter that is used first and last.
local function small(options, overrides)
  local function model()
    return marea.nn.Transformer { vocabulary = 7, context = 16, width = 16, hidden = 32, heads = 2,
                                  layers = 1, tied = true }
  end
  return training.session(training.small({ steps = uneven_plan(), model = model }, overrides),
                          options)
end

describe("a replica's parameters", function()
  it("are rank 0's, whatever seed a rank began with", function()
    local session = small { seed = 20 + rank }
    assert.is_true(training.equal_on_all(world, session.model:values()))
    assert.equal(small({ seed = 20 }).model:values():hash(), session.model:values():hash())
  end)

  it("stay as they are without the broadcast, and the first update shows it", function()
    local session = small({ seed = 20 + rank, broadcast = false }, { dtype = "f64" })
    assert.equal(size == 1, training.equal_on_all(world, session.model:values()))
    local gradient, expected = training.run(session), training.reference(session).gradient
    local failing = core.compare(gradient, expected, training.gate).failing
    assert.equal(size == 1, failing == 0)
    assert.equal(size == 1, trainer.new(session):advance().parameter_spread == 0)
    assert.equal(0, trainer.new(small { seed = 20 + rank }):advance().parameter_spread)
  end)
end)

-- Parameters used by all ranks, by none, by rank 0 only, by the last rank only.
local Partly = marea.nn.class "spec.Partly"

function Partly:init()
  for _, name in ipairs { "all", "none", "first", "last" } do
    self:parameter(name, { 40 }, { value = 1 })
  end
end

function Partly:forward(batch)
  local total = self.all
  if rank == 0 then total = total:add(self.first:scale(2)) end
  if rank == size - 1 then total = total:add(self.last:scale(3)) end
  local losses = {}
  for row = 1, batch.rows do losses[row] = total:sum() end
  return losses[1]:reshape({ 1 }):concatenate { losses[2]:reshape { 1 } }
end

describe("parameters that some ranks do not use", function()
  it("join their bucket with zeros, in buckets of any size, alone or together", function()
    local counts, list = {}, {}
    for r = 1, size do
      counts[r] = { 1 }
      list[r] = { inputs = { 0, 0 }, targets = { 0, 0 }, split = "train" }
    end
    local recipe = training.recipe({
      corpus = marea.corpus.from { sequences = list, vocabulary = 1 },
      steps = training.dealt(counts), model = function() return Partly() end,
      loss = function(model, batch) return model(batch) end,
    }, { dtype = "f64" })
    for _, bytes in ipairs { 1, 600, 1 << 20 } do
      for _, overlap in ipairs { true, false } do
        local session = training.session(recipe, { bucket_bytes = bytes, overlap = overlap })
        training.run(session)
        for name, expected in pairs { all = 1, none = 0, first = 2 / size, last = 3 / size } do
          for _, value in ipairs(session.model.unit:parameter(name):gradient():values()) do
            assert.near(expected, value, 1e-15)
          end
        end
      end
    end
  end)
end)

describe("the reduction", function()
  it("happens once for each bucket at the last microbatch; no_sync sends nothing", function()
    local session = small({ bucket_bytes = 4096 })
    local buckets = session.driver.reducer:buckets()
    assert.is_true(#buckets > 2)
    local before = world:ledger()
    local window = session:window(1)
    local counted = world:ledger()
    assert.equal(before.all_gather.calls + (size > 1 and 1 or 0), counted.all_gather.calls)
    assert.same(before.all_reduce, counted.all_reduce)
    session.driver:begin_window(window)
    session.driver:zero_grad()
    for i, batch in ipairs(window) do
      local _ <close> = i < #window and session.driver:no_sync()
      local loss = session.driver:loss(batch, window:weights(batch))
      assert.same(counted, world:ledger())
      loss:backward()
      if i < #window then assert.same(counted, world:ledger()) end
    end
    session.driver:end_window()
    local reduced = world:ledger()
    assert.equal(counted.all_reduce.calls + #buckets, reduced.all_reduce.calls)
    assert.equal(counted.all_reduce.bytes + 4 * session.model:gradients():count(),
                 reduced.all_reduce.bytes)
    reduced.all_reduce = counted.all_reduce
    assert.same(counted, reduced)
  end)

  it("is all that an update sends, beside the count and one record of statistics", function()
    local session = small({ bucket_bytes = 4096 })
    local loop = trainer.new(session)
    local before = world:ledger()
    loop:advance()
    for kind, entry in pairs(world:ledger()) do
      local expected = kind == "all_reduce" and #session.driver.reducer:buckets() or
        kind == "all_gather" and (size > 1 and 2 or 1) or 0
      assert.equal(expected, entry.calls - before[kind].calls, kind)
    end
  end)

  it("has the same bits on all ranks, with or without overlap, in buckets of any size", function()
    for _, dtype in ipairs { "f32", "f64" } do
      local first
      for _, bytes in ipairs { 1, 3000, 1 << 20 } do
        for _, overlap in ipairs { true, false } do
          local session = small({ bucket_bytes = bytes, overlap = overlap }, { dtype = dtype })
          local gradient = training.run(session)
          first = first or gradient
          assert.is_true(training.equal_on_all(world, gradient))
          assert.equal(first:hash(), gradient:hash())
          assert.equal(first:hash(), training.run(session):hash())
        end
      end
      assert.is_true(first:total() ~= 0)
    end
  end)

  it("is cut by the list of parameters alone: from the last, closed once large enough", function()
    local unit = core.unit({ { name = "a", shape = { 10 } }, { name = "b", shape = { 40 } },
                             { name = "c", shape = { 1 } }, { name = "d", shape = { 32 } } }, "f32")
    local function buckets(bytes)
      local list = {}
      local reducer = core.reducer(unit, world.group, { bucket_bytes = bytes })
      for i, bucket in ipairs(reducer:buckets()) do list[i] = { bucket.first, bucket.past } end
      reducer:close()
      return list
    end
    -- offsets 0, 32, 96, 128 and an end at 160
    assert.same({ { 128, 160 }, { 96, 128 }, { 32, 96 }, { 0, 32 } }, buckets(1))
    assert.same({ { 128, 160 }, { 96, 128 }, { 32, 96 }, { 0, 32 } }, buckets(128))
    assert.same({ { 96, 160 }, { 32, 96 }, { 0, 32 } }, buckets(129))
    assert.same({ { 32, 160 }, { 0, 32 } }, buckets(257))
    assert.same({ { 0, 160 } }, buckets(1 << 20))
  end)
end)
