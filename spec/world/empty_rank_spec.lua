-- Ranks that have nothing to train on in a window: without microbatches, with masked ones only, in
-- every placement; and windows in which no rank has anything.

local core = require "marea.core"
local fault = require "marea.fault"
local training = dofile "spec/support/training.lua"

local world = require("marea.world").get()
local rank, size = world:rank(), world:size()

-- Sequences of the small corpus; the last two have no targets at all.
local corpus = (function()
  local stream, list = core.stream(11, 1), {}
  for i = 1, 24 do
    local inputs, targets = {}, {}
    for j = 1, 1 + stream:integer(8) do
      inputs[j] = stream:integer(7) - 1
      targets[j] = i > 22 and -100 or stream:integer(7) - 1
    end
    list[i] = { inputs = inputs, targets = targets, split = "train" }
  end
  return require("marea").corpus.from { sequences = list, vocabulary = 7, pad = 0 }
end)()
local masked = { 23, 24 }

-- What rank number `r` may hold: two microbatches, none, one of no sequences, masked ones only.
local function full(r) return { { 4 * r + 1, 4 * r + 2 }, { 4 * r + 3 } } end
local kinds = {
  full = full,
  ["no microbatch"] = function() return {} end,
  ["a microbatch of no sequences"] = function() return { {} } end,
  ["masked ones only"] = function() return { { masked[1] }, { masked[2] } } end,
  ["masked and full ones"] = function(r) return { { masked[1] }, { 4 * r + 1 }, {} } end,
}

local function placed(kind_of_rank)
  local step = {}
  for r = 0, size - 1 do step[r + 1] = kinds[kind_of_rank(r)](r) end
  return { step }
end

local function session_of(steps, overrides)
  local config = { dtype = "f64" }
  for key, value in pairs(overrides or {}) do config[key] = value end
  return training.session(training.small({ corpus = corpus, steps = steps }, config))
end

local function assert_equal_to_one_process(steps, what)
  for _, case in ipairs { { "global_token", "mean" }, { "mean_of_means", "mean" },
                          { "per_sequence", "sum" } } do
    local objective, reduction = table.unpack(case)
    local session = session_of(steps, { objective = objective, reduction = reduction })
    local gradient = training.run(session)
    assert.is_true(training.equal_on_all(world, gradient))
    local found = core.compare(gradient, training.reference(session).gradient, training.gate)
    assert(found.failing == 0 and found.dot_bb > 0,
           ("%s, %s: %d fail"):format(what, objective, found.failing))
  end
end

describe("a rank with nothing in a window", function()
  for _, kind in ipairs { "no microbatch", "a microbatch of no sequences", "masked ones only",
                          "masked and full ones" } do
    it("has " .. kind .. ", in every place: the gradient is that of one process", function()
      for place = size > 3 and size - 1 or 0, size - 1 do
        if size > 1 or kind == "masked and full ones" then
          assert_equal_to_one_process(placed(function(r)
            return r == place and kind or "full"
          end), ("%s on rank %d"):format(kind, place))
        end
      end
    end)
  end

  it("may be all but one, of every kind at once", function()
    for place = 0, size - 1 do
      assert_equal_to_one_process(placed(function(r)
        if r == place then return "full" end
        return (r + place) % 2 == 0 and "masked ones only" or "no microbatch"
      end), ("only rank %d has tokens"):format(place))
    end
  end)

  it("takes part in as many collectives as others", function()
    local session = session_of(placed(function(r) return r == 0 and "full" or "no microbatch" end))
    local before = world:ledger()
    training.run(session)
    local after, calls = world:ledger(), {}
    for _, kind in ipairs { "all_gather", "all_reduce", "broadcast", "barrier" } do
      calls[#calls + 1] = after[kind].calls - before[kind].calls
    end
    assert.is_true(training.equal_on_all(world, core.from(calls, "i64")))
  end)
end)

-- Asserts that a window is refused on this rank, and that all ranks have the same message; returns
-- it.
local function refusal(session, step)
  local before = session.model:values():hash()
  local ok, raised = pcall(session.window, session, step)
  assert.is_false(ok)
  local message, code = fault.of(raised)
  assert.equal(5, code)
  local bytes = core.from({ message:byte(1, -1) }, "i32")
  assert.is_true(training.equal_on_all(world, bytes))
  assert.equal(before, session.model:values():hash())
  assert.equal(0, session.optimizer:steps())
  return message
end

describe("a window with nothing on any rank", function()
  it("is refused by all ranks alike, and the next one is as if it had not been (B11)", function()
    for _, kind in ipairs { "no microbatch", "masked ones only", "a microbatch of no sequences" } do
      local steps = placed(function(r) return r == 0 and kind or "no microbatch" end)
      steps[2] = placed(function() return "full" end)[1]
      local session = session_of(steps)
      assert.equal("window 1: no rank has a supervised position, so its loss is not defined",
                   refusal(session, 1))
      local gradient = training.run(session, 2)
      assert.equal(0, core.compare(gradient, training.reference(session, 2).gradient,
                                   training.gate).failing)
    end
  end)

  it("has weights of zero throughout: refused by all alike", function()
    local steps = placed(function() return "full" end)
    local session = training.session(training.small(
      { corpus = corpus, steps = steps, objective = function() return 0 end }))
    assert.matches("^window 1: the weights of loss are zero for all %d+ supervised positions$",
                   refusal(session, 1))
  end)

  it("has weights that are refused on some ranks: all give the message of the first", function()
    local steps = placed(function() return "full" end)
    for first = 0, size - 1 do
      local session = training.session(training.small({
        corpus = corpus, steps = steps,
        objective = function(sequence) return sequence.rank >= first and -sequence.id or 1 end,
      }))
      assert.equal(("window 1: the unit of loss must give finite weights of at least 0, got %d " ..
                    "for sequence %d on rank %d"):format(-4 * first - 1, 4 * first + 1, first),
                   refusal(session, 1))
    end
  end)

  it("has a unit that fails on one rank only: all end, and that rank tells why", function()
    local steps = placed(function() return "full" end)
    local session = training.session(training.small({
      corpus = corpus, steps = steps,
      objective = function() return rank == size - 1 and error("broken here", 0) or 1 end,
    }))
    local ok, raised = pcall(session.window, session, 1)
    assert.is_false(ok)
    local message, code = fault.of(raised)
    local expected = rank == size - 1 and "broken here" or
      ("window 1: rank %d refused its weights"):format(size - 1)
    assert.equal(expected, message:sub(-#expected))
    assert.equal(rank == size - 1 and 1 or 5, code)
  end)
end)
