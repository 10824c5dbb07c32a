-- Training as a user meets it when something goes wrong: on one rank, on the disk, by a signal; and
-- what a start leaves behind.

local checkpoint = require "marea.checkpoint"
local core = require "marea.core"
local json = require "marea.json"
local launch = require "marea.launch"
local saves = require "marea.saves"
local scratch = dofile "spec/support/scratch.lua"
local tiny = dofile "spec/support/tiny.lua"

local function shows(text, ...)
  for _, part in ipairs { ... } do
    assert.is_truthy(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
  end
end

local function times(text, part)
  local count, at = 0, 1
  while true do
    local first, last = text:find(part, at, true)
    if not first then return count end
    count, at = count + 1, last + 1
  end
end

-- Process ids of the ranks whose runs lie in a folder. The brackets keep the shell that looks out.
local function ranks_in(folder)
  local _, output = scratch.shell(("pgrep -f 'bin/marea train .*output[s] %s '"):format(folder))
  local list = {}
  for id in output:gmatch("%d+") do list[#list + 1] = id end
  return list
end

local function nobody_left(folder)
  for _ = 1, 50 do
    if #ranks_in(folder) == 0 then return end
    os.execute("sleep 0.1")
  end
  error("ranks were left behind")
end

-- The update of the newest checkpoint that verifies, and its folder.
local function newest(run)
  local folder = saves.latest(run, saves.id_of(run))
  return checkpoint.verify(folder).update, folder
end

local function record_of(run) return json.decode(scratch.read(run .. "/run.json")) end

-- Starts a run of many slow updates on two ranks; returns its process once it has a checkpoint.
local function start_long(folder, name, through_launch)
  local words = { "train", tiny.recipe, "--outputs", folder, "--run", name, "--continuous",
                  "updates=4000", "save_every=20" }
  if through_launch then
    words = { "launch", "-n", "2", "--threads", "1", table.unpack(words) }
  end
  local process = launch.start({ ranks = not through_launch and 2 or nil, threads = 1,
                                 input = "/dev/null", output = folder .. "/out",
                                 errors = folder .. "/err" }, words)
  local run = folder .. "/" .. name
  for _ = 1, 300 do
    if #saves.list(run) > 0 then return process, run end
    assert(not process:ended(), scratch.read(folder .. "/err"))
    os.execute("sleep 0.1")
  end
  error("no checkpoint came: " .. scratch.read(folder .. "/err"))
end

describe("training", function()
  it("leaves its logs, its record and what it was prepared from", function()
    local folder <close> = scratch.folder()
    local output, errors = tiny.must_train(folder.path, 2, "x", "evaluate_every=2")
    local run = folder.path .. "/x"
    shows(output, run .. " at update 4 of 8, 182 tokens seen, loss ", "checkpoint " .. run ..
          "/checkpoints/step-000004")
    shows(errors, "marea: training tiny on 2 ranks, updates 1 to 4 of 8\n",
          "  2,565 parameters, into " .. run .. "\n", "\n    1/4 ", "\n    4/4 ",
          "\n  validation at 4/4: loss/token ")
    for _, name in ipairs { "corpus.safetensors", "corpus-card.json", "plan.json", "lock.json" } do
      assert.is_truthy(scratch.read(run .. "/" .. name), name)
    end
    local record = record_of(run)
    for _, key in ipairs { "version", "recipe", "config", "instruction_set", "blas", "board",
                           "hosts", "threads", "started", "ended", "id" } do
      assert.is_truthy(record[key], key)
    end
    assert.are.equal("stopped", record.outcome)
    assert.are.equal(4, record.update)
    assert.are.equal(2, record.world)
    assert.are.equal(2565, record.parameters)
    assert.is_true(record.last_save.good)
    local updates, validations = {}, {}
    for line in scratch.read(run .. "/metrics.jsonl"):gmatch("[^\n]+") do
      local item = json.decode(line)
      table.insert(item.split and validations or updates, item)
    end
    assert.are.equal(4, #updates)
    assert.are.same({ 2, 4 }, { validations[1].update, validations[2].update })
    assert.are.equal(10, validations[1].sequences)
    for i, item in ipairs(updates) do
      assert.are.equal(i, item.update)
      assert.are.equal("global_token", item.objective)
      assert.are.equal(0, item.parameter_spread)
      assert.are.equal(item.tokens, item.rank_tokens[1] + item.rank_tokens[2])
      assert.are.equal(0.02 * math.min(1, i / 3), item.lr)
      assert.is_true(item.grad_norm > 0 and item.ms > 0 and item.bytes_sent > 0)
      local sums = 0
      for rank = 0, 1 do
        local log = scratch.read(("%s/rank-%d.jsonl"):format(run, rank))
        local number = 0
        for line in log:gmatch("[^\n]+") do
          number = number + 1
          if number == i then
            local mine = json.decode(line)
            assert.are.equal(item.rank_tokens[rank + 1], mine.tokens)
            sums = sums + mine.loss_sum
          end
        end
      end
      assert.are.equal(sums / item.tokens, item.loss_per_token)
    end
  end)

  it("moves an older run aside, whole, and says where", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, nil, "x", "--until", "6")
    local id = record_of(folder.path .. "/x").id
    local _, errors = tiny.must_train(folder.path, nil, "x", "--until", "2")
    shows(errors, ("an older run of %s was moved to %s/x.1"):format(tiny.recipe, folder.path))
    assert.are.equal(id, record_of(folder.path .. "/x.1").id)
    assert.are_not.equal(id, record_of(folder.path .. "/x").id)
    assert.are.equal(6, (newest(folder.path .. "/x.1")))
    assert.are.equal(2, (newest(folder.path .. "/x")))
    local list = saves.list(folder.path .. "/x")
    assert.are.equal(1, #list)
  end)

  it("keeps the newest checkpoints only", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, nil, "x", "save_every=1", "keep=2", "--continuous")
    local updates = {}
    for i, item in ipairs(saves.list(folder.path .. "/x")) do updates[i] = item.update end
    assert.are.same({ 7, 8 }, updates)
  end)

  it("writes nothing in a dry run, and shows plan, shapes and memory", function()
    local folder <close> = scratch.folder()
    local output = tiny.must_train(folder.path, 2, "x", "--dry-run")
    shows(output, "8 updates", "2,565", "layers.0.attention.qkv.weight", "[48, 16]", "memory")
    assert.is_false(core.file.exists(folder.path .. "/x"))
  end)

  it("on another number of ranks than planned is refused once, with both numbers", function()
    local folder <close> = scratch.folder()
    local code, _, errors = tiny.run(folder.path, 3, { "train", tiny.recipe, "--run", "x" })
    assert.are.equal(2, code)
    shows(errors, "planned for 2 ranks and was started on 3")
    assert.are.equal(1, times(errors, "planned for"))
    assert.is_false(core.file.exists(folder.path .. "/x"))
  end)

  it("waits for nobody where another process holds the folder", function()
    local folder <close> = scratch.folder()
    tiny.must_train(folder.path, nil, "x")
    local lock <close> = core.file.lock(folder.path .. "/x")
    for _, ranks in ipairs { 1, 2 } do
      local words = ranks == 1 and { "--resume", "latest" } or {}
      local code, _, errors = tiny.train(folder.path, ranks > 1 and ranks or nil, "x",
                                         table.unpack(words))
      assert.are.equal(4, code)
      shows(errors, "is in use by process")
      assert.are.equal(1, times(errors, "in use"))
    end
    assert.are.equal(4, (newest(folder.path .. "/x")))
    assert.is_not_nil(lock)
  end)
end)

describe("an error on one rank only", function()
  it("ends all with code 1 and the recipe's line, and keeps the last checkpoint", function()
    local folder <close> = scratch.folder()
    local code, _, errors = tiny.train(folder.path, 2, "x", "bad_rank=1", "raise_at=4",
                                       "save_every=2")
    assert.are.equal(1, code)
    assert.are.equal(1, times(errors, "the tide went out"))
    shows(errors, "rank 1: spec/recipes/tiny.lua:")
    nobody_left(folder.path)
    assert.are.equal(2, (newest(folder.path .. "/x")))
    local record = record_of(folder.path .. "/x")
    assert.are.equal("failed", record.outcome)
    shows(record.message, "rank 1 stopped: ", "the tide went out")
    tiny.must_train(folder.path, 2, "x", "bad_rank=1", "--resume", "latest", "--accept",
                    "config.raise_at")
  end)

  it("that makes the loss infinite stops all before the step, code 5, said once", function()
    local folder <close> = scratch.folder()
    local code, _, errors = tiny.train(folder.path, 2, "x", "bad_rank=1", "poison_at=3")
    assert.are.equal(5, code)
    assert.are.equal(1, times(errors, "update 3: the "))
    shows(errors, "nobody stepped, so the parameters are those of update 2")
    assert.are.equal(2, #tiny.timeless_lines(folder.path .. "/x/metrics.jsonl"))
    assert.are.equal(0, #saves.list(folder.path .. "/x"))
  end)

  it("that has parameters of its own gets no checkpoint, code 6, and was seen before", function()
    local folder <close> = scratch.folder()
    local code, _, errors = tiny.train(folder.path, 2, "x", "bad_rank=1", "part_at_start=true")
    assert.are.equal(6, code)
    assert.are.equal(1, times(errors, "the parameters are not the same on all ranks"))
    local first = json.decode(tiny.timeless_lines(folder.path .. "/x/metrics.jsonl")[1])
    assert.is_true(first.parameter_spread > 1)
    assert.are.equal(0, #saves.list(folder.path .. "/x"))
  end)
end)

describe("a rank that is killed", function()
  it("leaves the last checkpoint good and no rank, and the run goes on from it", function()
    local folder <close> = scratch.folder()
    local process <close>, run = start_long(folder.path, "x")
    local ranks = ranks_in(folder.path)
    os.execute("kill -9 " .. ranks[#ranks])
    local kind, number = process:wait(30)
    assert.are.equal(6, launch.exit_code(kind, number))
    nobody_left(folder.path)
    local update = newest(run)
    assert.are.equal(0, update % 20)
    local last = tostring(update + 3)
    local _, errors = tiny.must_train(folder.path, 2, "x", "updates=4000", "--resume", "latest",
                                      "--until", last)
    shows(errors, ("at update %d"):format(update))
    tiny.must_train(folder.path, 2, "once", "updates=4000", "--until", last)
    assert.are.equal(0, (tiny.compare(folder.path, "once", "x")))
    for _, name in ipairs(core.file.list(run .. "/checkpoints")) do
      assert.is_falsy(name:find("partial"), name)
    end
  end)
end)

describe("a request to stop", function()
  it("that one rank gets stops all after the same update, saved, with code 7", function()
    local folder <close> = scratch.folder()
    local process <close>, run = start_long(folder.path, "x")
    local ranks = ranks_in(folder.path)
    os.execute("kill -USR1 " .. ranks[#ranks])
    local kind, number = process:wait(30)
    assert.are.equal(7, launch.exit_code(kind, number))
    shows(scratch.read(folder.path .. "/out"), "stopped on request")
    local update = newest(run)
    assert.are.equal(update, record_of(run).update)
    assert.are.equal(update, #tiny.timeless_lines(run .. "/rank-0.jsonl"))
    assert.are.equal(update, #tiny.timeless_lines(run .. "/rank-1.jsonl"))
  end)

  for _, name in ipairs { "TERM", "INT" } do
    it(("that marea launch gets as SIG%s does the same"):format(name), function()
      local folder <close> = scratch.folder()
      local process <close>, run = start_long(folder.path, "x", true)
      os.execute(("kill -%s %d"):format(name, process:id()))
      local kind, number = process:wait(30)
      assert.are.same({ "exit", 7 }, { kind, number })
      nobody_left(folder.path)
      assert.are.equal(newest(run), record_of(run).update)
    end)
  end
end)
