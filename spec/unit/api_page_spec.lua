-- lua/REFERENCE.md, the page of the Lua API, says what the annotations say, of all that recipes and
-- scripts are given.

local annotate = require "marea.annotate"
local core = require "marea.core"
local marea = require "marea"
local page = require "marea.api.page"
local source = require "marea.api.source"

local text, shown = annotate.page()
local parts = { "corpus", "nn", "objective", "optim", "random", "sampler", "schedule", "tensor" }

-- --- completeness -----------------------------------------------------------------------------

local function is_callable(value)
  if type(value) == "function" then return true end
  local meta = type(value) == "table" and getmetatable(value)
  return meta and rawget(meta, "__call") ~= nil
end

-- Public names that a page does not call: "nn.Linear".
local function missing(names, of_page)
  local list = {}
  for name in pairs(names) do
    if not of_page:find(("\n#### %s("):format(name), 1, true) then list[#list + 1] = name end
  end
  table.sort(list)
  return table.concat(list, " ")
end

local function public_names()
  local names, count = {}, 0
  local function add(prefix, part)
    for name, value in next, part do
      if is_callable(value) then names[prefix .. name], count = true, count + 1 end
    end
  end
  add("marea.", marea)
  for _, part in ipairs(parts) do add(part .. ".", marea[part]) end
  -- Streams and tensors of random numbers are in marea.random too; the page has the latter once.
  names["random.normal"], names["random.uniform"] = nil, nil
  return names, count
end

describe("the page of the Lua API", function()
  it("is what the annotations give", function()
    assert.is_true(core.file.read(annotate.page_path()) == text,
                   "annotations have changed: run ./marea .ci/annotate.lua")
  end)

  it("has every function of marea and of its parts", function()
    local names, count = public_names()
    assert.are.equal("", missing(names, text))
    assert.is_true(count > 40, count)
    assert.are.equal("marea.teach nn.Lineer", missing({ ["marea.teach"] = true,
                                                        ["nn.Lineer"] = true }, text))
  end)

  it("has every operation, and every function and method of the engine", function()
    local found, list = source.new(), {}
    for _, name in ipairs(core.file.list(annotate.path():match("^(.*)operations%.lua$"))) do
      source.add(found, "annotations/" .. name,
                 core.file.read(annotate.path():gsub("operations%.lua$", name)))
    end
    for key, functions in pairs(found.functions) do
      for _, item in ipairs(functions) do
        if not shown[key .. "." .. item.name] then list[#list + 1] = key .. "." .. item.name end
      end
    end
    assert.are.equal("", table.concat(list, "\n"), "no place in lua/marea/api/contents.lua")
    for _, operation in ipairs(core.operations) do
      assert.are.equal("", missing({ ["tensor:" .. operation.name] = true }, text))
    end
  end)

  it("calls nothing that does not exist", function()
    local roots, count = { core = core, marea = marea }, 0
    for _, part in ipairs(parts) do roots[part] = marea[part] end
    for path in text:gmatch("\n#### ([%w_.]+)%(") do
      local value = roots
      if path:find(".", 1, true) then
        for name in path:gmatch("[^.]+") do value = value and rawget(value, name) end
        assert.is_true(is_callable(value) or false, path)
        count = count + 1
      end
    end
    assert.is_true(count > 80, count)
  end)

  it("leads only to what is on it", function()
    local anchors, count = {}, 0
    for heading in ("\n" .. text):gmatch("\n#+ ([^\n]+)") do
      anchors[require("marea.api.markdown").anchor(heading)] = true
    end
    for anchor in text:gmatch("%]%(#([^)]*)%)") do
      assert.is_true(anchors[anchor] or false, anchor)
      count = count + 1
    end
    assert.is_true(count > 200, count)
  end)

  it("shows examples that run", function()
    local count = 0
    for block in text:gmatch("```lua\n(.-)```") do
      assert(load(block, "=example"))()
      count = count + 1
    end
    assert.is_true(count > 6, count)
  end)
end)

-- --- how it is made ---------------------------------------------------------------------------

local sample = [[
---@alias a.Choice "one"|"two"

---@class a.Options
---@field size integer at least 1
---@field kind? a.Choice (default "one")

--- Has [rows, columns]; see part.make and my_name. Errors, code 2: others.
---@class a.Thing: a.Base
---@field count integer how often,
---  in all
---@field hidden integer
local Thing = {}

---@class a.Base
local Base = {}

---@class a.Keys
---@field size integer at least 1
---@field kind a.Choice

local part = {}

--- Makes one; a * b stays as it is, and so does |a|.
--- Errors, code 1: none.
---@param base a.Base
---@param options? a.Options
---@return a.Thing thing made anew
---@return integer? left
function part.make(base, options) return Thing, base, options end

--- Asks.
---@param ... a.Thing[]|"none"
function Thing:ask(...) return self, ... end

function part.internal() return Base end
]]

local contents = { {
  title = "Parts", text = "Some.", example = "local x = 1",
  entries = {
    { title = "a.part", functions = "part.lua part", as = "part", without = { "internal" } },
    { title = "A thing", class = "a.Thing", as = "thing", without = { "hidden" } },
    { title = "Base", record = "a.Base" },
    { title = "Keys", config = "a.Keys" },
  },
} }

describe("a page", function()
  local made, functions
  before_each(function()
    local found = source.new()
    source.add(found, "part.lua", sample)
    made, functions = page.make(contents, found, { size = 3 })
  end)

  it("has a function with its parameters, options, results and errors", function()
    assert.are.equal([[
#### part.make(base, options?)

Makes one; a \* b stays as it is, and so does |a|.

**Errors**, code 1: none.

- `base` ([`a.Base`](#base-abase))
- `options?` (`a.Options`)
  - `size` (`integer`): at least 1
  - `kind?` (`"one"|"two"`) (default "one")
- returns `thing` ([`a.Thing`](#a-thing-athing)): made anew
- returns `left` (`integer?`)
]], made:match("\n(#### part.make.-)\n###"))
  end)

  it("has a class with its parents, fields and methods", function()
    assert.are.equal([[
### A thing (`a.Thing`)

Has `[rows, columns]`; see `part.make` and `my_name`.

**Errors**, code 2: others.

All that [`a.Base`](#base-abase) has, and:

- `count` (`integer`): how often, in all

#### thing:ask(...)

Asks.

- `...` ([`a.Thing[]`](#a-thing-athing) or `"none"`)
]], made:match("\n(### A thing.-)\n### Base"))
  end)

  it("has keys with their types and defaults", function()
    assert.are.equal([[
| key | type | default | |
| --- | --- | --- | --- |
| `size` | `integer` | `3` | at least 1 |
| `kind` | `"one"\|"two"` |  |  |
]], made:match("\n(| key.*)$"))
  end)

  it("begins with an overview, and says which functions it has", function()
    assert.truthy(made:find("- [**Parts**](#parts): [a.part](#apart), " ..
                            "[A thing](#a-thing-athing), [Base](#base-abase)", 1, true))
    assert.truthy(made:find("## Parts\n\nSome.\n\n```lua\nlocal x = 1\n```\n", 1, true))
    assert.are.same({ ["part.lua part.make"] = true, ["part.lua Thing.ask"] = true }, functions)
    assert.is_nil(made:find("internal", 1, true))
    assert.is_nil(made:find("hidden", 1, true))
  end)

  it("is refused for a type that is declared nowhere", function()
    assert.has_error(function()
      local entry = { title = "None", record = "a.None" }
      page.make({ { title = "Parts", text = "", entries = { entry } } }, source.new(), {})
    end)
  end)
end)
