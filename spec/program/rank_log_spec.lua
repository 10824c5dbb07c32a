-- rank-R.jsonl: what each rank did in each update and where its time went, of a replica and of a
-- loop by hand, with a rank that is late, and after kill -9.

local bad = dofile "spec/support/bad_input.lua"
local core = require "marea.core"
local json = require "marea.json"
local launch = require "marea.launch"
local scratch = dofile "spec/support/scratch.lua"

local within = { "count", "forward", "backward", "reduction", "step" }

-- The lines of a rank's log; one that is not whole reads as nil.
local function read_log(run, rank)
  local lines = {}
  for line in (scratch.read(("%s/rank-%d.jsonl"):format(run, rank)) or ""):gmatch("[^\n]+") do
    lines[#lines + 1] = json.decode(line)
  end
  return lines
end

local by_hand = [[function(model, window)
    model:zero_grad()
    for _, batch in ipairs(window) do model:loss(batch, window:weights(batch)):backward() end
    world:all_reduce(model:gradients(), "sum")
    model:gradients():scale_(1 / world:size())
  end]]

-- Rank 1 takes 150 ms longer in the second update's forward.
local late = [[function(model, batch)
    local began = os.clock()
    while world:rank() == 1 and batch.update == 2 and os.clock() - began < 0.15 do end
    return nn.cross_entropy(model(batch), batch.targets)
  end]]

local function trained(fields, ranks)
  local place = bad.place(fields)
  local result = place:run(ranks)
  assert.equal(0, result.code, result.errors)
  return place, place.outputs .. "/tide"
end

describe("the log of a rank", function()
  it("has one line an update, whose phases add up to its time", function()
    for _, case in ipairs { { ranks = 2 }, { ranks = nil }, { ranks = 2, by_hand = true } } do
      local place <close>, run = trained({
        config = "{ updates = 5, accumulation = 2, lr = 0.1, save_every = 2, evaluate_every = 3 }",
        replicate = case.by_hand and "false", accumulate = case.by_hand and by_hand,
      }, case.ranks)
      assert.is_not_nil(place)
      for rank = 0, (case.ranks or 1) - 1 do
        local lines = read_log(run, rank)
        assert.equal(5, #lines)
        for i, line in ipairs(lines) do
          local phases, sum = line.phases, 0
          for _, name in ipairs(within) do
            assert.is_true(phases[name] >= 0, name)
            sum = sum + phases[name]
          end
          assert.equal(i, line.update)
          assert.is_true(math.abs(line.ms - sum) < 0.01, ("%g ms, phases %g"):format(line.ms, sum))
          assert.is_true(phases.forward > 0 and phases.backward > 0 and phases.step > 0)
          assert.equal(i % 2 == 0 or i == 5, phases.save > 0)
          assert.equal(i == 3, phases.evaluate ~= nil)
          assert.is_true(line.tokens > 0 and line.loss_sum > 0)
          assert.equal(case.ranks ~= nil, line.waiting > 0)
          assert.is_true(phases.reduction <= line.waiting)
        end
      end
    end
  end)

  it("shows which rank waited for which, whatever the loop", function()
    for _, hand in ipairs { false, true } do
      local place <close>, run = trained({
        config = "{ updates = 3, lr = 0.1 }", loss = late,
        replicate = hand and "false", accumulate = hand and by_hand }, 2)
      assert.is_not_nil(place)
      local early, slow = read_log(run, 0)[2], read_log(run, 1)[2]
      local both = json.encode { early, slow }
      assert.is_true(slow.phases.forward > 149, both)
      assert.is_true(early.phases.forward < slow.phases.forward - 50, both)
      assert.is_true(early.phases.reduction > 50 and early.waiting > 50, both)
      assert.is_true(slow.phases.reduction < early.phases.reduction - 30, both)
      assert.is_true(early.phases.backward < early.phases.reduction, both)
    end
  end)

  it("has the update whose checkpoint could not be written", function()
    local place <close> = bad.place { config = "{ updates = 3, lr = 0.1, save_every = 2 }" }
    assert.equal(0, place:run().code)
    local folder = place.outputs .. "/tide"
    place:rewrite { config = "{ updates = 3, lr = 0.1, save_every = 2 }", loss = [[
      function(model, batch)
        if batch.update == 2 then os.execute("rm -rf ']] .. folder .. [[/checkpoints'; touch ']] ..
        folder .. [[/checkpoints'") end
        return nn.cross_entropy(model(batch), batch.targets)
      end]] }
    assert.equal(1, place:run().code)
    local lines = read_log(folder, 0)
    assert.equal(2, #lines)
    assert.equal(2, lines[2].update)
    assert.is_true(lines[2].loss_sum > 0)
  end)

  it("is whole up to its last line after kill -9", function()
    local place <close> = bad.place { config = "{ updates = 3000, lr = 0.1 }" }
    local run = place.outputs .. "/tide"
    local process <close> = launch.start(
      { ranks = 2, threads = 1, input = "/dev/null", output = place.path .. "/out",
        errors = place.path .. "/err" }, place:words(bad.train()))
    for _ = 1, 300 do
      if #read_log(run, 0) > 20 and #read_log(run, 1) > 20 then break end
      assert(not process:ended(), scratch.read(place.path .. "/err"))
      os.execute "sleep 0.05"
    end
    local _, id = scratch.shell(("pgrep -f 'bin/marea trai[n] %s' | tail -n 1")
      :format(place.recipe))
    os.execute("kill -9 " .. id)
    process:wait(30)
    place:expect_no_process()
    for rank = 0, 1 do
      local text = scratch.read(("%s/rank-%d.jsonl"):format(run, rank))
      local whole = text:match("^(.*\n)[^\n]*$")
      local update = 0
      for line in whole:gmatch("[^\n]+") do
        update = update + 1
        local record = json.decode(line)
        assert.equal(update, record.update)
        assert.is_table(record.phases)
      end
      assert.is_true(update > 20)
      assert.equal(#text, #whole) -- a line is one write
    end
  end)
end)

describe("waits", function()
  it("count for the process, and are none where nobody waits", function()
    local world = require("marea.world").get()
    local before = world:waited()
    world:all_reduce(core.ones { 4 }, "sum")
    assert.equal(before, world:waited())
    assert.is_true(core.backward_seconds() >= 0)
  end)
end)
