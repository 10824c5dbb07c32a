local fault = require "marea.fault"
local recipe = require "marea.recipe"

local folder

local function write(name, text)
  local path = folder .. "/" .. name
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  return path
end

local header = 'local marea = { recipe = require("marea.recipe").declare }\n'
local body = [[
return marea.recipe {
  name = "example",
  config = { updates = 5, width = 8 },
  corpus = function(c) return c end,
  model = function(c) return c end,
  optimizer = function(p, c) return c end,
  plan = function(rows, c) return c end,
}
]]

local function refusal(path, overrides)
  local ok, raised = pcall(recipe.load, path, overrides)
  assert.is_false(ok)
  return fault.of(raised)
end

before_each(function()
  folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
end)

after_each(function()
  os.execute("rm -r " .. folder)
end)

describe("recipe.load", function()
  it("resolves fields, config and defaults", function()
    local path = write("example.lua", header .. body)
    local loaded = recipe.load(path, { "updates=9", "ranks=2" }, 4)
    assert.equal("example", loaded.name)
    assert.equal(path, loaded.path)
    assert.equal(9, loaded.config.updates)
    assert.equal(8, loaded.config.width)
    assert.equal(2, loaded.config.ranks)
    assert.is_true(loaded.replicate)
    assert.equal(require("marea.objective").named.global_token, loaded.objective)
    assert.equal("global_token", loaded.config.objective)
    assert.is_function(loaded.loss)
    assert.is_function(loaded.accumulate)
    assert.equal(4, recipe.load(path, {}, 4).config.ranks)
  end)

  it("runs the default accumulate: no_sync around all microbatches but the last", function()
    local loaded = recipe.load(write("example.lua", header .. body))
    local log = {}
    local function note(text) log[#log + 1] = text end
    local replica = {
      zero_grad = function() note "zero" end,
      no_sync = function()
        note "quiet"
        return setmetatable({}, { __close = function() note "loud" end })
      end,
      loss = function(_, batch, weights)
        note("loss " .. batch .. " " .. weights)
        return { backward = function() note("backward " .. batch) end }
      end,
    }
    local window = { "a", "b", weights = function(_, batch) return "w" .. batch end }
    loaded.accumulate(replica, window)
    assert.same({ "zero", "quiet", "loss a wa", "backward a", "loud", "loss b wb", "backward b" },
                log)
  end)

  it("keeps a recipe's own callbacks", function()
    local text = body:gsub("plan =", "replicate = false, loss = function() return 7 end,\n  plan =")
    local loaded = recipe.load(write("example.lua", header .. text))
    assert.equal(7, loaded.loss())
    assert.is_false(loaded.replicate)
  end)

  it("keeps a callback's line for blame where it ends in a tail call", function()
    local text = body:gsub("plan = function%(rows, c%) return c end", [[
plan = function(rows, c)
    return require("marea.sampler").shuffled(rows, c)
  end,
  loss = function(a, ...)
    local x = a
    return x, ...
  end]])
    local path = write("example.lua", header .. text)
    local loaded = recipe.load(path)
    local ok, raised = pcall(loaded.plan, {}, loaded.config)
    assert.is_false(ok)
    assert.equal(path .. ":8: sampler.shuffled: ", fault.of(raised):sub(1, #path + 22))
    assert.same({ 1, nil, 3, n = 3 }, table.pack(loaded.loss(1, nil, 3)))
  end)

  it("returns nil and the results of a script", function()
    local path = write("script.lua", "x_of_script = 1\nreturn 5, ...")
    assert.same({ nil, 5, "a=1", n = 3 }, table.pack(recipe.load(path, { "a=1" })))
    assert.is_nil(rawget(_G, "x_of_script"))
  end)

  it("makes a variant under further overrides", function()
    local loaded = recipe.load(write("example.lua", header .. body), { "updates=9" }, 2)
    local variant = loaded:with { dtype = "f64" }
    assert.equal("f64", variant.config.dtype)
    assert.equal(9, variant.config.updates)
    assert.equal("f32", loaded.config.dtype)
  end)

  it("insists on planned ranks when asked to", function()
    local loaded = recipe.load(write("example.lua", header .. body), { "ranks=2" }, 3)
    local ok, raised = pcall(loaded.require_ranks, loaded, 3)
    local message, code = fault.of(raised)
    assert.is_false(ok)
    assert.equal(2, code)
    assert.truthy(message:find("planned for 2 ranks and was started on 3", 1, true))
    assert.has_no.errors(function() loaded:require_ranks(2) end)
  end)
end)

describe("an objective", function()
  local units = "units = { third = function() return 1 / 3 end },\n  plan ="

  it("is chosen by name from the library", function()
    local loaded = recipe.load(write("example.lua", header .. body), { "objective=per_sequence" })
    assert.equal(require("marea.objective").named.per_sequence, loaded.objective)
  end)

  it("is chosen by name from the recipe's units", function()
    local path = write("example.lua", header .. body:gsub("plan =", units))
    local loaded = recipe.load(path, { "objective=third" })
    assert.equal(1 / 3, loaded.objective())
    assert.equal("third", loaded.config.objective)
  end)

  it("given as a value has its name in the config", function()
    local field = 'objective = require("marea.objective").mean_of_means,\n  plan ='
    local path = write("example.lua", header .. body:gsub("plan =", field))
    assert.equal("mean_of_means", recipe.load(path).config.objective)
    local other = write("other.lua", header .. body:gsub("plan =", "objective = print, plan ="))
    local loaded = recipe.load(other)
    assert.equal("custom", loaded.config.objective)
    assert.equal(print, loaded.objective)
    assert.equal("global_token", recipe.load(other, { "objective=global_token" }).config.objective)
  end)

  it("of an unknown name is refused with the nearest", function()
    local path = write("example.lua", header .. body)
    local message, code = refusal(path, { "objective=global_tokens" })
    assert.equal('there is no objective "global_tokens"; did you mean "global_token"?', message)
    assert.equal(2, code)
  end)
end)

describe("a wrong recipe", function()
  local function with(change, replacement)
    return write("wrong.lua", header .. body:gsub(change, replacement, 1))
  end

  for _, case in ipairs {
    { "unknown field", "optimizer =", "optimiser =", 7,
      'a recipe has no field "optimiser"; did you mean "optimizer"?' },
    { "missing field", "  plan =[^\n]*\n", "", 2, "the recipe has no plan: expected a function" },
    { "mistyped field", "model = function%(c%) return c end", "model = 5", 6,
      "the recipe's model must be a function, got a number" },
    { "value out of range", "updates = 5", "updates = 0", 4,
      "config.updates must be an integer of at least 1, got 0" },
    { "name that is no folder", '"example"', '"a/b"', 3, "the recipe's name becomes a folder" },
  } do
    it("is blamed at its line: " .. case[1], function()
      local path = with(case[2], case[3])
      local message, code = refusal(path)
      local expected = ("%s:%d: %s"):format(path, case[4], case[5])
      assert.equal(expected, message:sub(1, #expected))
      assert.equal(2, code)
    end)
  end

  it("with a syntax error has code 2 and a line", function()
    local path = write("wrong.lua", header .. "return marea.recipe {\n  name = = 1\n}")
    local message, code = refusal(path)
    assert.equal(path .. ":3: ", message:sub(1, #path + 4))
    assert.equal(2, code)
  end)

  it("that calls a function that is not there has code 2 and a line", function()
    local path = write("wrong.lua", header .. "marea.nothing()\n" .. body)
    local message, code = refusal(path)
    assert.equal(path .. ":2: ", message:sub(1, #path + 4))
    assert.equal(2, code)
  end)

  it("cannot be read: code 2 with its path", function()
    local message, code = refusal(folder .. "/none.lua")
    assert.equal("cannot read " .. folder .. "/none.lua: No such file or directory",
                 message:match("cannot read .*"))
    assert.equal(2, code)
  end)

  it("keeps code 1 where a script without a recipe fails", function()
    local path = write("script.lua", "local x\nreturn x.y")
    local message, code = refusal(path)
    assert.equal(path .. ":2: ", message:sub(1, #path + 4))
    assert.equal(1, code)
  end)
end)

describe("the files of a recipe", function()
  it("are the recipe and all it requires, dofiles or loadfiles beside itself", function()
    write("shared.lua", "counter = (counter or 0) + 1\nreturn { value = 3, counter = counter }")
    write("extra.lua", "return 4")
    write("more.lua", "return 5")
    local path = write("example.lua", header .. [[
local shared = require "shared"
assert(require "shared" == shared and shared.counter == 1)
assert(dofile "extra.lua" == 4 and loadfile "more.lua"() == 5)
]] .. body)
    local loaded = recipe.load(path)
    local names = {}
    for _, file in ipairs(loaded.files) do names[#names + 1] = file.name end
    assert.same({ "example.lua", "shared.lua", "extra.lua", "more.lua" }, names)
    assert.equal(folder .. "/shared.lua", loaded.files[2].path)
    assert.is_nil(package.loaded.shared)
    assert.is_nil(rawget(_G, "counter"))
    assert.equal(4, #recipe.load(path).files)
  end)

  it("grow when a callback requires another later", function()
    write("late.lua", "return 6")
    local text = body:gsub("model = function%(c%) return c end",
                           'model = function() return require "late" end')
    local loaded = recipe.load(write("example.lua", header .. text))
    assert.equal(1, #loaded.files)
    assert.equal(6, loaded.model())
    assert.equal("late.lua", loaded.files[2].name)
  end)

  it("leave out the library", function()
    local loaded = recipe.load(write("example.lua", header .. 'require "marea.json"\n' .. body))
    assert.equal(1, #loaded.files)
  end)
end)
