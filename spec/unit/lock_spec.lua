local fault = require "marea.fault"
local lock = require "marea.lock"

local paths

before_each(function()
  paths = {}
  for i = 1, 2 do
    paths[i] = os.tmpname()
    local file = assert(io.open(paths[i], "w"))
    file:write("text of file " .. i)
    file:close()
  end
end)

after_each(function()
  for _, path in ipairs(paths) do os.remove(path) end
end)

local function steps_of(count)
  local steps = {}
  for step = 1, count do steps[step] = { { { step } }, { { step + 100 } } } end
  return steps
end

local function recipe_of(changes)
  local values = { seed = 20, lr = 0.1, updates = 4, device = "cpu", keep = 3 }
  for key, value in pairs(changes or {}) do values[key] = value end
  return { config = values, files = { { name = "main.lua", path = paths[1] },
                                      { name = "extra.lua", path = paths[2] } } }
end

local corpus = { hash = function() return ("a"):rep(64) end }

local function lock_of(changes, steps)
  return lock.of(recipe_of(changes), corpus, steps or steps_of(4))
end

local function fields(a, b)
  local list = {}
  for i, difference in ipairs(lock.compare(a, b)) do list[i] = difference.field end
  return list
end

describe("a lock", function()
  it("equals the lock of the same recipe, corpus and plan", function()
    assert.same({}, lock.compare(lock_of(), lock_of()))
    assert.same(lock_of(), lock_of())
  end)

  it("leaves out where, how long and how often", function()
    local other = lock_of { device = "cuda:1", stop = 2, updates = 9, keep = 8, save_every = 5,
                            evaluate_every = 2 }
    assert.same({}, lock.compare(lock_of(), other))
    assert.equal(lock_of().config.hash, other.config.hash)
  end)

  it("names config keys that differ, with both values", function()
    local differences = lock.compare(lock_of(), lock_of { lr = 0.05, width = 3 })
    assert.same({ { field = "config.lr", a = 0.1, b = 0.05 }, { field = "config.width", b = 3 } },
                differences)
    assert.equal("config.lr: 0.1 then, 0.05 now", lock.describe(differences[1]))
    assert.equal("config.width: none then, 3 now", lock.describe(differences[2]))
  end)

  it("names a file that differs, is new or is gone", function()
    local before = lock_of()
    local file = assert(io.open(paths[2], "a"))
    file:write("!")
    file:close()
    assert.same({ "files.extra.lua" }, fields(before, lock_of()))
    local without = recipe_of()
    without.files[2] = nil
    local difference = lock.compare(before, lock.of(without, corpus, steps_of(4)))[1]
    assert.equal("files.extra.lua", difference.field)
    assert.is_nil(difference.b)
  end)

  it("names the corpus", function()
    local other = lock.of(recipe_of(), { hash = function() return ("b"):rep(64) end }, steps_of(4))
    assert.same({ "corpus" }, fields(lock_of(), other))
  end)

  it("takes a longer plan with the same beginning for the same", function()
    assert.same({}, lock.compare(lock_of(nil, steps_of(4)), lock_of(nil, steps_of(9))))
    assert.same({}, lock.compare(lock_of(nil, steps_of(9)), lock_of(nil, steps_of(4))))
  end)

  it("names the plan and the first step that differs", function()
    local steps = steps_of(6)
    steps[3][2][1][1] = 77
    local differences = lock.compare(lock_of(), lock_of(nil, steps))
    assert.equal("plan", differences[1].field)
    assert.truthy(lock.describe(differences[1]):find("other ids from step 3 on", 1, true))
    steps = steps_of(6)
    steps[6][2][1][1] = 77
    assert.same({}, fields(lock_of(), lock_of(nil, steps)))
  end)

  it("names a plan for other ranks", function()
    local steps = steps_of(4)
    for _, window in ipairs(steps) do window[2] = nil end
    local difference = lock.compare(lock_of(), lock_of(nil, steps))[1]
    assert.same({ field = "plan", a = "for 2 ranks", b = "for 1 ranks" }, difference)
  end)

  it("survives a file unchanged", function()
    local original = lock_of()
    lock.write(paths[1], original)
    local record = lock.read(paths[1])
    assert.same(original.plan, record.plan)
    assert.same({ original.config, original.corpus }, { record.config, record.corpus })
    lock.write(paths[2], record)
    assert.same(record, lock.read(paths[2]))
  end)

  it("refuses a file that is no lock", function()
    local ok, raised = pcall(lock.read, paths[1])
    local message, code = fault.of(raised)
    assert.is_false(ok)
    assert.equal(3, code)
    assert.equal(paths[1], message:sub(1, #paths[1]))
  end)
end)

describe("going on under another lock", function()
  local function refusal(...)
    local ok, raised = pcall(lock.continue, ...)
    assert.is_false(ok)
    return fault.of(raised)
  end

  it("is refused, naming every field and both values", function()
    local message, code = refusal(lock_of(), lock_of { lr = 0.05, seed = 21 })
    assert.equal(3, code)
    assert.truthy(message:find("config.lr: 0.1 then, 0.05 now", 1, true))
    assert.truthy(message:find("config.seed: 20 then, 21 now", 1, true))
  end)

  it("is refused with a line for each field, short hashes and the words to accept them", function()
    local other = lock_of { lr = 0.05 }
    other.corpus = ("0123456789abcdef"):rep(4)
    local message = refusal(lock_of(), other, { "config.seed" })
    local lines = {}
    for line in message:gmatch("[^\n]+") do lines[#lines + 1] = line end
    assert.same({ "the run was made under another lock:",
                  ("  corpus: %s then, 0123456789ab now"):format(lock_of().corpus:sub(1, 12)),
                  "  config.lr: 0.1 then, 0.05 now",
                  "to go on all the same: --accept config.seed --accept corpus " ..
                  "--accept config.lr" }, lines)
  end)

  it("is let through field by field, and recorded from then on", function()
    local second = lock.continue(lock_of(), lock_of { lr = 0.05 }, { "config.lr" })
    assert.same({ "config.lr" }, second.accepted)
    local third = lock.continue(second, lock_of { lr = 0.05, seed = 21 }, { "config.seed" })
    assert.same({ "config.lr", "config.seed" }, third.accepted)
    local message = refusal(lock_of(), lock_of { lr = 0.05, seed = 21 }, { "config.lr" })
    assert.truthy(message:find("config.seed", 1, true))
    assert.falsy(message:find("config.lr: ", 1, true))
  end)

  it("records nothing that did not differ", function()
    assert.same({}, lock.continue(lock_of(), lock_of(), { "config.lr" }).accepted)
  end)

  it("refuses to accept a field that no lock has", function()
    local message, code = refusal(lock_of(), lock_of(), { "config.sed" })
    assert.equal(2, code)
    assert.truthy(message:find('did you mean "config.seed"?', 1, true))
    message = refusal(lock_of(), lock_of(), { "lr" })
    assert.truthy(message:find('did you mean "config.lr"?', 1, true))
    message = refusal(lock_of(), lock_of(), { "the whole" })
    assert.truthy(message:find("it has corpus, plan, schedule, config.KEY and files.NAME", 1, true))
  end)
end)
