-- Scripts: a replica of their own, without a recipe.

local core = require "marea.core"
local marea = require "marea"
local nn = marea.nn

-- A batch with one row per symbol, as a script would build it.
local function batch_of(symbols)
  local n = { #symbols }
  return { ids = core.from(symbols, "i32"), targets = core.from(symbols, "i32"),
           positions = core.zeros(n, "i32"), sequences = {}, supervised = {}, rows = #symbols,
           tokens = #symbols }
end

local Table = nn.class "spec.Table"

function Table:init() self:parameter("weight", { 3, 3 }, { std = 0.1 }) end

function Table:forward(batch) return self.weight:embedding(batch.ids) end

describe("marea.world", function()
  it("says which rank of how many it is", function()
    local world = marea.world()
    assert.equal(("world<rank %d of %d>"):format(world:rank(), world:size()), tostring(world))
  end)
end)

describe("marea.replicate", function()
  it("averages the gradients of a script's own loop over the ranks", function()
    local world = marea.world()
    local model = Table():materialize { seed = 3, dtype = "f64" }
    local replica = marea.replicate(model)
    local batch = batch_of { world:rank() % 3 }
    replica:zero_grad()
    replica:loss(batch, core.ones({ 1 }, "f64")):backward()
    local expected = core.zeros({ 3, 3 }, "f64")
    for rank = 0, world:size() - 1 do
      local alone = Table():materialize { seed = 3, dtype = "f64" }
      local own = batch_of { rank % 3 }
      nn.cross_entropy(alone(own), own.targets):sum():backward()
      expected:add_scaled_(1 / world:size(), alone.weight:gradient())
    end
    assert.equal(0, core.compare(model.weight:gradient(), expected,
                                 { absolute = 1e-15, relative = 1e-12 }).failing)
  end)
end)
