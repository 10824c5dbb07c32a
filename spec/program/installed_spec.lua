-- An installed marea, used from folders of one's own: nothing of the checkout is needed, and
-- nothing is written anywhere but where the user works.

local core = require "marea.core"
local launch = require "marea.launch"
local scratch = require "spec.support.scratch"

local build = launch.program():match("^(.*)/bin/marea$")
local can_install = core.file.exists(build .. "/cmake_install.cmake")
local as_rank = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 " ..
  "timeout 60 mpirun --quiet --oversubscribe -n 2"

local mistake
for line in io.lines "spec/recipes/line.lua" do
  mistake = (mistake or 0) + 1
  if line:find("the mistake", 1, true) then break end
end

local recipe = [[
local marea = require "marea"
local shared = require "shared"
return marea.recipe {
  name = "mine",
  config = { ranks = 2, updates = 1, batch_size_per_rank = 1 },
  corpus = function() return marea.corpus.jsonl { path = "own.jsonl" } end,
  model = shared.model,
  optimizer = function(model, c) return marea.optim.SGD(model, { lr = c.lr }) end,
  plan = function(rows, c) return marea.sampler.shuffled(rows, c) end,
  loss = function(model, batch)
    if os.getenv "MISTAKE" then return model(batch):linear(batch.targets) end
    return marea.nn.cross_entropy(model(batch), batch.targets)
  end,
}
]]

local shared = [[
local nn = require("marea").nn
return { model = function()
  return nn.Transformer { vocabulary = 258, context = 16, width = 8, heads = 1, layers = 1 }
end }
]]

describe("an installed marea", function()
  local folder, marea, elsewhere, listing

  -- Runs a shell command in a folder that belongs to no project.
  local function run(format, ...)
    return scratch.shell(("cd %s && "):format(elsewhere) .. format:format(...))
  end

  local function installed_files() return select(2, scratch.shell("find " .. marea .. "/../..")) end

  setup(function()
    if not can_install then return end
    folder = scratch.folder()
    elsewhere = folder.path .. "/elsewhere"
    marea = folder.path .. "/prefix/bin/marea"
    -- Beside the prefix lies a folder that is taken for the library of a checkout's build.
    scratch.write(folder.path .. "/lua/marea/init.lua", "error 'another library'\n")
    scratch.write(folder.path .. "/lua/marea/cli/main.lua", "error 'another library'\n")
    scratch.write(elsewhere .. "/letter.txt", "the sea\n")
    local code, output, errors = scratch.shell(("cmake --install %s --prefix %s/prefix"):format(
      build, folder.path))
    assert(code == 0, output .. errors)
    listing = installed_files()
  end)

  teardown(function()
    if folder then getmetatable(folder).__close(folder) end
  end)

  local function it_can(name, test)
    it(name, function()
      if not can_install then return pending("this program was not built by cmake") end
      test()
    end)
  end

  it_can("trains what marea new writes, on two ranks, into the folder where one works", function()
    local code, output, errors = run("%s new first && %s launch -n 2 train first.lua width=16 " ..
                                     "layers=1 updates=1 --quiet", marea, marea)
    assert.equal(0, code, output .. errors)
    assert.is_true(core.file.exists(elsewhere .. "/outputs/first/run.json"))
  end)

  it_can("finds what lies beside a recipe, from another folder", function()
    local project = folder.path .. "/project"
    scratch.write(project .. "/mine.lua", recipe)
    scratch.write(project .. "/shared.lua", shared)
    scratch.write(project .. "/own.jsonl", ('{"text":"the sea","split":"train"}\n' ..
      '{"text":"the tide","split":"train"}\n{"text":"the moon","split":"test"}\n'))
    local code, output, errors = run("%s launch -n 2 train ../project/mine.lua --quiet", marea)
    assert.equal(0, code, output .. errors)
    assert.is_true(core.file.exists(elsewhere .. "/outputs/mine/run.json"))
    assert.same({ "mine.lua", "own.jsonl", "shared.lua" }, core.file.list(project))
    code, output, errors = run("%s evaluate ../project/mine.lua", marea)
    assert.equal(0, code, errors)
    assert.is_truthy(output:find("8 tokens: loss", 1, true), output)
    code, output, errors = run("MISTAKE=1 %s launch -n 2 train ../project/mine.lua --run broken",
                               marea)
    assert.equal(1, code, output .. errors)
    assert.is_truthy(errors:find("marea: ../project/mine.lua:11: linear: ", 1, true), errors)
  end)

  it_can("brings its recipes and their data", function()
    local code, output, errors = run("%s prepare %s/prefix/share/marea/recipes/verses.lua " ..
                                     "ranks=1 updates=1", marea, folder.path)
    assert.equal(0, code, output .. errors)
    assert.is_true(core.file.exists(elsewhere .. "/outputs/verses/plan.json"))
    assert.equal(0, (run("%s exercise --answer", marea)))
    assert.is_true(core.file.exists(folder.path .. "/prefix/share/marea/lua/REFERENCE.md"))
  end)

  it_can("says that specs are in a checkout", function()
    local code, _, errors = run("%s test", marea)
    assert.equal(2, code)
    assert.equal("marea: test: an installed marea comes without specs: name files of your own, " ..
                 "or run ./marea test in a checkout\n", errors)
  end)

  it_can("runs scripts, and is a module of plain Lua, alone and on two ranks", function()
    local script = core.file.read "spec/recipes/line.lua"
    scratch.write(elsewhere .. "/line.lua", script)
    local lua = "lua5.4"
    local paths = ("LUA_PATH='%s/prefix/share/marea/lua/?.lua;" ..
      "%s/prefix/share/marea/lua/?/init.lua;;' LUA_CPATH='%s/prefix/lib/lua/5.4/?.so;;'"):format(
      folder.path, folder.path, folder.path)
    local code, alone, errors = run("%s line.lua", marea)
    assert.equal(0, code, errors)
    assert.is_truthy(alone:find("^1\t1.000 2.000 3.000\n$"), alone)
    local _, together = run("%s launch -n 2 line.lua", marea)
    assert.is_truthy(together:find("^2\t1.000 2.000 3.000\n$"), together)
    if (scratch.shell("command -v " .. lua)) ~= 0 then return pending("there is no " .. lua) end
    assert.equal(alone, (select(2, run("%s %s line.lua", paths, lua))))
    local on_two, output, problem = run("%s %s %s line.lua", paths, as_rank, lua)
    assert.equal(0, on_two, problem)
    assert.equal(together, output)
    code, _, errors = run("%s %s line.lua wrong", paths, lua)
    assert.equal(1, code)
    assert.is_truthy(errors:find(("^lua5.4: line.lua:%d: matmul: "):format(mistake)), errors)
  end)

  it_can("is not written to", function() assert.equal(listing, installed_files()) end)
end)
