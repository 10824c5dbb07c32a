-- Commands as lines that are ready to paste.

local launch = require "marea.launch"

local command_line = {}

---@class marea.CommandLine
---@field program? string as a shell reads it (default "marea")
---@field ranks? integer more than 1: through marea launch
---@field words string[] the command and what it is about
---@field settings? any[] values for a recipe's config
---@field options? string[]
---@field run? string the run's name, where it is not that of the recipe
---@field outputs? string root folder of runs

--- A command as a line, quoted for a shell.
---@param given marea.CommandLine
---@return string line
function command_line.of(given)
  local list = { given.program or "marea" }
  local function add(words)
    for _, word in ipairs(words or {}) do list[#list + 1] = launch.quote(tostring(word)) end
  end
  if given.ranks and given.ranks > 1 then add { "launch", "-n", given.ranks } end
  add(given.words)
  add(given.settings)
  add(given.options)
  if given.run then add { "--run", given.run } end
  if given.outputs and given.outputs ~= "outputs" then add { "--outputs", given.outputs } end
  return table.concat(list, " ")
end

return command_line
