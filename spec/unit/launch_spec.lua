local core = require "marea.core"
local launch = require "marea.launch"

local function position(list, ...)
  local wanted = { ... }
  for i = 1, #list - #wanted + 1 do
    local same = true
    for j, word in ipairs(wanted) do same = same and list[i + j - 1] == word end
    if same then return i end
  end
end

describe("launch", function()
  it("runs the program itself when no ranks are asked for", function()
    local words, variables = launch.arguments({}, { "train", "x.lua" })
    assert.are.same({ launch.program(), "train", "x.lua" }, words)
    assert.are.same({}, variables)
  end)

  it("runs mpirun with the program and its words last", function()
    local words, variables = launch.arguments({ ranks = 3 }, { "train", "x.lua", "-n" })
    assert.are.equal("mpirun", words[1])
    assert.is_truthy(position(words, "-n", "3"))
    assert.is_truthy(position(words, "--oversubscribe"))
    assert.are.same({ launch.program(), "train", "x.lua", "-n" },
                    table.move(words, #words - 3, #words, 1, {}))
    assert.are.equal("1", variables.OMPI_ALLOW_RUN_AS_ROOT)
    assert.are.equal("1", variables.OMPI_ALLOW_RUN_AS_ROOT_CONFIRM)
  end)

  it("shares the cores among the ranks", function()
    local cores = core.process.cores()
    local function threads(options)
      local _, variables = launch.arguments(options, {})
      return variables.OMP_NUM_THREADS
    end
    assert.are.equal(tostring(cores), threads { ranks = 1 })
    assert.are.equal("1", threads { ranks = cores })
    assert.are.equal("1", threads { ranks = cores + 1 })
    assert.are.equal("3", threads { ranks = 2, threads = "3" })
  end)

  it("binds ranks to cores only when each has one of its own", function()
    local cores = core.process.cores()
    local function bound(options)
      return position(launch.arguments(options, {}), "--bind-to", "core:overload-allowed") ~= nil
    end
    assert.is_true(bound { ranks = cores })
    assert.is_false(bound { ranks = cores + 1 })
    assert.is_false(bound { ranks = 1, threads = 2 })
  end)

  it("refuses far more ranks than there are cores", function()
    local most = 64 * core.process.cores()
    launch.arguments({ ranks = most }, {})
    for _, ranks in ipairs { most + 1, "100000", 1 << 40 } do
      local good, problem = pcall(launch.arguments, { ranks = ranks }, {})
      assert.is_false(good)
      assert.are.equal(2, problem.code)
      assert.is_truthy(problem.message:find(("^%%-n %s is too many: .* 64 ranks a core, %d$")
                         :format(ranks, most)), problem.message)
    end
  end)

  it("refuses numbers of ranks and threads that are none", function()
    for _, options in ipairs { { ranks = 0 }, { ranks = "two" }, { ranks = 1.5 },
                               { ranks = 2, threads = -1 } } do
      local good, problem = pcall(launch.arguments, options, {})
      assert.is_false(good)
      assert.are.equal(2, problem.code)
    end
  end)

  it("quotes what a shell would take apart", function()
    for _, word in ipairs { "plain", "lr=0.05", "a b", "it's", "$HOME", "`x`", "", "a\nb", "*" } do
      local stream <close> = assert(io.popen("printf '[%s]' " .. launch.quote(word)))
      assert.are.equal("[" .. word .. "]", stream:read("a"))
    end
    assert.are.equal("lr=0.05", launch.quote("lr=0.05"))
  end)

  it("takes a killed rank and a time limit for a lost rank", function()
    assert.are.equal(0, launch.exit_code("exit", 0))
    assert.are.equal(5, launch.exit_code("exit", 5))
    assert.are.equal(6, launch.exit_code("exit", 137))
    assert.are.equal(6, launch.exit_code("signal", 11))
    assert.are.equal(6, launch.exit_code("limit", 0))
  end)
end)
