-- Files and disks: tensor files that are none, checkpoints that were changed, folders that cannot
-- be made, a disk that is full, two runs in one folder at once.

local bad = dofile "spec/support/bad_input.lua"
local checkpoint = require "marea.checkpoint"
local scratch = dofile "spec/support/scratch.lua"
local train = bad.train

local function shell(format, ...)
  local code, output, errors = scratch.shell(format:format(...))
  return code == 0, output .. errors
end

describe("a tensor file that is", function()
  local function file(header, bytes) return string.pack("<s8", header) .. ("\0"):rep(bytes) end

  local function entry(name, first, last)
    return ('"%s":{"dtype":"F32","shape":[2],"data_offsets":[%d,%d]}'):format(name, first, last)
  end

  local function two(a, b) return "{" .. a .. "," .. b .. "}" end

  local kinds = {
    { "empty", "", "no safetensors file: expected at least 8 bytes, found 0" },
    { "foreign", "%PDF-1.4 and so on", "no safetensors file: a header of at most 100000000 " ..
      "bytes expected, 3759996809423114277 found" },
    { "of an endless header", ("\xff"):rep(8) .. "{}", "no safetensors file: a header of at " ..
      "most 100000000 bytes expected, 18446744073709551615 found" },
    { "cut off in its header", string.pack("<I8", 100) .. "{}",
      "truncated: a header of 100 bytes expected, 2 found" },
    { "cut off in its elements", file("{" .. entry("a", 0, 8) .. "}", 7),
      "tensor 'a': offsets within the file's 7 bytes of elements expected, 0 to 8 found" },
    { "pointing out of itself", file("{" .. entry("a", 8, 16) .. "}", 8),
      "tensor 'a': offsets within the file's 8 bytes of elements expected, 8 to 16 found" },
    { "overlapping", file(two(entry("a", 0, 8), entry("b", 4, 12)), 12),
      "tensor 'b' overlaps another: begin at 8 expected, 4 found" },
    { "full of gaps", file(two(entry("a", 0, 8), entry("b", 12, 20)), 20),
      "tensor 'b' follows a gap: begin at 8 expected, 12 found" },
    { "naming a tensor twice", file(two(entry("a", 0, 8), entry("a", 8, 16)), 16),
      "damaged header: duplicate object key near '\"a\"', at its byte 57" },
  }

  local function cases(words, prefix)
    local list = {}
    for _, kind in ipairs(kinds) do
      list[#list + 1] = { kind[1], files = { ["f.safetensors"] = kind[2] }, words = words,
                          message = prefix .. "f.safetensors: " .. kind[3] }
    end
    return list
  end

  it("damaged is refused as a corpus, code 3, with the recipe's line", function()
    bad.expect_all(cases(nil, "@corpus: "), {
      code = 3, fields = { corpus = "function() return corpus.open 'PLACE/f.safetensors' end" } })
  end)

  it("damaged is refused as weights, code 3", function()
    bad.expect_all(cases(train("--init", "PLACE/f.safetensors"), ""), { code = 3 })
  end)

  it("whole and of something else is refused too, on all ranks once", function()
    local whole = { ["f.safetensors"] = file("{" .. entry("a", 0, 8) .. "}", 8) }
    bad.expect_all({
      { "corpus", code = 3,
        fields = { corpus = "function() return corpus.open 'PLACE/f.safetensors' end" },
        message = "@corpus: f.safetensors: tensor 'inputs' expected, none of its 1 has this name" },
      { "weights", code = 2, words = train("--init", "PLACE/f.safetensors"),
        message = "f.safetensors does not fit the recipe's model: embedding.weight is missing.*" },
    }, { files = whole, ranks = { false, 2 }, pattern = true })
  end)
end)

describe("a checkpoint", function()
  local trained
  local saved = "outputs/tide/checkpoints/step-000004"
  local named = "OUTPUTS/tide/checkpoints/step-000004"
  local parts = { "parameters.safetensors", "optimizer.safetensors", "state.json", "history.jsonl",
                  "manifest.json" }

  setup(function()
    trained = bad.place { config = "{ updates = 4, lr = 0.1, save_every = 2 }" }
    assert.equal(0, trained:run(nil).code)
  end)

  teardown(function() getmetatable(trained).__close(trained) end)

  -- A place with the run that was trained, in which `change(path)` changed files of a checkpoint.
  local function changed(names, change)
    local place = bad.place { config = "{ updates = 4, lr = 0.1, save_every = 2 }" }
    assert.is_true(shell("cp -a '%s' '%s'", trained.outputs, place.outputs))
    for _, name in ipairs(names) do change(("%s/%s/%s"):format(place.path, saved, name)) end
    return place
  end

  local function flip(path)
    local text = scratch.read(path)
    local at = #text // 2
    scratch.write(path, text:sub(1, at - 1) .. string.char(text:byte(at) ~ 1) .. text:sub(at + 1))
  end

  local function cut(path) scratch.write(path, scratch.read(path):sub(1, -2)) end

  local readers = {
    { "resume", train("updates=6", "--resume", named) },
    { "resume on two ranks", train("updates=6", "--resume", named), ranks = 2 },
    { "evaluate", { "evaluate", "RECIPE", "--outputs", "OUTPUTS", "--checkpoint", named } },
    { "compare", { "compare", named, "OUTPUTS/tide/checkpoints/step-000002" } },
  }

  it("with a byte changed is refused by all that read it, code 3, and changes nothing", function()
    for i, name in ipairs(parts) do
      local place <close> = changed({ name }, flip)
      local reader = readers[(i - 1) % #readers + 1]
      bad.expect(place, { name .. ", " .. reader[1], words = reader[2], ranks = reader.ranks,
                          code = 3, pattern = true,
                          message = (saved .. "/" .. name):gsub("%p", "%%%0") ..
                            " is damaged: .*" })
    end
  end)

  it("with a file cut off or gone is refused, code 3", function()
    for i, name in ipairs(parts) do
      local place <close> = changed({ name }, i % 2 == 0 and os.remove or cut)
      bad.expect(place, { name, words = train("updates=6", "--resume", named), code = 3,
                          message = saved:gsub("%p", "%%%0") .. ".*", pattern = true })
    end
  end)

  it("that is damaged is passed over for an older one, unless there is none", function()
    local place <close> = changed({ "state.json" }, flip)
    local result = place:run(nil, train("updates=6", "--resume", "latest"))
    assert.equal(0, result.code)
    assert.is_truthy(result.errors:find("resuming from outputs/tide/checkpoints/step-000002", 1,
                                        true), result.errors)
    assert.is_truthy(result.errors:find(saved .. "/state.json is damaged: ", 1, true))
    local hopeless <close> = changed({ "state.json", "../step-000002/history.jsonl" }, flip)
    bad.expect(hopeless, { "both", words = train("updates=6", "--resume", "latest"), code = 3,
                           message = ".*state.json is damaged: .*; .*history.jsonl is damaged: .*",
                           pattern = true })
  end)
end)

describe("a folder of runs that cannot be made", function()
  it("is refused with code 1, on all ranks once", function()
    bad.expect_all({
      { "a file", ranks = { false, 2 }, files = { outputs = "" },
        message = "cannot make folder outputs: a file is in its place" },
      { "below a file", files = { outputs = "" },
        words = { "train", "RECIPE", "--outputs", "OUTPUTS/below" },
        message = "cannot make folder outputs: a file is in its place" },
      { "a run that is a file", files = { ["outputs/tide"] = "" },
        message = "cannot make folder outputs/tide: a file is in its place" },
    }, { code = 1 })
  end)
end)

describe("a disk", function()
  -- Mounts a file system of so many KiB at the place's outputs; nil where that is not allowed.
  local function mounted(place, kib, more)
    shell("mkdir -p '%s'", place.outputs)
    if not shell("mount -t tmpfs -o size=%dk%s tmpfs '%s'", kib, more or "", place.outputs) then
      return nil
    end
    return setmetatable({}, { __close = function() shell("umount '%s'", place.outputs) end })
  end

  local function checkpoints(place)
    local count = 0
    local _, listing = shell("ls '%s/tide/checkpoints'", place.outputs)
    for name in listing:gmatch("step%-%d+") do
      checkpoint.verify(place.outputs .. "/tide/checkpoints/" .. name)
      count = count + 1
    end
    return count
  end

  it("that fills up ends the run with code 1 and keeps what was whole", function()
    local most = 0
    for i, kib in ipairs { 24, 40, 48, 56, 64, 80, 120, 160 } do
      local place <close> = bad.place {
        config = "{ updates = 500, lr = 0.1, save_every = 1, keep = 500 }" }
      local disk <close> = mounted(place, kib)
      if not disk then
        pending "mounting a small disk takes root"
        return
      end
      local result = place:run(i % 2 == 0 and 2 or nil)
      local rest = result.errors:gsub("marea: [^\n]*disk full: No space left on device\n", "")
      assert.equal("", rest)
      assert.equal(1, result.code)
      most = math.max(most, checkpoints(place))
      bad.expect_whole_files(place.outputs)
    end
    assert.is_true(most > 0)
  end)

  it("that takes nothing is refused with code 1", function()
    local place <close> = bad.place()
    local disk <close> = mounted(place, 64, ",ro")
    if not disk then
      pending "mounting a small disk takes root"
      return
    end
    bad.expect(place, { "read only", code = 1, pattern = true,
                        message = "cannot .*outputs/.*: Read%-only file system" })
  end)
end)

describe("a run's folder in which another run is at work", function()
  it("is refused with code 4, and that run goes on", function()
    local waiting = "function(model, batch) local go repeat os.execute 'sleep 0.02' " ..
      "go = io.open 'PLACE/go' until go go:close() " ..
      "return nn.cross_entropy(model(batch), batch.targets) end"
    local place <close> = bad.place { loss = waiting }
    place:start(nil)
    local first <close>, out, err = place.process, place.out, place.err
    local deadline = os.time() + 20
    while not scratch.read(place.outputs .. "/tide/rank-0.jsonl") and os.time() < deadline do
      os.execute "sleep 0.02"
    end
    for _, case in ipairs { { "train" }, { "train", ranks = 2 }, { "prepare" } } do
      place:start(case.ranks, { case[1], "RECIPE", "--outputs", "OUTPUTS" })
      local result = place:finish(true)
      assert.equal(4, result.code)
      assert.is_truthy(result.errors:find(("^marea: folder outputs/tide is in use by process %d " ..
                                           "on [^\n]+\n$"):format(first:id())), result.errors)
      assert.equal(place.before, place:listing())
    end
    scratch.write(place.path .. "/go", "")
    place.process, place.out, place.err = first, out, err
    assert.equal(0, place:finish().code)
    bad.expect_whole_files(place.outputs)
  end)
end)
