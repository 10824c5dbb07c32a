-- marea new: a commented recipe to start from.

local core = require "marea.core"
local fault = require "marea.fault"
local launch = require "marea.launch"

local function library_file(name)
  local source = debug.getinfo(1, "S").source
  return source:match("^@(.*[/\\])cli[/\\]new%.lua$") .. name
end

local function define(parser)
  parser:argument("name", "Name of the recipe; NAME.lua is written into this folder.")
    :argname("NAME")
  parser:option("--corpus", "A file of JSON lines with a field 'text' (default: verses that " ..
                "come with marea)."):argname("FILE")
end

local function check_name(name)
  name = name:gsub("%.lua$", "")
  local base = name:match("[^/]*$")
  if not base:find("^%w[%w_.-]*$") then
    fault.raise_at(2, "", "a recipe's name is made of letters, digits, '_', '-' and '.', and " ..
                   "begins with a letter or digit; got '%s'", base)
  end
  return name .. ".lua", base
end

local function absolute(path)
  if path:sub(1, 1) == "/" then return path end
  return (os.getenv("PWD") or ".") .. "/" .. path
end

local function corpus_path(given)
  if not given then return absolute(launch.root()) .. "/recipes/data/verses.jsonl" end
  if not core.file.exists(given) then fault.raise_at(2, "", "there is no file %s", given) end
  return absolute(given)
end

local function run_command(options)
  if launch.rank() > 0 then return 0 end
  local path, name = check_name(options.name)
  if core.file.exists(path) then
    fault.raise_at(2, "", "%s is already there; give another name", path)
  end
  local text = core.file.read(library_file("templates/recipe.lua"))
  local values = { NAME = name, CORPUS = corpus_path(options.corpus) }
  core.file.write(path, (text:gsub("%f[%u]%u+%f[%W]", values)))
  print(("%s is written. Next:\n  marea prepare %s\n  marea launch -n 2 parity %s\n" ..
         "  marea launch -n 2 train %s"):format(path, path, path, path))
  return 0
end

---@type marea.Command
return {
  name = "new",
  summary = "Write a commented recipe to start from.",
  example = "marea new mine --corpus mine.jsonl",
  define = define,
  run = run_command,
}
