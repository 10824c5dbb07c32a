-- marea new: a commented recipe to start from.

local core = require "marea.core"
local fault = require "marea.fault"
local guess = require "marea.corpus.guess"
local launch = require "marea.launch"

local context = 128 -- of the template's model

-- The template's unit of its own.
local units = {
  per_book = [[
    -- every book counts the same, however many verses of it a window holds
    per_book = function(sequence, window)
      return 1 / window:total("book", sequence.book)
    end,]],
  by_root = [[
    -- a sequence counts by the square root of its length
    by_root = function(sequence) return 1 / math.sqrt(sequence.tokens) end,]],
}

local function library_file(name)
  local source = debug.getinfo(1, "S").source
  return source:match("^@(.*[/\\])cli[/\\]new%.lua$") .. name
end

local function define(parser)
  parser:argument("name", "Name of the recipe; NAME.lua is written into this folder.")
    :argname("NAME")
  parser:option("--corpus", "A file of JSON lines or of plain text (default: verses that come " ..
                "with marea)."):argname("FILE")
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

-- The call that reads the corpus, as Lua within the template.
local function corpus_call(path, found)
  local head = ("corpus.%s { "):format(found.source)
  local lines = { ("path = %q"):format(path), table.unpack(found.options) }
  lines[#lines + 1] = ("context = %d"):format(context)
  if found.longest > context then lines[#lines + 1] = 'long = "split"' end
  return head .. table.concat(lines, ",\n" .. (" "):rep(#"    return " + #head)) .. " }"
end

local function has(list, wanted)
  for _, value in ipairs(list) do
    if value == wanted then return true end
  end
  return false
end

local function values_of(name, given)
  local path = given or launch.root() .. "/recipes/data/verses.jsonl"
  local found = guess.of(path)
  local unit = has(found.fields, "book") and "per_book" or "by_root"
  return { NAME = name, CORPUS = corpus_call(absolute(path), found), UNIT = unit,
           UNITS = units[unit] }
end

local function run_command(options)
  if launch.rank() > 0 then return 0 end
  local path, name = check_name(options.name)
  if core.file.exists(path) then
    fault.raise_at(2, "", "%s is already there; give another name", path)
  end
  local text = core.file.read(library_file("templates/recipe.lua"))
  local values = values_of(name, options.corpus)
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
