local fault = require "marea.fault"
local json = require "marea.json"

local function refusal(value)
  local ok, raised = pcall(json.encode, value)
  assert.is_false(ok)
  return fault.of(raised)
end

describe("json.encode", function()
  it("writes floats so that every bit comes back", function()
    for _, number in ipairs { 0.1, 1 / 3, 1.1825, 2 ^ -1074, 1.7976931348623157e308, 2.0 ^ 53 + 2,
                              -math.pi, 5e-324, 123456789.123456789, 1e22 } do
      local back = json.decode(json.encode({ x = number })).x
      assert.equal(("%a"):format(number), ("%a"):format(back))
    end
  end)

  it("writes the shortest such text", function()
    assert.equal('[0.1,0.30000000000000004,1e+300,2]', json.encode({ 0.1, 0.1 + 0.2, 1e300, 2.0 }))
  end)

  it("keeps the sign of zero", function()
    local back = json.decode(json.encode({ -0.0 }))[1]
    assert.equal(-math.huge, 1 / back)
  end)

  it("writes integers exactly", function()
    assert.equal("[9007199254740993,-9223372036854775808]",
                 json.encode({ 9007199254740993, math.mininteger }))
  end)

  it("sorts names at every depth", function()
    assert.equal('{"a":{"x":1,"y":2},"b":[true,false],"c":"s"}',
                 json.encode({ c = "s", b = { true, false }, a = { y = 2, x = 1 } }))
  end)

  it("writes null beside finite = false in the object around it", function()
    assert.equal('{"a":1,"finite":false,"loss":null}', json.encode({ a = 1, loss = 0 / 0 }))
    assert.equal('{"inner":{"finite":false,"v":[1,null]},"z":2}',
                 json.encode({ inner = { v = { 1, math.huge } }, z = 2 }))
    assert.equal('{"finite":true,"x":1}', json.encode({ x = 1, finite = true }))
  end)

  it("takes an empty table for a list", function()
    assert.equal('{"a":[]}', json.encode({ a = {} }))
  end)

  it("writes a lone field n as a field", function()
    assert.equal('{"n":5}', json.encode({ n = 5 }))
    assert.equal('{"n":0.5}', json.encode({ n = 0.5 }))
  end)

  it("writes objects through their __pairs", function()
    local proxy = setmetatable({}, { __pairs = function() return pairs({ a = 1 }) end })
    assert.equal('{"a":1}', json.encode(proxy))
  end)

  it("replaces bytes that are no UTF-8, so the text stays JSON", function()
    assert.equal([["a\ufffdb\ufffd"]], json.encode("a\xffb\xc3"))
    assert.equal('"caf\u{e9}"', json.encode("caf\u{e9}"))
  end)

  it("indents on request", function()
    assert.equal('{\n  "a":1,\n  "b":[1,2]\n}',
                 json.encode({ a = 1, b = { 1, 2 } }, { indent = true }))
  end)

  it("refuses holes, mixed keys and functions", function()
    assert.truthy(refusal({ x = { 1, nil, 3 } }):find("value.x is neither", 1, true))
    assert.truthy(refusal({ 1, 2, name = 3 }):find("value is neither", 1, true))
    assert.truthy(refusal({ f = print }):find("value.f is a function", 1, true))
  end)
end)

describe("json.decode", function()
  it("refuses what is nested without end, and reads what is nested deep", function()
    local function nested(depth) return ("["):rep(depth) .. ("]"):rep(depth) end
    assert.same("table", type(json.decode(nested(200))))
    for _, text in ipairs { nested(201), nested(100000), ("["):rep(300000),
                            ('{"a":'):rep(100000) } do
      local value, problem = json.decode(text)
      assert.is_nil(value)
      assert.equal("lists and objects within each other more than 200 deep", problem)
    end
  end)

  it("reads what encode wrote", function()
    local value = { a = { 1, 2.5, "x\n\"y\"" }, b = { c = true }, d = -7 }
    assert.same(value, json.decode(json.encode(value)))
  end)

  it("keeps integers integers", function()
    assert.equal("integer", math.type(json.decode("[12]")[1]))
    assert.equal("float", math.type(json.decode("[12.5]")[1]))
  end)

  it("says where a text stops being JSON", function()
    local value, problem = json.decode('{"a": 1,\n "b": oops}')
    assert.is_nil(value)
    assert.truthy(problem:find("line 2", 1, true))
  end)

  it("refuses unfinished, doubled and misshapen texts", function()
    for _, text in ipairs { "", '{"a": 1', '{"a": 1} {"b": 2}', '{"a" "b"}', '"open', "[1, NaN]",
                            '{"a": 1, 2}' } do
      local value, problem = json.decode(text)
      assert.is_nil(value, text)
      assert.is_string(problem, text)
    end
  end)
end)
