-- The example of 12 and 36 tokens, as a program.

local json = require "marea.json"
local launch = require "marea.launch"

local function run(ranks, ...)
  return launch.run({ ranks = ranks, time_limit = 60 }, { "check-loss", ... })
end

describe("marea check-loss", function()
  for _, ranks in ipairs { 1, 2 } do
    it(("gives 2, 2.5 and 1.25 on %d rank(s)"):format(ranks), function()
      local code, output, errors = run(ranks > 1 and ranks or nil, "--json")
      assert.equal(0, code, errors)
      local values = {}
      for i, row in ipairs(json.decode(output).rows) do
        assert.is_true(row.pass, row.name)
        values[i] = tonumber(("%.9g"):format(row.value))
      end
      assert.same({ 2, 2.5, 0.5, 4.5, 2.5, 0.5, 4.5, 1.25 }, values)
    end)
  end

  it("is an example of two ranks", function()
    local code, _, errors = run(3)
    assert.equal(2, code)
    assert.is_truthy(errors:find("start it on 1 or 2, not on 3", 1, true), errors)
  end)
end)
