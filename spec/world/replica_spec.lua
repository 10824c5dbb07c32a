-- Replicas on the ranks of this world: what they broadcast, when they reduce, what they refuse.

local core = require "marea.core"
local fault = require "marea.fault"
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

local function small(options, overrides)
  return training.session(training.small({ steps = uneven_plan() }, overrides), options)
end

-- This rank's gradients summed and averaged over the ranks by hand.
local function toy(accumulate, overrides)
  local ranks = {}
  for r = 1, size do ranks[r] = { { { r } }, { { r + 1 } }, { { 2 * r } } } end
  return training.session(training.toy(ranks, { accumulate = accumulate }, overrides))
end

-- The mean over all items of that toy.
local function toy_gradient()
  local sum = 0
  for r = 1, size do sum = sum + r + r + 1 + 2 * r end
  return sum / (3 * size)
end

-- Message of what body raises; it must begin with a line of this file.
local function blamed(body)
  local ok, raised = pcall(body)
  assert(not ok, "nothing was raised")
  local message, code = fault.of(raised)
  assert.equal(1, code)
  local text = message:match("^[^:]*replica_spec%.lua:%d+: (.*)$")
  assert(text, "no line of this spec in front: " .. message)
  return text
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
    local counts = {}
    for r = 1, size do counts[r] = { 1 } end
    local recipe = training.recipe({
      corpus = marea.corpus.from {
        sequences = (function()
          local list = {}
          for i = 1, size do list[i] = { inputs = { 0, 0 }, targets = { 0, 0 }, split = "train" } end
          return list
        end)(), vocabulary = 1,
      },
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
  it("happens once for each bucket at the last microbatch, nothing is sent under no_sync", function()
    local session = small({ bucket_bytes = 4096 })
    local buckets = session.replica.reducer:buckets()
    assert.is_true(#buckets > 2)
    local before = world:ledger()
    local window = session:window(1)
    local counted = world:ledger()
    assert.equal(before.all_gather.calls + (size > 1 and 1 or 0), counted.all_gather.calls)
    assert.same(before.all_reduce, counted.all_reduce)
    session.driver:begin_window(window)
    session.replica:zero_grad()
    for i, batch in ipairs(window) do
      local _ <close> = i < #window and session.replica:no_sync()
      local loss = session.replica:loss(batch, window:weights(batch))
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

  it("divides by W once a window of three microbatches (B34)", function()
    local session = toy()
    local before = world:ledger().all_reduce.calls
    assert.near(toy_gradient(), training.run(session):get(1), 1e-14)
    assert.equal(before + 1, world:ledger().all_reduce.calls)
    assert.near(toy_gradient(), training.run(session):get(1), 1e-14)
  end)
end)

describe("no_sync", function()
  local function prepared()
    local session = toy()
    local window = session:window(1)
    session.replica:zero_grad()
    return session.replica, window, session
  end

  local put = "; put both into the same no_sync scope, or both outside"

  it("is read at the forward: a backward outside its scope is refused", function()
    local replica, window = prepared()
    local loss
    do
      local _ <close> = replica:no_sync()
      loss = replica:loss(window[1], window:weights(window[1]))
    end
    assert.equal("backward: the forward of this loss ran inside no_sync and its backward runs outside" ..
                 put, blamed(function() loss:backward() end))
    assert.equal(0, replica:gradients():total())
  end)

  it("does not hold back the reduction of a forward outside it", function()
    local replica, window = prepared()
    local loss = replica:loss(window[1], window:weights(window[1]))
    local _ <close> = replica:no_sync()
    assert.equal("backward: the forward of this loss ran outside no_sync and its backward runs inside" ..
                 put, blamed(function() loss:backward() end))
    assert.equal(0, replica:gradients():total())
  end)

  it("is one scope: a later one is another", function()
    local replica, window = prepared()
    local loss
    do
      local _ <close> = replica:no_sync()
      loss = replica:loss(window[1], window:weights(window[1]))
    end
    local _ <close> = replica:no_sync()
    assert.equal("backward: the forward of this loss ran inside no_sync and its backward runs inside " ..
                 "another" .. put, blamed(function() loss:backward() end))
  end)

  it("may nest, and the outer one stays", function()
    local replica, window = prepared()
    local before = world:ledger().all_reduce.calls
    do
      local _ <close> = replica:no_sync()
      do
        local _ <close> = replica:no_sync()
        replica:loss(window[1], window:weights(window[1])):backward()
      end
      replica:loss(window[2], window:weights(window[2])):backward()
    end
    assert.equal(before, world:ledger().all_reduce.calls)
    replica:loss(window[3], window:weights(window[3])):backward()
    assert.near(toy_gradient(), replica:gradients():get(1), 1e-14)
  end)
end)

describe("a window's loop", function()
  local function each(replica, window, body)
    for i, batch in ipairs(window) do
      body(i, function() replica:loss(batch, window:weights(batch)):backward() end)
    end
  end

  it("that reduces every microbatch is refused at the second (B34)", function()
    local session = toy(function(replica, window)
      replica:zero_grad()
      each(replica, window, function(_, run) run() end)
    end)
    assert.equal("backward: these gradients were already reduced over the ranks; keep all microbatches " ..
                 "of a window but the last inside no_sync, and call zero_grad before the next window",
                 blamed(function() session:accumulate(session:window(1)) end))
  end)

  it("that never reduces is refused at its end, and before a step", function()
    local session = toy(function(replica, window)
      replica:zero_grad()
      local _ <close> = replica:no_sync()
      each(replica, window, function(_, run) run() end)
    end)
    local never = "a step on gradients that were never reduced over the ranks: the last backward of a " ..
      "window must run outside no_sync"
    assert.equal(never, blamed(function() session:accumulate(session:window(1)) end))
    assert.equal(never, blamed(function() session.optimizer:step() end))
    assert.equal(1, session.model:values():get(1))
  end)

  it("that skips a microbatch is refused at its end", function()
    local session = toy(function(replica, window)
      replica:zero_grad()
      replica:loss(window[1], window:weights(window[1])):backward()
    end)
    assert.equal("accumulate ran 1 backwards for the 3 microbatches of the window",
                 blamed(function() session:accumulate(session:window(1)) end))
  end)

  it("that forgets zero_grad is refused in the next window", function()
    local session = toy(function(replica, window)
      each(replica, window, function(i, run)
        local _ <close> = i < #window and replica:no_sync()
        run()
      end)
    end)
    session:accumulate(session:window(1))
    assert.matches("^backward: these gradients were already reduced",
                   blamed(function() session:accumulate(session:window(1)) end))
  end)

  it("that steps between microbatches is refused", function()
    local session
    session = toy(function(replica, window)
      replica:zero_grad()
      each(replica, window, function(i, run)
        local _ <close> = i < #window and replica:no_sync()
        run()
        session.optimizer:step()
      end)
    end)
    assert.equal("a step between the microbatches of a window: it must wait for the window's last " ..
                 "backward", blamed(function() session:accumulate(session:window(1)) end))
    assert.equal(1, session.model:values():get(1))
    assert.equal(0, session.optimizer:steps())
  end)

  it("is followed by a step; before any, or after zero_grad, there is none", function()
    local session = toy()
    local clear = "a step on gradients that no backward has written"
    assert.equal(clear, blamed(function() session.optimizer:step() end))
    training.run(session)
    session.optimizer:step()
    assert.near(1 - 0.1 * toy_gradient(), session.model:values():get(1), 1e-14)
    session.replica:zero_grad()
    assert.equal(clear, blamed(function() session.optimizer:step() end))
  end)

  it("is begun once before it ends, and a model has one replica", function()
    local session = toy()
    assert.equal("these parameters already belong to a replica", blamed(function()
      core.reducer(session.model.unit, world.group)
    end))
    session.driver:begin_window(session:window(1))
    assert.equal("a window is begun while the last one is still open",
                 blamed(function() session.driver:begin_window({}) end))
  end)
end)
