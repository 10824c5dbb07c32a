-- Data between GPUs by NCCL, on GPUs of the processor: what goes this way and what does not; that
-- bits and orders are those of the host's way; and what ranks say when NCCL, or one of them, fails.

local launch = require "marea.launch"
local cuda = dofile "spec/support/cuda.lua"
local scratch = dofile "spec/support/scratch.lua"

local header = [[
local core = require "marea.core"
local world = core.world()
local rank, size = world:rank(), world:size()
]]

local function run(ranks, text, more, ...)
  local folder <close> = scratch.folder()
  local path = folder.path .. "/x.lua"
  scratch.write(path, header .. text)
  local set = cuda.variables { MAREA_CUDA_DEVICES = "4" }
  for name, value in pairs(more or {}) do set[name] = value end
  return launch.run({ ranks = ranks, threads = ranks and 1, time_limit = 60, set = set },
                    { path, "--device", "cuda", ... })
end

-- The lines of all ranks, in order, of a run that went well.
local function lines(ranks, text, more, ...)
  local code, output, errors = run(ranks, text, more, ...)
  assert.equal(0, code, errors)
  local list = {}
  for line in output:gmatch("[^\n]+") do list[#list + 1] = line end
  table.sort(list)
  return list, errors
end

-- Asserts how a run of two ranks ends, and what one of them says.
local function ends(expected, message, text, more)
  local code, _, errors = run(2, text, more)
  assert.is_truthy(errors:find(message, 1, true), errors)
  assert.equal(expected, code, errors)
end

if not cuda.host then
  return describe("NCCL", function()
    pending "was not built for the processor (-DMAREA_CUDA_HOST=ON)"
  end)
end

local every = [[
local list = {} -- one short line for a rank, so that ranks do not write into each other's
local function show(name, t) list[#list + 1] = name .. " " .. t:hash():sub(1, 16) end
local function given(stream, dtype)
  return core.normal({ 6 * size }, { seed = stream, stream = rank, dtype = dtype })
end
for _, dtype in ipairs { "f32", "f64", "bf16" } do
  for i, reduction in ipairs(dtype ~= "bf16" and { "sum", "mean", "max", "min" } or {}) do
    show(reduction, world:all_reduce(given(i, dtype), reduction))
    show("part of " .. reduction, world:reduce_scatter(given(i, dtype), reduction))
  end
  show("broadcast", world:broadcast(given(5, dtype), size - 1))
  show("gathered", world:all_gather(given(6, dtype)))
  show("exchanged", world:all_to_all(given(7, dtype)))
  local handle = world:send_async(given(8, dtype), (rank + 1) % size)
  show("received", world:receive(core.zeros({ 6 * size }, dtype), (rank - 1) % size))
  handle:wait()
end
assert(#list == 28)
io.stdout:write(("%d: %s\n"):format(rank, table.concat(list, ", ")))
]]

describe("between two GPUs", function()
  it("NCCL moves the data, and not where it is switched off, shared or missing", function()
    local text = "print(world:carrier(), world:all_reduce(core.ones { 2 }, 'sum'):get(1))"
    local by_nccl, by_host = { "NCCL 2.28.9\t2.0", "NCCL 2.28.9\t2.0" }, { "nil\t2.0", "nil\t2.0" }
    assert.same({ by_nccl, "" }, { lines(2, text) })
    assert.same({ by_host, "" }, { lines(2, text, { MAREA_NCCL = "off" }) })
    assert.same({ by_host, "" }, { lines(2, text, { MAREA_CUDA_DEVICES = "1" }, "--share-gpu") })
    assert.same({ by_host, "marea: between GPUs data go by way of the host: NCCL's libraries " ..
                           "cannot be loaded: /nowhere/x.so: cannot open shared object file: No " ..
                           "such file or directory\n" },
                { lines(2, text, { MAREA_NCCL_LIBRARY = "/nowhere/x.so" }) })
  end)

  it("moves nothing for one rank, unless asked to", function()
    local text = "print(world:carrier(), world:all_reduce(core.ones { 2 }, 'sum'):get(1))"
    assert.same({ "nil\t1.0" }, lines(nil, text))
    assert.same({ "NCCL 2.28.9\t1.0" }, lines(nil, text, { MAREA_NCCL = "always" }))
  end)

  for ranks = 2, 3 do
    it(("every operation gives the bits of the host's way, on %d ranks"):format(ranks), function()
      local found = lines(ranks, every)
      assert.equal(ranks, #found)
      assert.same(lines(ranks, every, { MAREA_NCCL = "off" }), found)
    end)
  end

  it("the greatest and the least keep a NaN of any rank and order zeros, in every block", function()
    local text = [[
      local nan = 0 / 0
      for _, dtype in ipairs { "f32", "f64" } do
        for r = 0, size - 1 do
          for _, name in ipairs { "max", "min" } do
            local mine = { rank == r and nan or 1 + rank, rank == r and 0.0 or -0.0 }
            local values = { mine[1], mine[2], mine[2], mine[1] }
            local function given() return core.from(values, dtype) end
            local all, part = world:all_reduce(given(), name):values(),
                              world:reduce_scatter(given(), name):values()
            local zero = name == "max" and "inf" or "-inf"
            assert(all[1] ~= all[1] and all[4] ~= all[4], name)
            assert(tostring(1 / all[2]) == zero and tostring(1 / all[3]) == zero, name)
            assert((rank == 0 and part[1] ~= part[1] or rank == 1 and part[2] ~= part[2]), name)
            assert(tostring(1 / part[2 - rank]) == zero, name)
          end
        end
        local far = core.from({ rank == 0 and 1 / 0 or -1e300, -3 - rank }, dtype)
        assert(world:all_reduce(far, "max"):get(1) == 1 / 0 and far:get(2) == -3)
        far = core.from({ rank == 0 and -1 / 0 or 1e300, -3 - rank }, dtype)
        assert(world:all_reduce(far, "min"):get(1) == -1 / 0 and far:get(2) == -4)
      end
      print "good"]]
    assert.same({ "good", "good" }, lines(2, text))
  end)

  it("data of the host, and those that one rank has on its GPU alone, go as before", function()
    local text = [[
      local t = core.host.from({ rank + 1 }, "f64", { 1 })
      print(world:all_reduce(t, "sum"):get(1))
      local mixed = rank == 0 and core.ones { 3 } or core.host.from({ 1, 1, 1 }, "f32", { 3 })
      local sum = world:all_reduce(mixed, "sum"):get(3)
      print(sum, world:all_reduce(core.ones { 1 }, "sum"):get(1))]]
    assert.same({ "2.0\t2.0", "2.0\t2.0", "3.0", "3.0" }, lines(2, text))
  end)

  it("groups have NCCL too, and their operations go in any order of groups", function()
    local text = [[
      local groups = {}
      for i = 1, 3 do groups[i] = world:split(0, i * rank) end
      local handles = {}
      for i = 1, 3 do
        local g = rank == 0 and 4 - i or i
        handles[g] = groups[g]:all_reduce_async(core.full({ 2 }, g + rank, "f64"), "sum")
      end
      for g = 1, 3 do
        assert(groups[g]:carrier() and handles[g]:wait():get(2) == 2 * g + 1)
      end
      print "good"]]
    assert.same({ "good", "good" }, lines(2, text))
  end)

  it("messages wait for no other lane: in a circle, and behind collectives", function()
    local text = [[
      local function full(v) return core.full({ 4 }, v, "f64") end
      local handles, orders = {}, { [0] = { 1, 2 }, { 2, 0 }, { 0, 1 } }
      for _, to in ipairs(orders[rank]) do
        handles[#handles + 1] = world:send_async(full(10 * rank + to), to)
        handles[#handles + 1] = world:all_reduce_async(full(1), "sum")
      end
      for i = 2, 1, -1 do
        local from = orders[rank][i]
        local t = full(0)
        handles[#handles + 1] = world:receive_async(t, from)
        handles[#handles]:wait()
        assert(t:get(4) == 10 * from + rank)
      end
      for _, handle in ipairs(handles) do handle:wait() end
      print "good"]]
    assert.same({ "good", "good", "good" }, lines(3, text))
  end)
end)

describe("a rank that waits for its GPU", function()
  it("starts meanwhile what the GPUs of others wait for", function()
    local text = [[
      for i = 1, 20 do
        local sent = world:send_async(core.full({ 1000 * i }, rank, "f32"), (rank + 1) % size)
        local t = world:receive(core.zeros({ 1000 * i }, "f32"), (rank - 1) % size)
        assert(t:get(1000 * i) == (rank - 1) % size)
        sent:wait()
      end
      print "good"]]
    for _, board in ipairs { "shared", "control" } do
      assert.same({ "good", "good", "good" }, lines(3, text, { MAREA_BOARD = board }))
    end
  end)
end)

describe("the reduction of gradients", function()
  local text = [[
    local function gradients(overlap)
      local list = {}
      for i = 1, 6 do list[i] = { name = "p" .. i, shape = { 101 * i } } end
      local unit = core.unit(list, "f32")
      local reducer = core.reducer(unit, world, { bucket_bytes = 1, overlap = overlap })
      local total = core.zeros({}, "f32")
      for i = 1, 6 do
        local p = unit:parameter("p" .. i)
        local x = core.normal({ 101 * i }, { seed = i, stream = rank })
        total = total:add(p:multiply(x):sum())
      end
      reducer:zero_grad()
      local waits = core.device().waits
      reducer:attach(total):backward()
      assert(core.device().waits == waits, "the host waited for its GPU")
      return unit:share_gradients(world), unit:gradients():hash()
    end
    local way, bits = gradients(true)
    for _ = 1, 5 do assert(select(2, gradients(true)) == bits) end
    assert(select(2, gradients(false)) == bits)
    print(way, bits)]]

  it("runs beside backward, the host not waiting, with the bits that no overlap gives", function()
    local found = {}
    for seed = 1, 3 do
      local list = lines(2, text, { MAREA_CUDA_SEED = tostring(seed) })
      assert.equal(list[1], list[2])
      found[seed] = list[1]
    end
    assert.matches("^NCCL\t%x+$", found[1])
    assert.same({ found[1], found[1] }, { found[2], found[3] })
    local by_host = lines(2, text:gsub('assert%(core.device.-\n', "\n"), { MAREA_NCCL = "off" })
    assert.equal(found[1]:gsub("NCCL", "MPI"), by_host[1])
  end)
end)

describe("when NCCL fails, all ranks stop", function()
  local text = [[
    for i = 1, 5 do world:all_reduce(core.full({ 3 }, i, "f32"), "sum"):values() end
    print "good"]]

  it("with code 4 where it cannot connect them", function()
    ends(4, "NCCL cannot connect the ranks: unhandled system error: no way to the other ranks",
         text, { MAREA_NCCL_FAULT = "1:init" })
  end)

  it("with code 6 where the way to a rank is lost", function()
    ends(6, "x.lua:4: NCCL cannot carry out all_reduce sum f32 x 3 at ", text,
         { MAREA_NCCL_FAULT = "1:remote:3" })
  end)

  it("with code 6 when an operation does not end in time, which names it", function()
    local set = { MAREA_NCCL_FAULT = "1:stall:2", MAREA_NCCL_SECONDS = "1" }
    ends(6, "NCCL has not ended all_reduce sum f32 x 3 at ", text, set)
    ends(6, " within 1 seconds", text, set)
  end)

  it("also while one waits for its GPU, because another raised an error", function()
    local raised = [[
      local t = core.ones { 3 }
      local handle = world:all_reduce_async(t, "sum")
      if rank == 1 then
        for _ = 1, 100 do handle:done() end
        error "enough"
      end
      handle:wait()
      print(t:get(1))]]
    local began = os.time()
    ends(1, "enough", raised, { MAREA_NCCL_FAULT = "1:stall:1" })
    assert.is_true(os.time() - began < 20)
  end)

  it("and a setting that is none is refused", function()
    ends(4, "MAREA_NCCL must be auto, off or always, not 'on'", text, { MAREA_NCCL = "on" })
    ends(4, "MAREA_NCCL_SECONDS must be a number above 0, not 'soon'", text,
         { MAREA_NCCL_SECONDS = "soon" })
  end)
end)

describe("by NCCL", function()
  it("the specs of groups hold on 2 and 3 ranks", function()
    local code, output, errors = launch.run(
      { time_limit = 200,
        set = cuda.variables { MAREA_CUDA_DEVICES = "3", MAREA_DEVICE = "cuda" } },
      { "test", "--ranks", "2,3", "spec/world/comm_spec.lua", "spec/world/group_spec.lua",
        "spec/world/disagreement_spec.lua", "spec/world/together_spec.lua" })
    assert.equal(0, code, output .. errors)
    assert.matches("\n%d+ passed, 0 failed, 0 skipped\n", output)
  end)

  it("a replica trains to the weights that are wanted", function()
    local code, output, errors = launch.run(
      { ranks = 2, threads = 1, time_limit = 60, set = cuda.variables { MAREA_DEVICE = "cuda" } },
      { "spec/recipes/line.lua" })
    assert.same({ 0, "2\t1.000 2.000 3.000\n", "" }, { code, output, errors })
  end)
end)

describe("NCCL's own library", function()
  it("is opened, and says that there is no driver, or moves data", function()
    if not cuda.nccl then return pending "there was no CUDA toolkit with NCCL" end
    local text, set = "print(world:carrier())", { MAREA_NCCL_LIBRARY = cuda.nccl }
    local code, output, errors = run(2, text, set)
    if code == 0 then return assert.matches("NCCL 2", output) end
    assert.matches("^marea: NCCL cannot .* the ranks: .*CUDA driver version is insufficient",
                   errors)
    assert.equal(4, code)
  end)
end)
