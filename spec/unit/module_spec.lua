-- Modules: which parameters a model has, in which order, with which first values.

local core = require "marea.core"
local marea = require "marea"
local numeric = dofile "spec/support/numeric.lua"

local nn = marea.nn

local function transformer(options)
  local whole = { vocabulary = 5, context = 4, width = 8, heads = 2, layers = 2, hidden = 16 }
  for key, value in pairs(options or {}) do whole[key] = value end
  return nn.Transformer(whole)
end

local function values_of(model, name) return model.unit:parameter(name) end

describe("a model's parameters", function()
  it("stand in the order of declaration, a module's own before its children's", function()
    local names = transformer({ norm = "post", layers = 1 }):materialize { seed = 1, dtype = "f32" }
      .unit:names()
    assert.same({ "embedding.weight", "position.weight", "layers.0.attention.qkv.weight",
                  "layers.0.attention.qkv.bias", "layers.0.attention.out.weight",
                  "layers.0.attention.out.bias", "layers.0.norm1.weight", "layers.0.norm1.bias",
                  "layers.0.mlp.up.weight", "layers.0.mlp.up.bias", "layers.0.mlp.down.weight",
                  "layers.0.mlp.down.bias", "layers.0.norm2.weight", "layers.0.norm2.bias",
                  "head.weight", "head.bias" }, names)
  end)

  it("number 282,628 in the model of recipes/minimum.lua", function()
    local model = nn.Transformer { vocabulary = 6, classes = 4, context = 128, width = 128,
                                   hidden = 256, heads = 4, layers = 2, norm = "post" }
    assert.equal(282628, model:materialize({ seed = 1, dtype = "f32" }):count())
  end)

  it("begin as weights from N(0, 0.02), biases 0, norms 1", function()
    local model = transformer { width = 64, hidden = 256 }
    model:materialize { seed = 3, dtype = "f64" }
    for _, range in ipairs(model.unit:ranges()) do
      local tensor = values_of(model, range.name)
      if range.name:find("bias$") then
        assert.equal(0, tensor:total())
      elseif range.name:find("norm%d*%.weight$") then
        assert.equal(range.count, tensor:total())
      else
        local squares = tensor:detach():multiply(tensor:detach()):total()
        assert.near(0.02, math.sqrt(squares / range.count), 0.02 * 5 / math.sqrt(range.count))
      end
    end
  end)

  it("have the same first values in f32 and f64, and others for another seed or place", function()
    local single = transformer():materialize { seed = 3, dtype = "f32" }
    local double = transformer():materialize { seed = 3, dtype = "f64" }
    local other = transformer():materialize { seed = 4, dtype = "f32" }
    assert.equal(single:values():to("f64"):hash(), double:values():hash())
    assert.not_equal(single:values():hash(), other:values():hash())
    assert.not_equal(values_of(single, "layers.0.mlp.up.weight"):hash(),
                     values_of(single, "layers.1.mlp.up.weight"):hash())
  end)

  it("are shared by a module that is called twice, and take both gradients", function()
    local Twice = nn.class "spec.Twice"
    function Twice:init() self:child("once", nn.Linear { input = 1, output = 1, bias = false }) end
    function Twice:forward(x) return self.once(self.once(x)) end
    local model = Twice():materialize { seed = 1, dtype = "f64" }
    model:values():fill_(3)
    model(core.from({ { 5 } }, "f64")):sum():backward()
    assert.equal(1, model:count())
    assert.equal(30, model:gradients():get(1)) -- d(5 w w)/dw
  end)
end)

describe("a declaration of parts", function()
  it("is refused for a module at two places, and for what is no module", function()
    local Pair = nn.class "spec.Pair"
    function Pair:init(parts) for name, part in pairs(parts) do self:child(name, part) end end
    local linear = nn.Linear { input = 2, output = 2 }
    local message, code = numeric.refusal(function()
      Pair({ a = linear, b = linear }):materialize { seed = 1, dtype = "f32" }
    end)
    assert.matches("^one module stands at two places of the model %([ab]%. and [ab]%.%): share",
                   message)
    assert.equal(2, code)
    assert.equal('child "a" of spec.Pair must be a module, got a number',
                 (numeric.refusal(function() Pair { a = 3 } end)))
  end)

  it("is refused for a name that hides a function of the module", function()
    local Hiding = nn.class "spec.Hiding"
    function Hiding:init(name) self:parameter(name, { 1 }) end
    function Hiding.measure() return 1 end
    for _, name in ipairs { "values", "gradients", "zero_grad", "measure" } do
      local message, code = numeric.refusal(function() Hiding(name) end)
      assert.same({ "a part of spec.Hiding must have a name that is none of its functions', got " ..
                    name, 2 }, { message, code })
    end
    assert.equal(1, Hiding("w"):materialize({ seed = 1, dtype = "f32" }):count())
  end)

  it("is refused for options that nobody reads, with the nearest name", function()
    for _, case in ipairs {
      { "Linear", { input = 1, output = 1, bais = false }, "bais", "bias" },
      { "Embedding", { rows = 1, width = 1, sdt = 1 }, "sdt", "std" },
      { "LayerNorm", { width = 1, epsilno = 1 }, "epsilno", "epsilon" },
      { "RMSNorm", { widht = 1 }, "widht", "width" },
      { "Dropout", { probabilty = 0.5 }, "probabilty", "probability" },
      { "Transformer", { vocabulry = 3 }, "vocabulry", "vocabulary" },
    } do
      local message, code = numeric.refusal(function() nn[case[1]](case[2]) end)
      local expected = 'nn.%s has no option "%s"; did you mean "%s"?'
      assert.same({ expected:format(case[1], case[3], case[4]), 2 }, { message, code })
    end
    local Odd = nn.class "spec.Odd"
    function Odd:init() self:parameter("w", { 1 }, { decya = false }) end
    assert.equal('parameter w has no option "decya"; did you mean "decay"?',
                 (numeric.refusal(function() Odd() end)))
  end)

  it("is refused before it is materialized, where parameters are asked for", function()
    assert.equal("this model has no parameters yet: only the root of a materialized model has",
                 (numeric.refusal(function() return transformer():count() end)))
  end)
end)
