-- The word that stands where a recipe's file is expected: what it is when it is none.

local core = require "marea.core"
local fault = require "marea.fault"
local json = require "marea.json"
local launch = require "marea.launch"

local recipe_word = {}

-- The recipe of the run that a word names, and the run's name where it is not the recipe's.
local function recipe_of_run(outputs, word)
  local name = word:gsub("/+$", ""):match("[^/]*$")
  for _, folder in ipairs { word:gsub("/+$", ""), outputs .. "/" .. word } do
    local path = folder .. "/run.json"
    local record = core.file.exists(path) and json.decode(core.file.read(path))
    if type(record) == "table" and type(record.recipe) == "string" then
      return record.recipe, record.name ~= name and name or nil
    end
  end
end

local function command_line(command, file, settings, run)
  local words = { "marea", command, launch.quote(file) }
  for _, word in ipairs(settings) do words[#words + 1] = launch.quote(word) end
  if run then words[#words + 1] = "--run " .. launch.quote(run) end
  return table.concat(words, " ")
end

-- The recipe is among the settings, or it was forgotten.
local function refuse_setting(command, word, settings)
  local file, rest = "RECIPE.lua", { word }
  for _, setting in ipairs(settings) do
    if setting:find("%.lua$") then file = setting else rest[#rest + 1] = setting end
  end
  fault.raise_at(2, "", "%s: the recipe's file comes first, then key=value: %s", command,
                 command_line(command, file, rest))
end

--- Refuses a word that cannot be a recipe's file, with the command that was most likely meant. What
--- ends in .lua, or is a file, is left to the loader.
--- Errors: code 2.
---@param command string its name
---@param options {recipe: string, settings: string[], outputs: string}
function recipe_word.check(command, options)
  local word, settings = options.recipe, options.settings or {}
  local there = core.file.exists(word) and not core.file.is_folder(word)
  if there or word:find("%.lua$") then return end
  if word:find("^[%w_]+=") then refuse_setting(command, word, settings) end
  local file, run = recipe_of_run(options.outputs, word)
  if file then
    fault.raise_at(2, "", "%s: expected a recipe's file, and %s is a run of %s: %s", command, word,
                   file, command_line(command, file, settings, run))
  end
  for _, path in ipairs { word .. ".lua", "recipes/" .. word .. ".lua" } do
    if core.file.exists(path) then
      fault.raise_at(2, "", "%s: there is no file %s; did you mean %s?", command, word, path)
    end
  end
  fault.raise_at(2, "", "%s: expected a recipe's file, such as recipes/minimum.lua, got %s",
                 command, word)
end

return recipe_word
