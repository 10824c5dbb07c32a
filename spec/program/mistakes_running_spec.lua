-- The likeliest mistakes in what runs: models, losses, loops and optimizers; each with the whole
-- text of what is said of it.

local bad = dofile "spec/support/bad_input.lua"
local mistakes = dofile "spec/support/mistakes.lua"

local with, loss, loop, each = mistakes.with, mistakes.loss, mistakes.loop, mistakes.each
local model, losses = mistakes.model, mistakes.losses

describe("a model", function()
  it("that cannot be is refused", function()
    bad.expect_all({
      { "heads", fields = model "heads = 3, layers = 1",
        message = "@model: nn.Transformer: width 8 is no multiple of 3 heads" },
      { "an extent is missing", fields = model "heads = 2",
        message = "@model: nn.Transformer: layers must be an integer of at least 1, got nothing" },
      { "a class", fields = with { model = "function() return nn.Transformer end" },
        message = "@model: the recipe's model must return a module of nn, got the class " ..
          "nn.Transformer" },
      { "no return", fields = with { model = "function() local m = nn.Dropout {} end" },
        message = "@model: the recipe's model must return a module of nn, got nothing" },
      { "parameter without a shape", message = "@model: parameter w of Mine must have a shape, " ..
          "a list of integers, got nothing",
        fields = with { model = "function() local Mine = nn.class 'Mine' function Mine:init() " ..
          "self:parameter 'w' end return Mine() end" } },
    }, { code = 2 })
  end)

  it("that does not fit the data is refused where it meets them", function()
    bad.expect_all({
      { "context", message = "@loss: nn.Transformer: sequence %d has 2 inputs, which is longer " ..
          "than the context of 1", fields = with {
            loss = "function(model, batch) return " .. losses .. " end",
            model = "function() return nn.Transformer { vocabulary = 6, classes = 4, context = " ..
              "1, width = 8, heads = 2, layers = 1 } end" } },
      { "classes", message = "@loss: cross_entropy: targets%[%d%] is %d, outside 0 to 1 and not " ..
          "%-100 %(ignored%)", fields = with {
            loss = "function(model, batch) return " .. losses .. " end",
            model = "function() return nn.Transformer { vocabulary = 6, classes = 2, context = " ..
              "8, width = 8, heads = 2, layers = 1 } end" } },
      { "vocabulary", message = "@loss: embedding: ids%[1%] is 4, outside 0 to 3", fields = with {
            loss = "function(model, batch) return " .. losses .. " end",
            model = "function() return nn.Transformer { vocabulary = 4, classes = 4, context = " ..
              "8, width = 8, heads = 2, layers = 1 } end" } },
      { "a child that is none", fields = with {
          loss = "function(model, batch) return " .. losses .. " end",
          model = "function() local Mine = nn.class 'Mine' function Mine:init() self.part = " ..
            "nn.Embedding { rows = 6, width = 4 } end function Mine:forward(batch) return " ..
            "self.part(batch.ids) end return Mine() end" },
        message = "@loss: nn.Embedding was called before its parameters were made; a module is " ..
          "a child of the one that calls it: self:child%(name, module%)" },
      { "no forward", fields = with {
          loss = "function(model, batch) return " .. losses .. " end",
          model = "function() local Mine = nn.class 'Mine' function Mine:init() " ..
            "self:parameter('w', { 3 }) end return Mine() end" },
        message = "@loss: Mine has no function forward, which a call of it runs" },
    }, { code = 2, failed = true, pattern = true })
  end)

  it("that is called with something else says what it expects", function()
    bad.expect_all({
      { "ids", fields = loss "return nn.cross_entropy(model(batch.ids), batch.targets)",
        message = "@loss: nn.Transformer expects a batch, got a tensor" },
      { "nothing", fields = loss "return nn.cross_entropy(model(), batch.targets)",
        message = "@loss: nn.Transformer expects a batch, got nothing" },
    }, { code = 2, failed = true })
  end)
end)

describe("a loss", function()
  it("that is none of a position is refused", function()
    local must = "@loss: recipe.loss must %s [4] (one loss per position), got %s"
    bad.expect_all({
      { "summed", fields = loss("return " .. losses .. ":sum()"),
        message = must:format("have shape", "[]") },
      { "a number", fields = loss("return " .. losses .. ":sum():item()"),
        message = must:format("be a tensor", "a number") },
      { "not returned", fields = loss("local l = " .. losses),
        message = must:format("be a tensor", "nothing") },
      { "logits", fields = loss "return model(batch)",
        message = must:format("have shape", "[4,4]") },
      { "of a list", fields = loss "return nn.cross_entropy(model(batch), { 1, 2, 3, 4 })",
        message = "@loss: nn.cross_entropy: targets must be a tensor, got a table" },
      { "of nothing", fields = loss "return nn.cross_entropy(nil, batch.targets)",
        message = "@loss: nn.cross_entropy: logits must be a tensor, got nothing" },
    }, { code = 1, failed = true })
  end)

  it("that treats tensors as numbers is told what to write", function()
    bad.expect_all({
      { "product", fields = loss("return 2 * " .. losses),
        message = "@loss: tensors have no operators; use a:multiply(b), or a:scale(2)" },
      { "quotient", fields = loss("return " .. losses .. " / 4"),
        message = "@loss: tensors have no operators; use a:scale(1 / 2)" },
      { "sum", fields = loss("return " .. losses .. " + 1"),
        message = "@loss: tensors have no operators; use a:add(b)" },
      { "text", fields = loss("print('loss ' .. " .. losses .. ")"),
        message = "@loss: tensors have no operators; use a:item(), the number of a tensor of " ..
          "one element" },
      { "element", fields = loss("return (" .. losses .. ")[1]"),
        message = "@loss: a tensor has no elements by number: t:get(i) reads one, " ..
          "t:slice(first, count) takes rows, t:values() gives all as a list" },
      { "argument", fields = loss("return " .. losses .. ":add { 1 }"),
        message = "@loss: add: b must be a tensor, got a table" },
    }, { code = 1, failed = true })
  end)
end)

describe("a loop", function()
  local backward = "replica:loss(batch, window:weights(batch)):backward()"

  it("that reduces or clears at the wrong moment is refused", function()
    local reduced = "@accumulate: backward: these gradients were already reduced over the " ..
      "ranks; keep all microbatches of a window but the last inside no_sync, and call zero_grad " ..
      "before the next window"
    local never = "@accumulate: a step on gradients that were never reduced over the ranks: the " ..
      "last backward of a window must run outside no_sync"
    local ran = "@accumulate: accumulate ran %d backwards for the 2 microbatches of the window"
    bad.expect_all({
      { "no no_sync", fields = each(backward), message = reduced },
      { "no_sync always", fields = each("local _ <close> = replica:no_sync() " .. backward),
        message = never },
      { "no <close>", fields = each("local s = i < #window and replica:no_sync() " .. backward),
        message = never },
      { "no_sync for the wrong one", message = reduced,
        fields = each("local _ <close> = i > 1 and replica:no_sync() " .. backward) },
      { "no zero_grad", message = reduced, fields = loop("for i, batch in ipairs(window) do " ..
          "local _ <close> = i < #window and replica:no_sync() " .. backward .. " end") },
      { "backward outside no_sync", fields = each("local l do local _ <close> = i < #window and " ..
          "replica:no_sync() l = replica:loss(batch, window:weights(batch)) end l:backward()"),
        message = "@accumulate: backward: the forward of this loss ran inside no_sync and its " ..
          "backward runs outside; put both into the same no_sync scope, or both outside" },
      { "no backward", fields = each "replica:loss(batch, window:weights(batch))",
        message = ran:format(0) },
      { "one microbatch only", message = ran:format(1),
        fields = loop("replica:zero_grad() local batch = window[1] " .. backward) },
      { "backward twice", fields = each("local _ <close> = replica:no_sync() local l = " ..
          "replica:loss(batch, window:weights(batch)) l:backward() l:backward()"),
        message = "@accumulate: backward: the graph of this result was consumed by an earlier " ..
          "backward" },
      { "a step inside", fields = with {
          optimizer = "function(m, c) shared = optim.SGD(m, { lr = c.lr }) return shared end",
          accumulate = "function(replica, window) replica:zero_grad() for i, batch in " ..
            "ipairs(window) do local _ <close> = i < #window and replica:no_sync() " .. backward ..
            " shared:step() end end" },
        message = "@accumulate: a step between the microbatches of a window: it must wait for " ..
          "the window's last backward" },
    }, { code = 1, failed = true })
  end)

  it("that hands something else in is told what is expected", function()
    bad.expect_all({
      { "no weights", fields = each "replica:loss(batch):backward()",
        message = "@accumulate: the loss expects the batch's weights, window:weights(batch), " ..
          "got nothing" },
      { "a number for weights", fields = each "replica:loss(batch, 1):backward()",
        message = "@accumulate: the loss expects the batch's weights, window:weights(batch), " ..
          "got a number" },
      { "weights of nothing", fields = each "replica:loss(batch, window:weights()):backward()",
        message = "@accumulate: window:weights expects a batch, as ipairs(window) gives them, " ..
          "got nothing" },
      { "the window", fields = loop "replica:loss(window, window:weights(window)):backward()",
        message = "@accumulate: window:weights expects a batch, as ipairs(window) gives them, " ..
          "got a window" },
      { "pairs", fields = loop("for _, batch in pairs(window) do " .. backward .. " break end"),
        message = "@accumulate: a window is read with ipairs, in its order, not with pairs" },
      { "a dot", fields = each "replica.loss(batch, window:weights(batch)):backward()",
        message = "@accumulate: functions of a replica are called with a colon: " ..
          "replica:loss(...)" },
      { "no reduction by hand", ranks = 2, fields = with { replicate = "false",
          accumulate = "function(m, window) m:zero_grad() for _, batch in ipairs(window) do " ..
            "m:loss(batch, window:weights(batch)):backward() end end" },
        message = "@accumulate: accumulate reduced the gradients of the model over the ranks 0 " ..
          "times; a window is reduced once (all_reduce of model:gradients())" },
      { "an unknown reduction", ranks = 2,
        fields = loop "world:all_reduce(replica:values(), 'avg')",
        message = "@accumulate: there is no reduction 'avg'; there are sum, mean, max and min" },
    }, { code = 1, failed = true })
  end)
end)

describe("an optimizer", function()
  it("that cannot be is refused", function()
    local optimizer = mistakes.optimizer
    bad.expect_all({
      { "no lr", fields = optimizer "return optim.SGD(m)",
        message = "@optimizer: optim.SGD: lr must be a finite number of at least 0, got nothing" },
      { "a text", fields = optimizer "return optim.SGD(m, { lr = 'high' })",
        message = '@optimizer: optim.SGD: lr must be a finite number of at least 0, got "high"' },
      { "of values", fields = optimizer "return optim.SGD(m:values(), { lr = c.lr })",
        message = "@optimizer: optim.SGD expects the model that the recipe's optimizer callback " ..
          "was given, got a tensor" },
      { "not made", fields = optimizer "return optim.SGD",
        message = "@optimizer: the recipe's optimizer must return an optimizer of optim, got a " ..
          "function" },
      { "config", fields = optimizer "c.lr = 1 return optim.SGD(m, { lr = c.lr })",
        message = "@optimizer: config is read-only: config.lr cannot be set while running" },
      { "schedule of an update", fields = with { schedule = "function(u, c) return 0.5 end" },
        message = "@schedule: the recipe's schedule must return a function from the update to a " ..
          "factor of lr, got a number" },
    }, { code = 2 })
  end)
end)
