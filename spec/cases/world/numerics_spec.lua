-- Public cases of numerics: checks that prove something, masks of each rank's own, rounding.

local core = require "marea.core"
local marea = require "marea"
local parity = require "marea.parity"
local trainer_of = require "marea.trainer"
local world = require("marea.world").get()
local cases = dofile "spec/support/cases.lua"
local loops = dofile "spec/support/loops.lua"
local training = dofile "spec/support/training.lua"

local check = cases.check
local size = world:size()

-- By a check: parity breaks its own mechanism in each of these ways and must see it; a window that
-- tells no wrong weighting apart does not pass.
describe("B23: parity", function()
  local ranks = { { { { 1 } } }, { { { 3, 3, 3 } } } }

  local function run(accumulate, given)
    given = given or {}
    given.accumulate = accumulate
    return parity.run(training.toy(ranks, given))
  end

  it("passes the right loop: 2.5, as one process has it", function()
    cases.expect { right = 2.5, never = { { 2, "the mean of local means" }, { 1.25, "no factor" } },
                   ranks = ranks }
    if size ~= 2 then return end
    local report = run(loops.right)
    if not report then return end
    check(2.5, report.loss, {})
    assert.is_true(report.pass)
    local missed = {}
    for _, entry in ipairs(report.controls) do missed[entry.name] = entry.max_abs end
    check(2, missed.no_reduction, {}) -- 0.5 on rank 0: its own loss, with the factor
    check(0.5, missed.mean_of_means, {})
    check(1.25, missed.no_factor, {})
  end)

  -- What each broken loop gives in place of 2.5.
  local broken = {
    { "a: no reduction on one rank", 0.5, function(replica, window)
      loops.right(replica, window)
      replica.model:gradients():set_(1, window.rank == 0 and 0.5 or 4.5)
    end },
    { "b: the mean of local means", 2.0, loops.weighing_as(marea.objective.mean_of_means) },
    { "c: no factor W", 1.25, loops.no_factor },
  }
  for _, case in ipairs(broken) do
    local name, wrong, loop = table.unpack(case)
    it(("%s: fails, and tells %g and 2.5"):format(name, wrong), function()
      if size ~= 2 then return end
      local report = run(loop)
      if not report then return end
      assert.is_false(report.pass)
      for _, dtype in ipairs { "f32", "f64" } do
        assert.equal(1, report[dtype].failing)
        check(wrong, report[dtype].worst.values[1], {}, 1e-6)
        check(2.5, report[dtype].worst.values[2], {}, 1e-6)
      end
    end)
  end

  it("does not pass where all ranks hold the same: x = 2 proves nothing", function()
    if size ~= 2 then return end
    local row = { inputs = { 1 }, targets = { 0 }, split = "train" }
    local alike = { corpus = marea.corpus.from { sequences = { row, row }, vocabulary = 2 },
                    steps = { { { { 1 } }, { { 2 } } } } }
    for _, given in ipairs { alike, {} } do -- the same symbol, and two of the same loss
      local report = parity.run(training.toy({ { { { 2 } } }, { { { 2 } } } }, given))
      if report then
        assert.same({ 0, 0, false, false }, { report.f32.failing, report.f64.failing,
                                              report.controls_pass, report.pass })
        for _, entry in ipairs(report.controls) do
          if entry.name == "no_reduction" then
            assert.is_false(entry.detected)
            assert.equal(given == alike and "all ranks hold the same data" or nil, entry.reason)
          end
        end
      end
    end
  end)
end)

-- By construction: a mask is drawn at (seed, layer, update, sequence, position, channel), and no
-- sequence is on two ranks; parameters are drawn from the seed alone and sent round by rank 0.
describe("B44: dropout 0.5 over 64 ones, seed 7", function()
  local function mask(sequence, update)
    local ids, positions = {}, {}
    for i = 1, 64 do ids[i], positions[i] = sequence, i - 1 end
    return core.ones({ 64, 1 }, "f64"):dropout {
      probability = 0.5, seed = 7, layer = 1, update = update or 1, ids = core.from(ids, "i64"),
      positions = core.from(positions, "i32") }
  end

  it("masks the sequences of two ranks differently, and each again alike", function()
    for rank = 0, 3 do
      for other = rank + 1, 4 do
        assert.are_not.equal(mask(1 + rank):hash(), mask(1 + other):hash())
      end
      assert.equal(mask(1 + rank):hash(), mask(1 + rank):hash())
      assert.are_not.equal(mask(1 + rank):hash(), mask(1 + rank, 2):hash())
    end
  end)

  -- Hashes of the masked ones that this rank's window holds, and of the initial parameters.
  local Masked = marea.nn.class "spec.Masked"
  local seen

  function Masked:init() self:parameter("w", { 1, 64 }, { std = 1 }) end

  function Masked:forward(batch)
    local rows = batch.rows
    if rows == 0 then return core.zeros({ 0 }, "f64") end
    local ones = core.ones({ rows, 64 }, "f64"):dropout {
      probability = 0.5, seed = batch.seed, layer = 1, update = batch.update,
      ids = batch.sequence_ids, positions = batch.positions }
    seen[#seen + 1] = ones:hash()
    return ones:linear(self.w):reshape { rows }
  end

  local function run(group, seed)
    local counts, list = {}, {}
    for r = 1, group:size() do
      counts[r] = { 1 }
      list[r] = { inputs = { 0 }, targets = { 0 }, split = "train" }
    end
    seen = {}
    local session = require("marea.session").open(training.recipe({
      corpus = marea.corpus.from { sequences = list, vocabulary = 1 },
      steps = training.dealt(counts), model = function() return Masked() end,
      loss = function(model, batch) return model(batch) end,
    }, { dtype = "f64", seed = 7 }), { world = group }):build { seed = seed }
    local parameters = session.model:values():copy()
    training.run(session)
    return seen[1], parameters
  end

  it("on ranks: masks differ, parameters are the same bits, a second run is the first", function()
    local group = cases.group(2)
    if not group then return end
    local first, parameters = run(group, 7 + group:rank()) -- each rank would draw others
    local again, same = run(group, 7 + group:rank())
    assert.equal(first, again)
    assert.equal(parameters:hash(), same:hash())
    assert.is_true(training.equal_on_all(group, parameters))
    local number = math.tointeger(tonumber(first:sub(1, 12), 16))
    assert.is_false(training.equal_on_all(group, core.from({ number }, "i64")))
  end)
end)

-- By a check: parity's f32 gate is let wider by the sum of |gradient| where f64 agrees, and only
-- there.
describe("B51: sums in another order", function()
  local ranks = { { { { 1e8 } }, { { 1 } } }, { { { -1e8 } }, { { 1 } } } }

  it("in f32 give 1 in order and 0 by rank, in f64 2 both ways", function()
    cases.expect { right = 2 / 4, never = { { 0.25, "f32, in order" }, { 0, "f32, by rank" } },
                   ranks = ranks }
    local function f32(list)
      local sum = core.from({ 0 }, "f32")
      for _, x in ipairs(list) do sum:add_scaled_(1, core.from({ x }, "f32")) end
      return sum:get(1)
    end
    check(1, f32 { 1e8, 1, -1e8, 1 }, {})
    check(0, f32 { 1e8, 1 } + f32 { -1e8, 1 }, {})
  end)

  it("pass parity as rounding, counted as that", function()
    if size ~= 2 then return end
    local report = parity.run(training.toy(ranks))
    if not report then return end
    assert.same({ 0, 1, 0, 0 }, { report.f32.failing, report.f32.rounding, report.f64.failing,
                                  report.f64.rounding })
    assert.is_true(report.f32.max_abs >= 0.1)
  end)

  it("excuse no loop that is wrong", function()
    if size ~= 2 then return end
    for _, broken in ipairs { loops.no_factor, loops.divides_again, loops.miscounts } do
      local report = parity.run(training.toy(ranks, { accumulate = broken }))
      if report then
        assert.is_false(report.pass)
        assert.same({ 1, 1 }, { report.f64.failing, report.f32.failing })
      end
    end
  end)

  it("an update that they make differs on no rank", function()
    local group = cases.group(2)
    if not group then return end
    local session = cases.session(training.toy(ranks, {}, { dtype = "f32" }), group)
    assert.equal(0, trainer_of.new(session):advance().parameter_spread)
    assert.is_true(training.equal_on_all(group, session.model:values()))
  end)
end)
