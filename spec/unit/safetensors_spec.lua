local core = require "marea.core"
local fault = require "marea.fault"
local scratch = dofile "spec/support/scratch.lua"

local safetensors = core.safetensors

local function refusal(call, ...)
  local ok, raised = pcall(call, ...)
  assert.is_false(ok)
  return fault.of(raised)
end

local function assert_refused(code, expected, call, ...)
  local message, found = refusal(call, ...)
  assert.truthy(message:find(expected, 1, true), message)
  assert.equal(code, found)
end

describe("safetensors files", function()
  local folder, path

  before_each(function()
    folder = scratch.folder()
    path = folder.path .. "/t.safetensors"
  end)

  after_each(function()
    core.file.fail_at(0)
    getmetatable(folder).__close(folder)
  end)

  local function sample()
    return {
      { "b.weight", core.from({ { 0.1, 1 / 3, -0.0 }, { 1e-40, 3e38, 7 } }) },
      { "a.scalar", core.from({ math.pi }, "f64", {}) },
      { "none", core.zeros({ 0, 4 }, "i64") },
      { "ids", core.from({ 2147483647, -2147483648, -100 }, "i32") },
      { "counts", core.from({ math.maxinteger, math.mininteger, 9007199254740993 }, "i64") },
      { 'näme "quoted"\n', core.from({ 1 / 0, -1 / 0 }, "f64") },
    }
  end

  describe("written and read back", function()
    it("hold the same bits, shapes and order", function()
      local list = sample()
      safetensors.write(path, list)
      local file <close> = safetensors.open(path)
      for i, item in ipairs(list) do
        local name, tensor = item[1], item[2]
        assert.equal(name, file:names()[i])
        assert.is_true(file:has(name))
        assert.same(tensor:shape(), file:shape(name))
        assert.equal(tensor:dtype(), file:dtype(name))
        assert.equal(tensor:hash(), file:tensor(name):hash())
      end
      assert.equal(#list, #file:names())
      assert.same({}, file:metadata())
    end)

    it("hold the metadata", function()
      local metadata = { z = "", a = "line\nbreak", ["ключ"] = '{"json": [1, 2]}' }
      safetensors.write(path, {}, metadata)
      local file <close> = safetensors.open(path)
      assert.same(metadata, file:metadata())
      assert.same({}, file:names())
    end)

    it("are the same bytes each time, in the published form", function()
      safetensors.write(path, { { "w", core.from({ 1, 2 }, "i32") } }, { b = "2", a = "1" })
      local header = '{"__metadata__":{"a":"1","b":"2"},' ..
        '"w":{"dtype":"I32","shape":[2],"data_offsets":[0,8]}}'
      header = header .. (" "):rep(-#header % 8)
      assert.equal(string.pack("<I8", #header) .. header .. string.pack("<i4i4", 1, 2),
                   core.file.read(path))
    end)

    it("can be read after the file was replaced", function()
      safetensors.write(path, { { "w", core.from({ 1 }) } })
      local file <close> = safetensors.open(path)
      safetensors.write(path, { { "w", core.from({ 2 }) } })
      assert.equal(1, file:tensor("w"):item())
    end)
  end)

  it("of other programs open: any key order, any padding, dtypes that marea lacks", function()
    local header = ' "F16":{"shape":[2,1],"data_offsets":[8,12],"dtype":"F16"},' ..
      '"f":{"data_offsets":[0,8],"dtype":"F64","shape":[]},"four":{"dtype":"F4","shape":[3,2],' ..
      '"data_offsets":[13,16]},"bool":{"dtype":"BOOL","shape":[1],"data_offsets":[12,13]}}'
    header = "{" .. header:sub(2)
    core.file.write(path, string.pack("<I8", #header) .. header .. string.pack("<d", 0.1) ..
                    ("\1"):rep(8))
    local file <close> = safetensors.open(path)
    assert.same({ "f", "F16", "bool", "four" }, file:names())
    assert.same({ 2, 1 }, file:shape("F16"))
    assert.equal("F16", file:dtype("F16"))
    assert.equal("f64", file:dtype("f"))
    assert.equal(0.1, file:tensor("f"):item())
    assert_refused(3, "tensor 'F16': F32, F64, I32 or I64 expected, F16 found", file.tensor, file,
                   "F16")
  end)

  it("of the golden values open, with odd alignments", function()
    local file <close> = safetensors.open("spec/golden/operations.safetensors")
    assert.is_true(#file:names() > 50)
    for _, name in ipairs(file:names()) do
      local count = 1
      for _, extent in ipairs(file:shape(name)) do count = count * extent end
      assert.equal(count, file:tensor(name):count())
    end
  end)

  describe("that are damaged or foreign", function()
    -- A file of this header and this many bytes of elements.
    local function put(header, bytes, announced)
      core.file.write(path, string.pack("<I8", announced or #header) .. header ..
                      ("x"):rep(bytes or 0))
    end

    local function assert_damaged(expected)
      assert_refused(3, expected, safetensors.open, path)
      local message = refusal(safetensors.open, path)
      assert.truthy(message:find(path, 1, true), message)
    end

    local function one(dtype, shape, offsets)
      return ('{"w":{"dtype":"%s","shape":%s,"data_offsets":%s}}'):format(dtype, shape, offsets)
    end

    it("are refused when the header does not fit", function()
      core.file.write(path, "")
      assert_damaged("at least 8 bytes, found 0")
      core.file.write(path, "1234567")
      assert_damaged("at least 8 bytes, found 7")
      put("{}", 0, -1)
      assert_damaged("18446744073709551615 found")
      put("{}", 0, 100000001)
      assert_damaged("at most 100000000 bytes expected, 100000001 found")
      put("{}", 0, 3)
      assert_damaged("truncated: a header of 3 bytes expected, 2 found")
      put("", 0)
      assert_damaged("no JSON object")
      put(" {}")
      assert_damaged("no JSON object")
      put("[]")
      assert_damaged("no JSON object")
    end)

    it("are refused when the header is no JSON or says things twice", function()
      put('{"w":')
      assert_damaged("damaged header: ")
      put("{}x")
      assert_damaged("damaged header: ")
      put('{"w\255":1}')
      assert_damaged("damaged header: ")
      put('{"a":' .. ("["):rep(100000))
      assert_damaged("damaged header: ")
      put(one("F32", "[1]", "[0,4]"):sub(1, -2) .. "," .. one("F32", "[1]", "[0,4]"):sub(2), 4)
      assert_damaged('duplicate object key near \'"w"\'')
      put('{"w":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}', 4)
      assert_damaged("duplicate")
    end)

    it("are refused when the metadata is no map of strings", function()
      put('{"__metadata__":[]}')
      assert_damaged("__metadata__ is no object")
      put('{"__metadata__":{"steps":5}}')
      assert_damaged("metadata 'steps' is no string")
    end)

    it("are refused when a tensor is not described", function()
      put('{"w":1}')
      assert_damaged("tensor 'w': its description is no object")
      put('{"w":{"shape":[1],"data_offsets":[0,4]}}', 4)
      assert_damaged("tensor 'w': its dtype is missing")
      put('{"w":{"dtype":"F32","data_offsets":[0,4]}}', 4)
      assert_damaged("tensor 'w': its shape is missing")
      put('{"w":{"dtype":"F32","shape":[1]}}', 4)
      assert_damaged("tensor 'w': two data_offsets")
      put(one("f32", "[1]", "[0,4]"), 4)
      assert_damaged("tensor 'w': unknown dtype 'f32'")
      for _, extent in ipairs { "-1", "1.0", '"1"', "null", "[1]" } do
        put(one("F32", "[" .. extent .. "]", "[0,4]"), 4)
        assert_damaged("tensor 'w': its shape holds something else than counts")
      end
      for _, offsets in ipairs { "[0]", "[0,4,8]", "[-4,0]", "[0,4.0]", "4" } do
        put(one("F32", "[1]", offsets), 4)
        assert_damaged("tensor 'w': two data_offsets, begin and end, expected")
      end
    end)

    it("are refused when sizes overflow", function()
      put(one("F32", "[4294967296,4294967296]", "[0,4]"), 4)
      assert_damaged("tensor 'w': the number of its elements overflows")
      put(one("F32", "[2305843009213693952,2]", "[0,0]"))
      assert_damaged("tensor 'w': the number of its bytes overflows")
      put(one("F32", "[9223372036854775808]", "[0,4]"), 4)
      assert_damaged("damaged header: too big integer")
      put(one("F32", "[1]", "[0,18446744073709551615]"), 4)
      assert_damaged("damaged header: too big integer")
    end)

    it("are refused when a tensor's bytes are not its own", function()
      put(one("F32", "[2,3]", "[0,20]"), 20)
      assert_damaged("tensor 'w': 192 bits expected for F32 [2,3], 20 bytes found")
      put(one("F4", "[3]", "[0,1]"), 1)
      assert_damaged("tensor 'w': 12 bits expected for F4 [3], 1 bytes found")
      put(one("F32", "[1]", "[4,0]"), 4)
      assert_damaged("4 to 0 found")
      put(one("F32", "[1]", "[0,4]"), 3)
      assert_damaged("within the file's 3 bytes of elements expected, 0 to 4 found")
      put(one("F32", "[1]", "[9223372036854775800,9223372036854775804]"), 4)
      assert_damaged("9223372036854775800 to 9223372036854775804 found")
      put(one("F32", "[1]", "[0,4]"), 5)
      assert_damaged("4 bytes of elements expected, 5 found")
      put(one("F32", "[1]", "[1,5]"), 5)
      assert_damaged("tensor 'w' follows a gap: begin at 0 expected, 1 found")
      put('{"a":{"dtype":"I32","shape":[2],"data_offsets":[0,8]},' ..
          '"b":{"dtype":"I32","shape":[2],"data_offsets":[4,12]}}', 12)
      assert_damaged("tensor 'b' overlaps another: begin at 8 expected, 4 found")
    end)

    it("are refused at every length but the whole one", function()
      safetensors.write(path, sample(), { a = "b" })
      local text = core.file.read(path)
      for length = 0, #text - 1 do
        core.file.write(path, text:sub(1, length))
        assert.equal(3, select(2, refusal(safetensors.open, path)))
      end
    end)

    it("never crash a reader, whichever byte is another", function()
      safetensors.write(path, sample(), { a = "b" })
      local text = core.file.read(path)
      local stream = core.stream(20, 1)
      for _ = 1, 400 do
        local at = stream:integer(#text)
        core.file.write(path, text:sub(1, at - 1) .. string.char(stream:integer(256) - 1) ..
                        text:sub(at + 1))
        local ok, file = pcall(safetensors.open, path)
        if ok then
          for _, name in ipairs(file:names()) do pcall(file.tensor, file, name) end
          file:close()
        else
          assert.equal(3, select(2, fault.of(file)))
        end
      end
    end)

    it("name a tensor that is missing", function()
      safetensors.write(path, sample())
      local file = safetensors.open(path)
      assert_refused(3, "tensor 'wieght' expected", file.tensor, file, "wieght")
      assert_refused(3, "tensor 'wieght' expected", file.shape, file, "wieght")
      assert.is_false(file:has("wieght"))
      file:close()
      assert_refused(1, "this tensor file is closed", file.names, file)
    end)
  end)

  describe("that cannot be written", function()
    local w

    before_each(function() w = core.from({ 1 }) end)

    local function assert_unwritten(expected, ...)
      assert_refused(1, expected, safetensors.write, path, ...)
      assert.same({}, core.file.list(folder.path))
    end

    it("are refused before anything is on the disk", function()
      assert_unwritten("name 'w' is taken", { { "w", w }, { "w", w } })
      assert_unwritten("name '__metadata__' is taken", { { "__metadata__", w } })
      assert_unwritten("UTF-8", { { "\255", w } })
      assert_unwritten("UTF-8", { { "w", w } }, { a = "\255" })
      assert_unwritten("UTF-8", { { "w", w } }, { ["\255"] = "a" })
      assert_unwritten("without NUL", { { "a\0b", w } })
      assert_unwritten("a string as metadata, got number", { { "w", w } }, { a = 1 })
      assert_unwritten("a string as metadata key, got number", { { "w", w } }, { "a" })
      assert_unwritten("item 2, 'v', must be a tensor, got nil", { { "w", w }, { "v" } })
      assert_unwritten("item 1 must be {name, tensor}, got userdata", { w })
    end)

    it("leave the old file whole wherever the disk is full", function()
      safetensors.write(path, { { "w", w } })
      local old = core.file.read(path)
      for n = 1, 1000 do
        core.file.fail_at(n)
        local ok, raised = pcall(safetensors.write, path, sample(), { new = "yes" })
        core.file.fail_at(0)
        assert.same({ "t.safetensors" }, core.file.list(folder.path))
        if ok then return assert.is_true(n > 10) end
        assert.truthy(fault.of(raised):find("disk full", 1, true), fault.of(raised))
        local file <close> = safetensors.open(path)
        assert.truthy(core.file.read(path) == old or file:metadata().new == "yes")
      end
      error("writing failed 1000 times")
    end)
  end)
end)
