-- The loop over a window's microbatches: what no_sync holds back, and which loops and steps are
-- refused, with the line that is wrong.

local core = require "marea.core"
local numeric = dofile "spec/support/numeric.lua"
local training = dofile "spec/support/training.lua"

local blamed = numeric.blamed
local world = require("marea.world").get()
local size = world:size()

-- Three microbatches of one item on every rank.
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

describe("no_sync", function()
  local function prepared()
    local session = toy()
    local window = session:window(1)
    session.driver:zero_grad()
    return session.driver, window, session
  end

  local put = "; put both into the same no_sync scope, or both outside"

  it("is read at the forward: a backward outside its scope is refused", function()
    local replica, window = prepared()
    local loss
    do
      local _ <close> = replica:no_sync()
      loss = replica:loss(window[1], window:weights(window[1]))
    end
    assert.equal("backward: the forward of this loss ran inside no_sync and its backward runs " ..
                 "outside" .. put, blamed(function() loss:backward() end))
    assert.equal(0, replica:gradients():total())
  end)

  it("does not hold back the reduction of a forward outside it", function()
    local replica, window = prepared()
    local loss = replica:loss(window[1], window:weights(window[1]))
    local _ <close> = replica:no_sync()
    assert.equal("backward: the forward of this loss ran outside no_sync and its backward runs " ..
                 "inside" .. put, blamed(function() loss:backward() end))
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
    assert.equal("backward: the forward of this loss ran inside no_sync and its backward runs " ..
                 "inside another" .. put, blamed(function() loss:backward() end))
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

  it("may nest to any depth: what lies inside belongs to the outermost", function()
    local replica, window = prepared()
    local function nested(depth, body)
      if depth == 0 then return body() end
      local _ <close> = replica:no_sync()
      return nested(depth - 1, body)
    end
    local before = world:ledger().all_reduce.calls
    nested(3, function()
      local inner = nested(20, function()
        return replica:loss(window[1], window:weights(window[1]))
      end)
      inner:backward()
      replica:loss(window[2], window:weights(window[2])):backward()
    end)
    assert.equal(before, world:ledger().all_reduce.calls)
    replica:loss(window[3], window:weights(window[3])):backward()
    assert.near(toy_gradient(), replica:gradients():get(1), 1e-14)
  end)
end)

describe("a window's loop", function()
  it("is reduced once, whatever the number of microbatches (B34)", function()
    local session = toy()
    local before = world:ledger().all_reduce.calls
    assert.near(toy_gradient(), training.run(session):get(1), 1e-14)
    assert.equal(before + 1, world:ledger().all_reduce.calls)
    assert.near(toy_gradient(), training.run(session):get(1), 1e-14)
  end)

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
    assert.equal("backward: these gradients were already reduced over the ranks; keep all " ..
                 "microbatches of a window but the last inside no_sync, and call zero_grad " ..
                 "before the next window",
                 blamed(function() session:accumulate(session:window(1)) end))
  end)

  it("that never reduces is refused at its end, and before a step", function()
    local session = toy(function(replica, window)
      replica:zero_grad()
      local _ <close> = replica:no_sync()
      each(replica, window, function(_, run) run() end)
    end)
    local never = "a step on gradients that were never reduced over the ranks: the last " ..
      "backward of a window must run outside no_sync"
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
    assert.equal("a step between the microbatches of a window: it must wait for the window's " ..
                 "last backward", blamed(function() session:accumulate(session:window(1)) end))
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
    session.driver:zero_grad()
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
