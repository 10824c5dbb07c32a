-- train --dry-run: what it says is what a run then does, and it writes nothing.

local core = require "marea.core"
local json = require "marea.json"
local scratch = dofile "spec/support/scratch.lua"
local tiny = dofile "spec/support/tiny.lua"

local function listing(folder)
  return select(2, scratch.shell(("cd %s && find . -type f | LC_ALL=C sort | xargs sha256sum")
                                   :format(folder)))
end

local function dry(outputs, ranks, recipe, ...)
  local before = listing(outputs)
  local code, output, errors = tiny.run(outputs, ranks, { "train", recipe, "--dry-run", "--json",
                                                          ... })
  assert.are.equal(0, code, errors)
  assert.are.equal(before, listing(outputs))
  return json.decode(output)
end

local function record_of(run) return json.decode(scratch.read(run .. "/run.json")) end

-- The dry run's peak as a share of that of the run.
local function compare_peaks(ranks, recipe, ...)
  local folder <close> = scratch.folder()
  local expected = dry(folder.path, ranks, recipe, ...)
  local code, _, errors = tiny.run(folder.path, ranks, { "train", recipe, ... })
  assert.are.equal(0, code, errors)
  local peak = record_of(expected.run).peak_bytes
  local ratio = expected.memory.peak / peak
  assert(ratio > 0.9 and ratio < 1.1, ("%d bytes expected, the run's peak was %d")
           :format(expected.memory.peak, peak))
  return expected, peak
end

describe("a dry run's peak of memory is within 10 % of the run's", function()
  it("for the minimum recipe on two ranks, from 1 to 50", function()
    local expected, peak = compare_peaks(2, "recipes/minimum.lua")
    assert.are.equal(50, expected.last)
    -- more than the sum of what it holds, so a window was looked at
    local memory = expected.memory
    assert.is_true(peak > 2 * (memory.parameters + memory.gradients + memory.optimizer))
  end)

  for _, case in ipairs {
    { 1, tiny.recipe, "ranks=1", "width=64" },
    { 1, tiny.recipe, "ranks=1", "width=64", "dtype=f64", "--continuous", "save_every=2" },
    { 2, tiny.recipe, "width=64", "layout=padded", "--continuous" },
    { 2, tiny.recipe, "width=96", "evaluate_every=3", "accumulation=1", "kind=SGD" },
    { 3, tiny.recipe, "ranks=3", "width=64", "batch_size_per_rank=4" },
    { 1, "recipes/verses.lua", "ranks=1", "updates=6" },
  } do
    it("for " .. table.concat(case, " ", 2), function()
      compare_peaks(case[1] > 1 and case[1] or nil, table.unpack(case, 2))
    end)
  end

  it("where one process looks at a recipe of two ranks", function()
    local folder <close> = scratch.folder()
    local one = dry(folder.path, nil, tiny.recipe, "width=64")
    local two = dry(folder.path, 2, tiny.recipe, "width=64")
    assert.are.same(two.tokens, one.tokens)
    assert.are.same(two.files, one.files)
    assert.is_true(math.abs(one.memory.peak / two.memory.peak - 1) < 0.05)
  end)

  it("grows with what makes a run grow", function()
    local folder <close> = scratch.folder()
    local function peak(...)
      return dry(folder.path, nil, tiny.recipe, "ranks=1", ...).memory.peak
    end
    local base = peak "width=64"
    assert.is_true(peak "width=128" > 2 * base)
    assert.is_true(peak("width=64", "batch_size_per_rank=8") > 1.3 * base)
    assert.is_true(peak("width=64", "dtype=f64") > 1.7 * base)
  end)
end)

describe("a dry run", function()
  it("says where a start would begin and end, and what it would write", function()
    local folder <close> = scratch.folder()
    local words = { "save_every=2", "--run", "x" }
    local expected = dry(folder.path, 2, tiny.recipe, table.unpack(words))
    assert.are.equal(1, expected.first)
    assert.are.equal(4, expected.last)
    assert.are.equal(2565, expected.count)
    assert.are.same({ updates = 8, ranks = 2, accumulation = 2, batch_size_per_rank = 2 },
                    expected.plan)
    assert.are.same({ 2, 4 }, expected.checkpoints.updates)
    assert.is_nil(expected.moved_to)
    tiny.must_train(folder.path, 2, "x", "save_every=2")
    local run = folder.path .. "/x"
    assert.are.equal(run, expected.run)
    local files = core.file.list(run)
    table.insert(expected.files, "checkpoints")
    table.sort(expected.files)
    assert.are.same(files, expected.files)
    assert.are.same({ "step-000002", "step-000004" }, core.file.list(run .. "/checkpoints"))
    local card = json.decode(scratch.read(run .. "/corpus-card.json"))
    assert.are.same(card.rank_tokens, expected.tokens)
    assert.are.equal(run .. ".1", dry(folder.path, 2, tiny.recipe, table.unpack(words)).moved_to)
  end)

  it("of a resume begins where the checkpoint stands, and refuses what the resume would", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, nil, "x")
    local expected = dry(folder.path, nil, tiny.recipe, "ranks=1", "--run", "x", "--resume",
                         "latest")
    assert.are.same({ 5, 8 }, { expected.first, expected.last })
    assert.are.same({ 8 }, expected.checkpoints.updates)
    assert.is_nil(expected.moved_to)
    local code, _, errors = tiny.train(folder.path, nil, "x", "--resume", "latest", "--dry-run",
                                       "lr=1")
    assert.are.equal(3, code)
    assert.is_truthy(errors:find("config.lr: 0.02 then, 1 now", 1, true), errors)
    tiny.must_train(folder.path, nil, "x", "--resume", "latest")
    local output = tiny.must_train(folder.path, nil, "x", "--resume", "latest", "--dry-run")
    assert.is_truthy(output:find("is at update 8 of 8 already", 1, true), output)
  end)

  it("as text has plan, parameters, memory and files, and ends with what it did not do", function()
    local folder <close> = scratch.folder()
    local lock <close> = core.file.lock(folder.path .. "/x")
    assert(lock)
    local output = tiny.must_train(folder.path, 2, "x", "--dry-run")
    for _, line in ipairs {
      "plan        8 updates of up to 2 microbatches of 2 sequences a rank, 2 ranks\n",
      "this start  updates 1 to 4\n", "parameters  2,565, f32\n",
      "            layers.0.attention.qkv.weight  [48, 16]\n", " bytes a rank at the peak\n",
      "writes      " .. folder.path .. "/x/\n", "(which is in use by process ",
      "run.json  metrics.jsonl", "rank-0.jsonl  rank-1.jsonl", "checkpoints/step-000004\n",
      "the newest 3 stay\n", "\nnothing was trained, and nothing written\n" } do
      assert.is_truthy(output:find(line, 1, true), line .. " in:\n" .. output)
    end
    assert.is_truthy(output:find("tokens      %d+ in all %(%d+ %+ %d+%)\n"), output)
    assert.is_truthy(output:find("measured on the heaviest microbatches, of update"), output)
  end)

  it("refuses what a run would refuse", function()
    local folder <close> = scratch.folder()
    local cases = {
      { nil, { "--until", "9" }, "--until 9 is behind the last update, 8" },
      { 3, { "ranks=2" }, "planned for 2 ranks and was started on 3" },
      { 3, { "ranks=2" }, "marea launch -n 2 train " .. tiny.recipe .. " --dry-run ranks=2" },
      { nil, { "--accept", "config.lr" }, "--accept needs --resume" },
      { nil, { "--run", "a/b" }, "a run's name becomes a folder" },
    }
    for _, case in ipairs(cases) do
      local words = { "train", tiny.recipe, "--dry-run" }
      table.move(case[2], 1, #case[2], #words + 1, words)
      local code, _, errors = tiny.run(folder.path, case[1], words)
      assert.are.equal(2, code, errors)
      assert.is_truthy(errors:find(case[3], 1, true), errors)
    end
    assert.are.equal("", listing(folder.path):match("%./[^\n]*") or "")
  end)
end)
