local numeric = dofile "spec/support/numeric.lua"
local schedule = require "marea.schedule"

describe("a schedule", function()
  it("can be constant", function()
    local factor = schedule.constant()
    for _, update in ipairs { 1, 2, 1000 } do assert.equal(1, factor(update)) end
  end)

  it("rises linearly, reaches 1 at `warmup`, and stays", function()
    local factor = schedule.warmup { warmup = 10 }
    assert.same({ 0.1, 0.5, 0.9, 1, 1, 1 },
                { factor(1), factor(5), factor(9), factor(10), factor(11), factor(500) })
    assert.equal(1, schedule.warmup { warmup = 0 }(1))
  end)

  it("falls along half a cosine after the rise, to `final`, and stays", function()
    local factor = schedule.cosine { updates = 100, warmup = 20, final = 0.1 }
    assert.equal(0.5, factor(10))
    assert.equal(1, factor(20))
    assert.near(0.1 + 0.9 * (0.5 + math.sqrt(2) / 4), factor(40), 1e-15)
    assert.near(0.55, factor(60), 1e-15)
    assert.equal(0.1, factor(100))
    assert.equal(0.1, factor(101))
    assert.near(0.5, schedule.cosine { updates = 100 }(50), 1e-15)
    assert.equal(0, schedule.cosine { updates = 100 }(100))
  end)

  it("refuses settings out of range and unknown ones", function()
    for _, case in ipairs {
      { "warmup", {}, "schedule.warmup: warmup must be an integer of at least 0, got nil" },
      { "warmup", { warmup = -1 },
        "schedule.warmup: warmup must be an integer of at least 0, got -1" },
      { "warmup", { warmup = 1.5 },
        "schedule.warmup: warmup must be an integer of at least 0, got 1.5" },
      { "warmup", { warmpu = 3 },
        'schedule.warmup has no option "warmpu"; did you mean "warmup"?' },
      { "cosine", { updates = 0 },
        "schedule.cosine: updates must be an integer of at least 1, got 0" },
      { "cosine", { updates = 5, final = -1 },
        "schedule.cosine: final must be a finite number of at least 0, got -1" },
      { "cosine", { updates = 5, finla = 1 },
        'schedule.cosine has no option "finla"; did you mean "final"?' },
    } do
      local message, code = numeric.refusal(function() schedule[case[1]](case[2]) end)
      assert.same({ case[3], 2 }, { message, code })
    end
  end)
end)
