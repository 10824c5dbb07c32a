-- How gradients are reduced where ranks share memory, where they do not, and between hosts; what a
-- run says of it; and a rank that is lost while others are at it.

local json = require "marea.json"
local launch = require "marea.launch"
local scratch = dofile "spec/support/scratch.lua"
local tiny = dofile "spec/support/tiny.lua"

local told = "do not fit into shared memory (MAREA_WINDOW_BYTES=1000): reducing through MPI"

local function train(folder, name, ranks, set)
  local code, _, errors = launch.run({ ranks = ranks, threads = 1, time_limit = 60, set = set }, {
    "train", tiny.recipe, "ranks=" .. ranks, "--run", name, "--outputs", folder })
  assert.equal(0, code, errors)
  return json.decode(scratch.read(folder .. "/" .. name .. "/run.json")), errors
end

local header = [[
local core = require "marea.core"
local world = core.world()
local rank, size = world:rank(), world:size()
local unit = core.unit({ { name = "all", shape = { 100003 } } }, "f64")
local gradients = unit:gradients()
local way = unit:share_gradients(world)
]]

local function run(ranks, text, set)
  local folder <close> = scratch.folder()
  local path = folder.path .. "/x.lua"
  scratch.write(path, header .. text)
  return launch.run({ ranks = ranks, threads = 1, time_limit = 40, set = set }, { path })
end

describe("a run on one host", function()
  it("reduces in a shared window, records it and says nothing", function()
    local folder <close> = scratch.folder()
    local record, errors = train(folder.path, "window", 2)
    assert.equal("shared window", record.reduction_way)
    assert.is_nil(record.reduction_problem)
    assert.is_nil(errors:find("shared memory", 1, true))
  end)

  it("says once that there is no room, records it, and has the same bits through MPI", function()
    local folder <close> = scratch.folder()
    train(folder.path, "window", 2)
    local record, errors = train(folder.path, "mpi", 2, { MAREA_WINDOW_BYTES = "1000" })
    assert.equal("MPI", record.reduction_way)
    assert.equal("MAREA_WINDOW_BYTES=1000", record.reduction_problem)
    local _, count = errors:gsub(told:gsub("%p", "%%%0"), "")
    assert.equal(1, count, errors)
    assert.is_truthy(errors:find("marea: the gradients of %d+%.%d MB x 2 ranks do not fit"), errors)
    local code, parts = tiny.compare(folder.path, folder.path .. "/window", folder.path .. "/mpi")
    assert.equal(0, code, json.encode(parts))
  end)

  it("needs no room in /dev/shm", function()
    local tiny_shm = "unshare -m sh -c 'mount -t tmpfs -o size=%s tmpfs /dev/shm && %s'"
    if os.execute(tiny_shm:format("64k", "true") .. " 2>/dev/null") ~= true then
      pending "only root may mount"
      return
    end
    local folder <close> = scratch.folder()
    scratch.write(folder.path .. "/x.lua", header .. "print(way)")
    local words, variables = launch.arguments({ ranks = 2, threads = 1 },
                                              { folder.path .. "/x.lua" })
    local command = "env"
    for name, value in pairs(variables) do command = command .. (" %s=%s"):format(name, value) end
    for _, word in ipairs(words) do command = command .. " " .. launch.quote(word) end
    local code, output, errors = scratch.shell(tiny_shm:format("16m", command))
    assert.equal(0, code, errors)
    assert.equal("shared window\nshared window\n", output)
  end)
end)

describe("ranks that pass as several hosts", function()
  local sums = [[
    local expected = 0
    for r = 0, size - 1 do expected = expected + 2.0 ^ r end
    for _, reduction in ipairs { "sum", "mean" } do
      for _, cut in ipairs { { 1, 100003 }, { 1, 1 }, { 9, 7 }, { 33, 5000 } } do
        local part = gradients:slice(cut[1], cut[2])
        part:fill_(2.0 ^ rank)
        world:all_reduce(part, reduction)
        local want = reduction == "mean" and expected * (1 / size) or expected
        for _, value in ipairs(part:values()) do assert(value == want) end
      end
    end
    local handles = {}
    gradients:fill_(2.0 ^ rank)
    for i = 1, 20 do
      handles[i] = world:all_reduce_async(gradients:slice(5000 * (i - 1) + 1, 5000), "sum")
    end
    for i = 20, 1, -1 do handles[i]:wait() end
    for i, value in ipairs(gradients:values()) do
      assert(value == (i <= 100000 and expected or 2.0 ^ rank))
    end
    if rank == 0 then print(way) end]]

  local between = "shared windows, MPI between hosts"
  for _, case in ipairs {
    { 4, "2", between }, { 3, "2", between }, { 4, "3", between }, { 3, "1", "MPI" },
    { 4, "4", "shared window" },
  } do
    local ranks, per_host, way = table.unpack(case)
    it(("%d with up to %s each reduce by: %s"):format(ranks, per_host, way), function()
      local code, output, errors = run(ranks, sums, { MAREA_RANKS_PER_HOST = per_host })
      assert.equal(0, code, errors)
      assert.equal(way .. "\n", output)
      assert.equal("", errors)
    end)
  end

  it("train to the same parameters within rounding, in the same bits each time", function()
    local folder <close> = scratch.folder()
    local set = { MAREA_RANKS_PER_HOST = "2" }
    local record = train(folder.path, "hosts", 4, set)
    assert.equal("shared windows, MPI between hosts", record.reduction_way)
    train(folder.path, "again", 4, set)
    local code, parts = tiny.compare(folder.path, folder.path .. "/hosts", folder.path .. "/again")
    assert.equal(0, code, json.encode(parts))
  end)
end)

describe("a rank that is killed", function()
  it("before it has summed its share ends the others", function()
    local began = os.time()
    local code, _, errors = run(2, [[
      if rank == 1 then
        local handle = world:all_reduce_async(gradients, "sum")
        os.execute("kill -9 $PPID")
      end
      os.execute("sleep 0.3")
      world:all_reduce(gradients, "sum")]])
    assert.equal(6, code)
    assert.is_true(os.time() - began < 20)
    assert.is_truthy(errors:find("rank 0: .*rank 1 is lost: process "), errors)
  end)
end)

describe("ranks whose gradients are not of one size", function()
  it("stop with the sizes of all", function()
    local code, _, errors = run(2, [[
      core.unit({ { name = "a", shape = { 100 + rank * 100 } } }, "f32"):share_gradients(world)]])
    assert.equal(6, code)
    for rank = 0, 1 do
      local words = ("rank %d window of %d bytes at "):format(rank, 512 + rank * 384)
      assert.is_truthy(errors:find(words, 1, true), errors)
    end
  end)
end)
