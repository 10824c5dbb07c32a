-- Runs a recipe's file and knows every Lua file that took part, for the lock.
--
-- The file runs in an environment of its own: globals that it sets stay there, and its `require`,
-- `dofile` and `loadfile` also look beside the recipe and write down what they load. Modules beside
-- the recipe are loaded once per run of the loader, so two loads of one recipe share nothing.

local fault = require "marea.fault"

local loader = {}

local library_folder = debug.getinfo(1, "S").source:match("^@(.*[/\\])loader%.lua$") or ""

-- The text of a file, or nil and why there is none ("x.lua: No such file or directory").
local function readable(path)
  local file, problem = io.open(path, "r")
  if not file then return nil, problem end
  local text, why = file:read("a")
  file:close()
  return text, why and ("%s: %s"):format(path, why)
end

local function folder_of(path)
  return path:match("^(.*[/\\])[^/\\]*$") or ""
end

-- A name that does not depend on where the recipe's folder lies, where there is one.
local function name_beside(folder, path)
  if folder ~= "" and path:sub(1, #folder) == folder then return path:sub(#folder + 1) end
  return path
end

local function compile(context, path)
  local text, unread = readable(path)
  if not text then fault.raise(2, "cannot read %s", unread) end
  if text:sub(1, 1) == "\27" then fault.raise_at(2, path, "expected Lua text, got compiled Lua") end
  local chunk, problem = load(text:gsub("^#[^\n]*", ""), "@" .. path, "t", context.environment)
  if not chunk then error(fault.new(2, problem), 0) end
  return chunk, text
end

local function record(context, name, path)
  for _, file in ipairs(context.files) do
    if file.path == path then return end
  end
  table.insert(context.files, { name = name, path = path })
end

-- "recipes/shared.lua" for require "shared" in recipes/x.lua, when there is such a file.
local function module_beside(context, name)
  if name == "marea" or name:sub(1, 6) == "marea." then return nil end
  local stem = context.folder .. name:gsub("%.", "/")
  for _, path in ipairs { stem .. ".lua", stem .. "/init.lua" } do
    if readable(path) then return path end
  end
end

local function refuse_missing(name)
  if package.loaded[name] ~= nil or package.preload[name] or
      package.searchpath(name, package.path) or package.searchpath(name, package.cpath) then
    return
  end
  fault.raise(2, "there is no module %q, neither beside the recipe nor in Lua's package.path",
              name)
end

local function require_from(context, name)
  local replaced = context.replaced[name]
  if replaced then return replaced end
  local path = module_beside(context, name)
  if not path then
    refuse_missing(name)
    local found = package.searchpath(name, package.path)
    if found and found:sub(1, #library_folder) ~= library_folder and name ~= "marea" then
      record(context, name, found)
    end
    return require(name)
  end
  if context.modules[path] == nil then
    record(context, name_beside(context.folder, path), path)
    local value = compile(context, path)(name, path)
    context.modules[path] = value == nil and true or value
  end
  return context.modules[path], path
end

local function environment_for(context)
  local environment = {}
  local function load_recorded(path)
    if not readable(path) then path = context.folder .. path end
    local chunk = compile(context, path)
    record(context, name_beside(context.folder, path), path)
    return chunk
  end
  environment.require = function(name) return require_from(context, name) end
  environment.dofile = function(path) return load_recorded(path)() end
  environment.loadfile = function(path)
    local ok, chunk = pcall(load_recorded, path)
    if ok then return chunk end
    return nil, (fault.of(chunk))
  end
  return setmetatable(environment, { __index = _G })
end

-- A recipe that ended the process itself would leave no message and no exit code that means
-- anything, and random numbers that no seed of the config decides differ between ranks and runs: a
-- recipe that calls os.exit or math.random is refused. Scripts may.
local function forbid(context)
  local environment = context.environment
  local function refuse_random()
    fault.raise(2, "a recipe cannot call math.random, which draws other numbers on each rank " ..
                "and in each run; use marea.random.stream(seed, number)")
  end
  environment.math = setmetatable({ random = refuse_random, randomseed = refuse_random },
                                  { __index = math })
  environment.os = setmetatable({
    exit = function()
      fault.raise(2, "a recipe cannot call os.exit; it can raise an error")
    end,
  }, { __index = os })
  environment._G = environment
  context.replaced = { os = environment.os, math = environment.math, _G = environment }
end

-- Raised while a recipe is being loaded, an error is the recipe's (code 2); a script that declares
-- no recipe is simply running by then (code 1). Which one a file is cannot be asked before it has
-- returned, so its text decides.
local function code_of_text(text)
  return text:find("%f[%w_]recipe%s*[{(]") and 2 or 1
end

--- Runs the Lua file at `path`.
--- Errors: a file that cannot be read or compiled: code 2; a string raised by a file that declares
--- a recipe: code 2, by any other: code 1; faults keep their code.
---@param path string
---@param ... string what the file gets as its `...`
---@return marea.Context context
function loader.run(path, ...)
  local context = { path = path, folder = folder_of(path), files = {}, modules = {}, replaced = {} }
  context.environment = environment_for(context)
  local chunk, text = compile(context, path)
  context.text = text
  record(context, name_beside(context.folder, path), path)
  local code = code_of_text(text)
  if code == 2 then forbid(context) end
  local function blame(raised)
    if fault.is(raised) then return raised end
    return fault.new(code, fault.seize(raised).message)
  end
  local results = table.pack(xpcall(chunk, blame, ...))
  if not results[1] then error(results[2], 0) end
  context.results = table.pack(table.unpack(results, 2, results.n))
  return context
end

return loader
