-- The wrapper ./marea in made-up checkouts, whose tools are shell scripts that note their calls.

local scratch = dofile "spec/support/scratch.lua"

-- What the wrapper itself needs of a system.
local basics = { "sh", "id", "uname", "readlink", "mkdir", "cat", "env", "flock", "sleep", "grep",
                 "chmod", "cp", "rm", "find" }

local fake = {
  -- notes its words; "installs" the packages' programs
  ["apt-get"] = [[echo "apt-get $*" >>"$LOG"
case " $* " in *" install "*" ninja-build"*) cp "$TOOLS/ninja.real" "$TOOLS/ninja" ;; esac]],
  ["apt-cache"] = "exit 0",
  ["pkg-config"] = "exit 0",
  cc = "exit 0",
  mpirun = "exit 0",
  gnuplot = "exit 0",
  cmake = 'echo cmake >>"$LOG"; mkdir -p build/bin; : >build/build.ninja',
  ["ninja.real"] = [[
if mkdir "$TOOLS/busy" 2>/dev/null; then :; else echo overlap >>"$LOG"; fi
sleep 0.3
rm -rf "$TOOLS/busy"
echo ninja >>"$LOG"
mkdir -p build/bin "$2/bin"
cp "$TOOLS/program" "$2/bin/marea"]],
  program = 'echo "ran in $(pwd) with $# words: $*"; exit 5',
}

-- A checkout with the wrapper alone, and a PATH of fakes less those in `without`.
local function checkout(folder, without)
  local tools = folder.path .. "/tools"
  scratch.write(folder.path .. "/log", "")
  for name, body in pairs(fake) do
    if not (without or {})[name] then
      scratch.write(tools .. "/" .. name, "#!/bin/sh\n" .. body .. "\n", true)
    end
  end
  for _, name in ipairs(basics) do
    os.execute(("ln -s $(command -v %s) %s/%s"):format(name, tools, name))
  end
  if not (without or {}).ninja then
    os.execute(("cp %s/ninja.real %s/ninja"):format(tools, tools))
  end
  os.execute(("mkdir -p %s/house && cp marea %s/house/marea"):format(folder.path, folder.path))
end

local function run(folder, words, set)
  return scratch.shell(("cd %s && env -u OMPI_COMM_WORLD_RANK -u PMIX_RANK %s " ..
    "PATH=%s/tools TOOLS=%s/tools LOG=%s/log house/marea %s"):format(folder.path,
    set or "", folder.path, folder.path, folder.path, words or ""))
end

local function log(folder) return scratch.read(folder.path .. "/log") end

describe("the wrapper", function()
  it("builds, then runs the program in the caller's folder with the same words", function()
    local folder <close> = scratch.folder()
    checkout(folder)
    local code, output = run(folder, "train 'a b.lua' lr=1")
    assert.are.equal(5, code)
    assert.are.equal(("ran in %s with 3 words: train a b.lua lr=1\n"):format(folder.path), output)
    assert.are.equal("cmake\nninja\n", log(folder))
    run(folder)
    assert.are.equal("cmake\nninja\nninja\n", log(folder))
  end)

  it("lets waiting threads sleep soon, unless the environment says how they wait", function()
    local folder <close> = scratch.folder()
    checkout(folder)
    scratch.write(folder.path .. "/tools/program", "#!/bin/sh\necho $GOMP_SPINCOUNT\n", true)
    local count = require("marea.launch").spin_count
    for set, expected in pairs {
      ["-u GOMP_SPINCOUNT -u OMP_WAIT_POLICY"] = count, ["GOMP_SPINCOUNT=77"] = "77",
      ["-u GOMP_SPINCOUNT OMP_WAIT_POLICY=active"] = "" } do
      local _, output = run(folder, "train", set)
      assert.are.equal(expected, output:match "^%s*(.-)%s*$")
    end
  end)

  it("prints what is missing and installs exactly that", function()
    local folder <close> = scratch.folder()
    checkout(folder, { ninja = true })
    local root = assert(io.popen("id -u")):read("l") == "0"
    local code, _, errors = run(folder)
    if not root then return pending("as another user sudo is asked") end
    assert.are.equal(5, code)
    assert.is_truthy(errors:find("marea: installing: ninja-build\n", 1, true), errors)
    assert.is_truthy(log(folder):match(
      "^apt%-get [^\n]*install %-y %-%-no%-install%-recommends ninja%-build\ncmake\nninja\n$"),
      log(folder))
  end)

  it("names the packages elsewhere and stops with 4", function()
    local folder <close> = scratch.folder()
    checkout(folder, { ninja = true, mpirun = true, ["apt-get"] = true, ["apt-cache"] = true })
    local code, output, errors = run(folder)
    assert.are.equal(4, code)
    assert.are.equal("", output)
    assert.is_truthy(errors:find("dnf install ninja-build openmpi\n", 1, true), errors)
    assert.is_truthy(errors:find("brew install ninja open-mpi\n", 1, true), errors)
    assert.are.equal("", log(folder))
  end)

  it("stops with 4 and shows the log when the build fails", function()
    local folder <close> = scratch.folder()
    checkout(folder)
    scratch.write(folder.path .. "/tools/ninja", "#!/bin/sh\necho error: moon; exit 1\n", true)
    local code, output, errors = run(folder)
    assert.are.equal(4, code)
    assert.are.equal("", output)
    assert.is_truthy(errors:find("error: moon", 1, true))
    assert.is_truthy(errors:find("marea: the build failed", 1, true))
  end)

  it("builds once at a time", function()
    local folder <close> = scratch.folder()
    checkout(folder)
    local set = ("PATH=%s/tools TOOLS=%s/tools LOG=%s/log"):format(folder.path, folder.path,
                                                                  folder.path)
    local one = ("env %s %s/house/marea"):format(set, folder.path)
    local code, output = scratch.shell(("%s & %s & wait $!; wait"):format(one, one))
    assert.are.equal(0, code)
    assert.are.equal(2, select(2, output:gsub("ran in", "")))
    assert.are.equal("cmake\nninja\nninja\n", log(folder))
  end)

  it("only runs the built program under mpirun", function()
    local folder <close> = scratch.folder()
    checkout(folder)
    scratch.write(folder.path .. "/house/build/bin/marea", "#!/bin/sh\n" .. fake.program, true)
    for _, set in ipairs { "OMPI_COMM_WORLD_RANK=0", "PMIX_RANK=1" } do
      local code, output = run(folder, "doctor", set)
      assert.are.equal(5, code)
      assert.is_truthy(output:find("with 1 words: doctor", 1, true))
    end
    assert.are.equal("", log(folder))
  end)

  it("says once and stops with 4 when there is no program under mpirun", function()
    local folder <close> = scratch.folder()
    checkout(folder)
    local code, _, errors = run(folder, "doctor", "OMPI_COMM_WORLD_RANK=0")
    assert.are.equal(4, code)
    assert.is_truthy(errors:find("^marea: there is no program to run under mpirun"))
    code, _, errors = run(folder, "doctor", "OMPI_COMM_WORLD_RANK=1")
    assert.are.equal(4, code)
    assert.are.equal("", errors)
    assert.are.equal("", log(folder))
  end)

  it("is found through a link", function()
    local folder <close> = scratch.folder()
    checkout(folder)
    os.execute(("ln -s ../house/marea %s/tools/tide"):format(folder.path))
    local code, output = scratch.shell(("cd / && PATH=%s/tools TOOLS=%s/tools LOG=%s/log tide x")
      :format(folder.path, folder.path, folder.path))
    assert.are.equal(5, code)
    assert.are.equal("ran in / with 1 words: x\n", output)
  end)
end)
