local core = require "marea.core"
local fault = require "marea.fault"
local scratch = dofile "spec/support/scratch.lua"

local function assert_refused(code, expected, call, ...)
  local ok, raised = pcall(call, ...)
  assert.is_false(ok)
  local message, found = fault.of(raised)
  assert.truthy(message:find(expected, 1, true), message)
  assert.equal(code, found)
end

-- Four sequences of 3, 2, 0 and 4 rows.
local function parts()
  return {
    inputs = core.from({ 4, 0, 1, 4, 2, 4, 3, 2, 1 }, "i32"),
    targets = core.from({ 0, 1, 2, 2, -100, 3, 2, 1, 0 }, "i32"),
    offsets = core.from({ 0, 3, 5, 5, 9 }, "i64"),
    split = core.from({ 0, 0, 1, 2 }, "i32"),
  }
end

describe("a stored corpus", function()
  local folder, path

  before_each(function()
    folder = scratch.folder()
    path = folder.path .. "/corpus.safetensors"
  end)

  after_each(function() getmetatable(folder).__close(folder) end)

  -- Writes the parts, changed, and columns.
  local function write(changes, columns)
    local given, list = parts(), {}
    for name, tensor in pairs(changes or {}) do given[name] = tensor end
    for _, name in ipairs { "inputs", "targets", "offsets", "split" } do
      if given[name] then list[#list + 1] = { name, given[name] } end
    end
    for name, tensor in pairs(columns or {}) do list[#list + 1] = { name, tensor } end
    core.safetensors.write(path, list, { kind = "test" })
  end

  local function in_memory()
    local given = parts()
    return core.corpus_over(given.inputs, given.targets, given.offsets, given.split)
  end

  local function on_disk()
    write(nil, { cost = core.from({ 1, 2, 3, 4 }, "f64") })
    return core.corpus_open(path)
  end

  local function values_of(batch)
    local values = {}
    for name, tensor in pairs(batch) do values[name] = tensor:values() end
    return values
  end

  for name, open in pairs { ["in memory"] = in_memory, ["in a file"] = on_disk } do
    describe(name, function()
      local corpus

      before_each(function() corpus = open() end)
      after_each(function() corpus:close() end)

      it("tells its sequences", function()
        assert.equal(4, corpus:size())
        local lengths, tokens, split = {}, {}, {}
        for id = 1, 4 do
          lengths[id], tokens[id] = corpus:length(id), corpus:tokens(id)
          split[id] = corpus:split(id)
        end
        assert.same({ 3, 2, 0, 4 }, lengths)
        assert.same({ 3, 1, 0, 4 }, tokens)
        assert.same({ 0, 0, 1, 2 }, split)
      end)

      it("gathers sequences end to end, in the order asked", function()
        local batch = corpus:gather { 4, 3, 2 }
        assert.same({
          ids = { 4, 3, 2, 1, 4, 2 }, targets = { 3, 2, 1, 0, 2, -100 },
          positions = { 0, 1, 2, 3, 0, 1 }, sequence_ids = { 4, 4, 4, 4, 2, 2 },
          lengths = { 4, 0, 2 }, starts = { 0, 4, 4 },
        }, values_of(batch))
        for field, dtype in pairs { ids = "i32", targets = "i32", positions = "i32",
                                    sequence_ids = "i64", lengths = "i64", starts = "i64" } do
          assert.equal(dtype, batch[field]:dtype())
        end
      end)

      it("gathers nothing when nothing is asked", function()
        for _, batch in ipairs { corpus:gather {}, corpus:gather_padded({}, 7, 5) } do
          for _, tensor in pairs(batch) do assert.same({ 0 }, tensor:shape()) end
        end
      end)

      it("pads each sequence to one length", function()
        assert.same({
          ids = { 4, 2, 5, 5, 5, 5, 5, 5, 4, 3, 2, 1 },
          targets = { 2, -100, -100, -100, -100, -100, -100, -100, 3, 2, 1, 0 },
          positions = { 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3 },
          sequence_ids = { 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4 },
          lengths = { 2, 0, 4 }, starts = { 0, 4, 8 },
        }, values_of(corpus:gather_padded({ 2, 3, 4 }, 4, 5)))
        assert_refused(1, "sequence 4 has 4 rows, padded to 3", corpus.gather_padded, corpus, { 4 },
                       3, 5)
      end)

      it("refuses ids that it does not have", function()
        for _, id in ipairs { 0, 5, -1, math.maxinteger } do
          local expected = ("sequence %d is not in the corpus: ids from 1 to 4"):format(id)
          assert_refused(2, expected, corpus.gather, corpus, { 1, id })
          assert_refused(2, expected, corpus.gather_padded, corpus, { 1, id }, 4, 5)
          assert_refused(2, expected, corpus.length, corpus, id)
        end
        assert_refused(1, "id 2 must be an integer, got string", corpus.gather, corpus, { 1, "x" })
      end)

      it("finds symbols outside the vocabulary", function()
        corpus:check_symbols(5, 4)
        assert_refused(2, "sequence 1, position 0: an input from 0 to 3 expected, 4 found",
                       corpus.check_symbols, corpus, 4, 4)
        assert_refused(2, "sequence 4, position 0: a target from 0 to 2 expected, 3 found",
                       corpus.check_symbols, corpus, 5, 3)
      end)

      it("is closed once", function()
        corpus:close()
        corpus:close()
        assert_refused(1, "this corpus is closed", corpus.size, corpus)
      end)
    end)
  end

  it("keeps the tensors that it was made over", function()
    local corpus <close> = in_memory()
    collectgarbage()
    collectgarbage()
    assert.same({ 4, 0, 1 }, corpus:gather({ 1 }).ids:values())
    assert_refused(1, "this corpus has no file", corpus.metadata, corpus)
  end)

  it("gives the other tensors and the metadata of its file", function()
    local corpus <close> = on_disk()
    assert.same({ 1, 2, 3, 4 }, corpus:tensor("cost"):values())
    assert.equal("test", corpus:metadata().kind)
    assert.same({ "inputs", "targets", "offsets", "split", "cost" }, corpus:names())
  end)

  it("is refused when parts are missing or do not fit", function()
    local function assert_damaged(expected, changes, columns)
      write(changes, columns)
      assert_refused(3, expected, core.corpus_open, path)
    end
    assert_damaged("tensor 'targets' expected", { targets = false })
    assert_damaged("'inputs': i32 with 1 axis expected, i64 with 1 found",
                   { inputs = core.zeros({ 9 }, "i64") })
    assert_damaged("'split': i32 with 1 axis expected, i32 with 2 found",
                   { split = core.zeros({ 4, 1 }, "i32") })
    assert_damaged("'targets': 9 values expected, 8 found", { targets = core.zeros({ 8 }, "i32") })
    assert_damaged("'offsets': 5 values expected, 4 found", { offsets = core.zeros({ 4 }, "i64") })
    assert_damaged("'cost': 4 values expected, 3 found", nil, { cost = core.zeros({ 3 }) })
    for _, offsets in ipairs { { 1, 3, 5, 5, 9 }, { 0, 3, 5, 5, 8 }, { 0, 5, 3, 5, 9 },
                               { 0, 3, 10, 5, 9 }, { 0, -3, 5, 5, 9 },
                               { 0, 3, 5, math.mininteger, 9 } } do
      assert_damaged("offsets", { offsets = core.from(offsets, "i64") })
      local given = parts()
      assert_refused(3, "offsets", core.corpus_over, given.inputs, given.targets,
                     core.from(offsets, "i64"), given.split)
    end
  end)

  it("is refused over tensors that do not fit", function()
    local given = parts()
    assert_refused(1, "expected i32 as argument 2, got i64", core.corpus_over, given.inputs,
                   given.offsets, given.offsets, given.split)
    assert_refused(1, "expected 9 targets and 5 offsets", core.corpus_over, given.inputs,
                   given.split, given.offsets, given.split)
  end)
end)
