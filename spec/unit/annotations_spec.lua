-- What language servers are told is what there is: the annotations of the C module against what it
-- exports, those of operations against their records, and every public function of the library.

local annotate = require "marea.annotate"
local annotations = require "marea.annotations"
local core = require "marea.core"
local exports = require "spec.support.exports"
local marea = require "marea"
local public = require "spec.support.public"
local source = require "marea.api.source"

local function read_file(path)
  local stream <close> = assert(io.open(path))
  return stream:read("a")
end

local function files(command)
  local list, listing = {}, assert(io.popen(command .. " | LC_ALL=C sort"))
  for path in listing:lines() do list[#list + 1] = path end
  listing:close()
  return list
end

local annotation_files = files "find -L lua/marea/annotations -name '*.lua'"
local library_files = files("find -L lua/marea -name '*.lua' -not -path '*/annotations/*' " ..
                            "-not -path '*/templates/*'")

-- --- the C module -----------------------------------------------------------------------------

describe("the annotations of the C module", function()
  local texts = {}
  for _, path in ipairs(annotation_files) do texts[path] = read_file(path) end

  it("describe all that it exports, and nothing else", function()
    local registry = debug.getregistry()
    local exported = exports.of(core, registry)
    assert.is_true(exported["marea.tensor:linear"])
    assert.is_true(exported["marea.core.file.sha256"])
    assert.is_true(exported["marea.lock:close"])
    assert.are.equal("", table.concat(exports.differences(core, registry, texts), "\n"))
  end)

  it("are missed where a function, a method or a class has none", function()
    local module = { make = print, part = { go = print }, list = {} }
    local registry = { ["marea.thing"] = { __index = { ask = print } },
                       ["marea.scope"] = { __close = print }, ["marea.hidden"] = { __gc = print } }
    assert.are.same({
      "marea.core is no class of the annotations", "marea.core#list has no annotation",
      "marea.core#part has no annotation", "marea.core.make has no annotation",
      "marea.core.part is no class of the annotations", "marea.core.part.go has no annotation",
      "marea.scope is no class of the annotations", "marea.thing is no class of the annotations",
      "marea.thing:ask has no annotation",
    }, exports.differences(module, registry, {}))
  end)

  it("are refused where they name what is not there, or say too little", function()
    local text = [[
---@class marea.core
---@field gone table
local core = {}

--- Makes.
---@param b integer
function core.make(a) end

---@class marea.thing: userdata
local thing = {}

--- Asks, but is called as a function here.
function thing.ask() end
]]
    local module = { make = print }
    local registry = { ["marea.thing"] = { __index = { ask = print } } }
    assert.are.same({
      "marea.core#gone is annotated and does not exist",
      "marea.thing.ask is annotated and does not exist", "marea.thing:ask has no annotation",
      "text:7: no parameter a", "text:7: no such parameter: b",
    }, exports.differences(module, registry, { text = text }))
  end)
end)

-- --- operations -------------------------------------------------------------------------------

describe("the annotations of operations", function()
  it("are those that their records give", function()
    assert.are.equal(annotate.operations(core.operations), read_file(annotate.path()),
                     "records have changed: run ./marea .ci/annotate.lua")
  end)

  it("say type, dtype, shape and default of each argument", function()
    local text = annotate.operations { {
      name = "turn", text = "Turns.", result_text = "[n]", differentiable = false, arguments = {
        { name = "x", kind = "real", text = "[n]" },
        { name = "ids", kind = "i32", text = "[n]" },
        { name = "often", kind = "integer", optional = true, named = true, fallback = 3,
          text = "times" },
        { name = "back", kind = "flag", optional = true, named = true, fallback = 0,
          text = "whether" },
      } } }
    assert.are.equal([[
---@class marea.turn_options
---@field often? integer times (default 3)
---@field back? boolean whether (default false)

--- Turns.
--- self is x: [n]. No gradient.
---@param ids marea.tensor i32 [n]
---@param options? marea.turn_options
---@return marea.tensor result [n]
function tensor:turn(ids, options) end
]], text:match("local tensor = {}\n\n(.*)$"))
  end)
end)

-- --- the library ------------------------------------------------------------------------------

local function module_name(path)
  return (path:gsub("^lua/", ""):gsub("%.lua$", ""):gsub("/init$", ""):gsub("/", "."))
end

describe("public functions of the library", function()
  it("of commands are described by the type of commands", function()
    local text = "return { name = 'go', summary = 'Goes.', run = function() end }\n"
    local path = "some/go.lua"
    local module = assert(load(text, "@" .. path))()
    assert.are.same({ "some/go.lua: a command that is not typed as one" },
                    public.shortcomings(path, text, module, {}))
    text = "\n---@type marea.Command\n" .. text
    assert.are.same({}, public.shortcomings(path, text, module, {}))
  end)

  it("are those of the engine's class where a class is like it", function()
    local world, group = require("marea.world").get(), getmetatable(core.world()).__index
    for name in pairs(group) do
      assert.are.equal("function", type(world[name]), "the world has no " .. name)
    end
  end)

  it("say what they do, what they take and what they return", function()
    local problems, count, described = {}, 0, exports.of(core, debug.getregistry())
    for _, path in ipairs(library_files) do
      local module = require(module_name(path))
      count = count + #public.functions(path, module)
      local found = public.shortcomings(path, read_file(path), module, described)
      table.move(found, 1, #found, #problems + 1, problems)
    end
    assert.are.equal("", table.concat(problems, "\n"))
    assert.is_true(count > 200, count)
  end)

  it("are found in modules, in classes and behind metatables, and judged one by one", function()
    local text = [[
---@class Thing: marea.group
local Thing = {}
Thing.__index = Thing
local hidden = {}
local meta = { __index = function(_, key) return hidden[key] end }
local module = {}
--- Makes a thing.
---@return table thing
function module.new() return setmetatable({}, Thing) end
function module.bare(a, ...) return a, ... end
--- Of another parameter.
---@param b integer
function module.other(a) module.last = a end
---@return boolean
function Thing:silent() return true end
--- Asks.
function Thing:ask() if self then return 1 end end
function hidden:look() hidden.seen = self end
for _, name in ipairs { "size", "rank" } do
  Thing[name] = function(self) return self end
end
module.other_new = function() return setmetatable({}, meta) end
return module
]]
    local module = assert(load(text, "@some/where.lua"))()
    local described = { ["marea.group:size"] = true }
    local found = public.shortcomings("some/where.lua", text, module, described)
    assert.are.same({
      "some/where.lua:10: bare: no annotation", "some/where.lua:13: other: no parameter a",
      "some/where.lua:13: other: no such parameter: b", "some/where.lua:15: silent: no sentence",
      "some/where.lua:17: ask: no return", "some/where.lua:18: look: no annotation",
      "some/where.lua:20: rank: no annotation", "some/where.lua:22: other_new: no annotation",
    }, found)
  end)
end)

-- --- recipes ----------------------------------------------------------------------------------

-- The names of a class's fields in the annotations, sorted, in one line.
local function field_names(class)
  local names = {}
  for _, field in ipairs(annotations.read(read_file "lua/marea/annotations/library.lua").fields) do
    if field.class == class then names[#names + 1] = field.name end
  end
  table.sort(names)
  return table.concat(names, ", ")
end

describe("the annotations of recipes", function()
  it("have the keys that every config knows", function()
    local _, rules = require("marea.config").resolve { given = {} }
    local names = {}
    for name in pairs(rules) do names[#names + 1] = name end
    table.sort(names)
    assert.are.equal(table.concat(names, ", "), field_names "marea.Config")
  end)

  it("have the fields that a recipe may give", function()
    local recipe = require "marea.recipe"
    local _, refused = pcall(recipe.resolve, recipe.declare { unheard_of_by_anyone = true })
    local names = {}
    for name in tostring(refused):match("it has (.*)$"):gmatch("[%w_]+") do
      names[#names + 1] = name
    end
    table.sort(names)
    assert.are.equal(table.concat(names, ", "), field_names "marea.Definition")
  end)
end)

-- --- what editors complete --------------------------------------------------------------------

describe("the annotations of marea's parts", function()
  local found = source.read "lua/marea/"

  it("name every part that marea has, and the table that it is", function()
    for _, field in ipairs(annotations.describe(found.types["marea.Library"].block).field) do
      assert.are.equal("table", type(marea[field.name]), field.name)
      assert.are.equal(field.name .. ".lua", (found.types[field.type] or {}).file, field.type)
      assert.is_not_nil(found.types[field.type].holder, field.type)
    end
    local _, refused = pcall(function() return marea.zzzzzzzzzz end)
    for name in tostring(refused):match("it has (.*)$"):gmatch("[%w_]+") do
      assert.is_true(type(marea[name]) ~= "table" or found.types["marea.parts." .. name] ~= nil,
                     name)
    end
  end)

  it("tell of each module of nn how it is made, and what a call of it gives", function()
    for name, class in next, marea.nn do
      if type(class) == "table" then
        local block = table.concat(found.types["marea." .. name].block, "\n") .. "\n"
        assert.truthy(block:find(("@overload fun%%(options: [^\n]*: marea.%s\n"):format(name)),
                      name)
        assert.truthy(block:find("@overload fun%([^\n]*: marea.tensor\n"), name)
      end
    end
  end)
end)

-- --- types ------------------------------------------------------------------------------------

local known = {
  any = true, ["nil"] = true, boolean = true, number = true, integer = true, string = true,
  table = true, userdata = true, ["function"] = true, ["true"] = true, ["false"] = true,
}

-- Tags whose type cannot be read, or names what is declared nowhere.
local function bad_types(texts)
  local declared, problems = setmetatable({}, { __index = known }), {}
  for _, text in pairs(texts) do
    for name in pairs(annotations.read(text).types) do declared[name] = true end
  end
  for path, text in pairs(texts) do
    local generics = {}
    for number, line in ipairs(annotations.lines(text)) do
      for tag, rest in annotations.tags { line } do
        if tag == "generic" then generics[rest:match("^%w+")] = true end
        local names, problem = annotations.named_types(tag, rest)
        for _, name in ipairs(names) do
          if not declared[name] and not generics[name] then problem = "no type " .. name end
        end
        if problem then problems[#problems + 1] = ("%s:%d: %s"):format(path, number, problem) end
      end
    end
  end
  table.sort(problems)
  return problems
end

describe("types in annotations", function()
  it("can be read, and are declared", function()
    local texts = {}
    for _, list in ipairs { annotation_files, library_files } do
      for _, path in ipairs(list) do texts[path] = read_file(path) end
    end
    assert.are.equal("", table.concat(bad_types(texts), "\n"))
  end)

  it("are read as LuaLS reads them", function()
    for text, wanted in pairs {
      ["integer[] ids"] = "integer", ["a.B? rest"] = "a.B", ["string|nil"] = "string nil",
      ["{a: x, b?: y, [string]: z} rest"] = "x y string z", ["(a|b)[] rest"] = "a b",
      ["table<string, a[]>"] = "table string a",
      ["fun(a: x, b?: y): z?, string"] = "x y z string",
      ['"mean"|"sum"'] = "", ["number [rows, columns]"] = "number",
    } do
      local names = assert(annotations.types(text))
      assert.are.equal(wanted, table.concat(names, " "), text)
    end
  end)

  it("are refused where they are unknown, broken off, or run into the next one", function()
    assert.are.same({
      "a:1: no type marea.Nothing", 'a:2: expected a name at ""', "a:3: no type wrong",
      "a:4: a comma behind the name of what is returned begins another type",
    }, bad_types { a = [[
---@param a marea.Nothing
---@param b {x: integer,
---@class marea.Known: wrong
---@return integer rows, always
]] })
  end)
end)
