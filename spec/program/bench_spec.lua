-- marea bench as a program: fields, not figures; and the recipe that it is for.

local json = require "marea.json"
local launch = require "marea.launch"
local scratch = dofile "spec/support/scratch.lua"
local torch = require "marea.bench.torch"

local function run(ranks, outputs, ...)
  return launch.run({ ranks = ranks, threads = 1, time_limit = 120 },
                    { "bench", "recipes/gpt.lua", "--outputs", outputs, "--seconds", "0.1", ... })
end

local function number(value) return type(value) == "number" and value >= 0 end

local function check(record)
  for _, name in ipairs { "ms", "floor_ms", "step_to_floor" } do
    assert.is_true(number(record[name].median), name)
    assert.is_true(record[name].low <= record[name].high, name)
  end
  for _, name in ipairs { "tokens_per_second", "gflops", "ceiling_gflops", "ceiling_share",
                          "memory_peak", "resident_peak", "bytes_sent" } do
    assert.is_true(number(record[name]), name)
  end
  assert.is_true(record.disturbed.share <= record.disturbed.most)
  assert.equal(1024, record.tokens)
  assert.equal(112384, record.parameters)
  assert.is_true(math.abs(record.gflop_per_step.total - 0.830472192) < 1e-9)
  assert.is_truthy(record.date:find "^%d+%-%d+%-%d+T")
end

describe("marea bench", function()
  it("stores and prints the same record, with a profile that adds up", function()
    local folder <close> = scratch.folder()
    local code, output, errors = run(nil, folder.path, "--profile", "--json")
    assert.equal(0, code, errors)
    local record = json.decode(output)
    assert.same(record, json.decode(scratch.read(folder.path .. "/gpt/bench.json")))
    check(record)
    local sum = 0
    for _, ms in pairs(record.profile.parts) do sum = sum + ms end
    assert.is_true(math.abs(sum - record.profile.total) < 1e-6 * record.profile.total)
  end)

  it("measures two ranks, their collectives, and each rank by itself", function()
    local folder <close> = scratch.folder()
    local code, output, errors = run(2, folder.path, "--collectives", "--scaling", "--json")
    assert.equal(0, code, errors)
    local record = json.decode(output)
    check(record)
    assert.is_true(record.bytes_sent > 4 * record.parameters)
    assert.equal(7, #record.collectives.sizes)
    for _, row in ipairs(record.collectives.sizes) do
      assert.is_true(row.microseconds > 0 and row.mpi_microseconds > 0 and row.mean_to_sum > 0)
      assert.is_true(row.window_microseconds > 0 and row.window_to_mpi > 0)
    end
    assert.is_true(record.collectives.overlap.with_ms > 0)
    local scaling = record.scaling
    for _, name in ipairs { "step", "products", "ratio" } do
      assert.is_true(scaling[name].low > 0, name)
      assert.equal(scaling.turns, scaling[name].count)
    end
    assert.is_true(scaling.step_alone_ms > scaling.products_alone_ms)
  end)

  it("says what it found", function()
    local folder <close> = scratch.folder()
    local code, output, errors = run(nil, folder.path, "--profile")
    assert.equal(0, code, errors)
    for _, words in ipairs { "112384 parameters", "step / products", "self_attention", "disturbed",
                             "total" } do
      assert.is_truthy(output:find(words, 1, true), words)
    end
  end)

  it("measures collectives where no memory is shared, too", function()
    local folder <close> = scratch.folder()
    local code, output, errors = launch.run(
      { ranks = 2, threads = 1, time_limit = 120, set = { MAREA_WINDOW_BYTES = "1000" } },
      { "bench", "recipes/gpt.lua", "--outputs", folder.path, "--seconds", "0.1", "--collectives" })
    assert.equal(0, code, errors)
    assert.is_truthy(output:find "4%.10 kB +%- +%- +%d", output)
    local _, told = errors:gsub("do not fit into shared memory", "")
    assert.equal(1, told, errors)
  end)

  it("refuses collectives of one rank and peers that it does not know", function()
    local folder <close> = scratch.folder()
    local code, _, errors = run(nil, folder.path, "--collectives")
    assert.equal(2, code)
    assert.is_truthy(errors:find("launch -n 2 bench", 1, true), errors)
    code = run(nil, folder.path, "--scaling")
    assert.equal(2, code)
    code = run(nil, folder.path, "--against", "abacus")
    assert.equal(2, code)
  end)

  it("refuses the growth of a model whose heads divide no width, before it measures", function()
    local folder <close> = scratch.folder()
    local path = folder.path .. "/odd.lua"
    scratch.write(path, [[
      local marea = require "marea"
      return marea.recipe {
        name = "odd", config = { updates = 2, lr = 0.1 },
        corpus = function(c) return marea.corpus.symbols { seed = c.seed, train = 32 } end,
        model = function()
          return marea.nn.Transformer { vocabulary = 6, classes = 4, context = 128, width = 24,
                                        heads = 2, layers = 1 }
        end,
        optimizer = function(p, c) return marea.optim.SGD(p, { lr = c.lr }) end,
        plan = function(rows, c) return marea.sampler.by_length(rows, c) end,
      }]])
    local code, _, errors = launch.run({ threads = 1, time_limit = 60 }, {
      "bench", path, "--growth", "--outputs", folder.path })
    assert.equal(2, code)
    assert.is_truthy(errors:find("must divide 64; this recipe's is 12", 1, true), errors)
  end)

  it("takes turns with PyTorch where it is found, and says so where not", function()
    local folder <close> = scratch.folder()
    local code, output, errors = run(nil, folder.path, "--against", "torch", "--json")
    if not torch.find() then
      assert.equal(4, code)
      assert.is_truthy(errors:find("python3-torch", 1, true), errors)
      return
    end
    assert.equal(0, code, errors)
    local record = json.decode(output)
    assert.is_true(record.torch.ratio.median > 0)
    local least = math.huge
    for _, peer in ipairs(record.torch.variants) do least = math.min(least, peer.resident_peak) end
    assert.is_true(least > 50e6) -- PyTorch alone has more
    assert.equal(record.resident_peak / least, record.torch.resident_ratio)
  end)
end)

local function spread(values) return values.low > 0 and values.low <= values.high end

describe("marea bench beyond the step", function()
  local function tiny(outputs, set, ...)
    return launch.run({ threads = 1, time_limit = 120, set = set },
                      { "bench", "spec/recipes/tiny.lua", "--outputs", outputs, "--seconds", "0.1",
                        "--json", ... })
  end

  it("times small recorded operations, beside PyTorch's where it is found", function()
    local folder <close> = scratch.folder()
    local against = torch.find() and { "--against", "torch" } or {}
    local code, output, errors = run(nil, folder.path, "--operations", "--json",
                                     table.unpack(against))
    assert.equal(0, code, errors)
    local found = json.decode(output).operations
    assert.equal(6, #found.rows)
    for _, row in ipairs(found.rows) do
      assert.is_true(spread(row.ns), row.name)
      assert.equal(#against > 0, row.ratio ~= nil and spread(row.torch_ns))
    end
    assert.equal(#against > 0, found.ratio ~= nil)
  end)

  it("counts instructions of an update where valgrind is found", function()
    local folder <close> = scratch.folder()
    local code, output, errors = tiny(folder.path, nil, "--instructions", "ranks=1")
    assert.equal(0, code, errors)
    local found = json.decode(output).instructions
    if not require("marea.bench.instructions").available() then
      assert.is_nil(found)
      return
    end
    local sum = 0
    for _, count in pairs(found.parts) do sum = sum + count end
    assert.equal(found.total, sum)
    assert.is_true(found.parts.Lua > 0 and found.parts.kernels > 0 and found.parts.engine > 0)
  end)

  it("says in one line that there is no valgrind", function()
    local folder <close> = scratch.folder()
    local code, output, errors = tiny(folder.path, { PATH = folder.path }, "--instructions",
                                      "ranks=1")
    assert.equal(0, code, errors)
    assert.is_nil(json.decode(output).instructions)
    assert.is_truthy(errors:find("no valgrind here, so no instructions are counted", 1, true))
  end)

  it("runs whole trainings in turns", function()
    local folder <close> = scratch.folder()
    local code, output, errors = tiny(folder.path, nil, "--whole-run")
    assert.equal(0, code, errors)
    local found = json.decode(output).whole_run
    assert.is_true(spread(found.seconds) and spread(found.loop_seconds))
    assert.is_true(found.loop_seconds.high < found.seconds.low)
    assert.is_nil(found.torch)
  end)

  it("refuses what would not be measured beside them, and seconds out of range", function()
    local folder <close> = scratch.folder()
    for _, case in ipairs {
      { "--whole-run measures trainings only: give --growth to", "--whole-run", "--growth" },
      { "--seconds must be a number above 0, at most 3600, got 3601", "--seconds", "3601" },
    } do
      local code, _, errors = run(nil, folder.path, table.unpack(case, 2))
      assert.equal(2, code)
      assert.is_truthy(errors:find(case[1], 1, true), errors)
    end
  end)

  it("ends with a training's code and words", function()
    local folder <close> = scratch.folder()
    local code, _, errors = launch.run({ time_limit = 60 }, {
      "bench", "spec/recipes/tiny.lua", "raise_at=1", "--whole-run", "--outputs", folder.path })
    assert.equal(1, code)
    assert.is_truthy(errors:find("the training ended with code 1: .*the tide went out"), errors)
  end)

  it("runs PyTorch's training of the same plan beside it", function()
    if not torch.find() then return pending "there is no PyTorch" end
    local folder <close> = scratch.folder()
    local code, output, errors = launch.run({ time_limit = 200 }, {
      "bench", "recipes/minimum.lua", "updates=3", "stop=3", "--whole-run", "--against", "torch",
      "--outputs", folder.path, "--json" })
    assert.equal(0, code, errors)
    local found = json.decode(output).whole_run
    assert.same({ 2, 3 }, { found.ranks, found.updates })
    assert.is_true(found.torch.loop_seconds.high < found.torch.seconds.low)
    assert.is_true(spread(found.ratio) and spread(found.loop_ratio))
  end)

  it("refuses on several ranks what is for one process", function()
    local folder <close> = scratch.folder()
    local code, _, errors = run(2, folder.path, "--whole-run")
    assert.equal(2, code)
    assert.is_truthy(errors:find("--whole-run is for one process", 1, true), errors)
  end)
end)

describe("recipes/gpt.lua", function()
  it("passes parity on two ranks", function()
    local folder <close> = scratch.folder()
    local code, output = launch.run(
      { ranks = 2, threads = 1, time_limit = 120 },
      { "parity", "recipes/gpt.lua", "--outputs", folder.path, "--json" })
    assert.equal(0, code)
    assert.is_true(json.decode(output).pass)
  end)

  it("refuses another size", function()
    local folder <close> = scratch.folder()
    local code, _, errors = launch.run({ time_limit = 60 }, {
      "train", "recipes/gpt.lua", "size=Q", "--outputs", folder.path })
    assert.is_true(code ~= 0)
    assert.is_truthy(errors:find("size must be S, M, L or 124M", 1, true), errors)
  end)
end)
