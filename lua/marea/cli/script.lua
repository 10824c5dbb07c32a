-- `marea FILE.lua`: trains the recipe that the file returns, or, when it returns none, has run it.

local recipe = require "marea.recipe"

---@type marea.Command
local script = {
  name = "FILE.lua",
  summary = "train a recipe, or run a script",
  example = "marea recipes/minimum.lua lr=0.05",
}

function script.define(parser)
  parser:argument("file", "A Lua file: a recipe, or a script with all of marea at hand.")
  parser:argument("settings", "key=value for the recipe's config; a script gets them as `...`.")
    :args("*")
  require("marea.cli.train").define_progress(parser)
end

function script.run(options)
  local world = require("marea.world").get()
  local loaded = recipe.load(options.file, options.settings, world:size())
  if not loaded then return 0 end
  return require("marea.cli.train").run_recipe(loaded, options)
end

return script
