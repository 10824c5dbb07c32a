-- What can be done after a training, as commands that are ready to paste: with the same recipe,
-- settings, ranks, run and folder of runs.

local command_line = require "marea.command_line"
local core = require "marea.core"
local launch = require "marea.launch"

local next_commands = {}

-- "PATH" has a program of this name in this folder.
local function is_in_path(folder)
  for part in (os.getenv "PATH" or ""):gmatch("[^:]+") do
    if part == folder then return true end
  end
  return false
end

--- How this marea is called from the working directory: by its wrapper in a checkout, by its name
--- where PATH has it, else by its path.
---@return string word as a shell reads it
function next_commands.program()
  local path = launch.program()
  local checkout = path:match("^(.*)/build/bin/marea$")
  if checkout and core.file.exists(checkout .. "/marea") then
    return checkout == os.getenv "PWD" and "./marea" or launch.quote(checkout .. "/marea")
  end
  if is_in_path(path:match("^(.*)/marea$")) then return "marea" end
  return launch.quote(path)
end

--- The command that this process was started with, on another number of ranks.
---@param ranks integer
---@return string? line ready to paste; nil for what is not the marea program
function next_commands.on_ranks(ranks)
  if not launch.words then return nil end
  local list = { next_commands.program() }
  if ranks > 1 then list[2], list[3], list[4] = "launch", "-n", tostring(ranks) end
  for _, word in ipairs(launch.words) do list[#list + 1] = launch.quote(word) end
  return table.concat(list, " ")
end

---@class marea.Finished
---@field recipe marea.Recipe
---@field ranks integer
---@field outputs string root folder of runs
---@field name string of the run
---@field init? string file whose weights it began with
---@field result marea.Trained

-- "./marea launch -n 2 train recipes/x.lua lr=0.1 ... --outputs DIR", quoted.
local function command(finished, words, more)
  return command_line.of {
    program = next_commands.program(), ranks = more.launched and finished.ranks or nil,
    words = words, settings = more.settings, options = more.options,
    run = more.run ~= finished.recipe.name and more.run or nil, outputs = finished.outputs }
end

-- A name below the folder of runs that is not taken.
local function free_name(finished)
  local stem = finished.name .. "-again"
  local name, number = stem, 1
  while core.file.exists(finished.outputs .. "/" .. name) do
    number = number + 1
    name = stem .. number
  end
  return name
end

local function comparison(finished, trained)
  local result, name = finished.result, finished.name
  if result.moved_to then
    return { "what differs from the run before",
             command(finished, { "compare", result.moved_to:match("[^/]*$"), name }, {}) }
  end
  local again = free_name(finished)
  local whole = result.update == result.updates and { "--continuous" } or
    { "--until", tostring(result.update) }
  if finished.init then table.move({ "--init", finished.init }, 1, 2, #whole + 1, whole) end
  return { "the same once more in one piece, and whether every bit is the same",
           trained(again, whole), command(finished, { "compare", again, name }, {}) }
end

--- The next commands as text for readers.
---@param commands string[][] as next_commands.of gives them
---@return string text
function next_commands.text(commands)
  local lines = { "next:" }
  for _, item in ipairs(commands) do
    lines[#lines + 1] = "  " .. item[1] .. ":"
    for i = 2, #item do lines[#lines + 1] = "    " .. item[i] end
  end
  return table.concat(lines, "\n")
end

--- The next commands.
---@param finished marea.Finished
---@return string[][] commands what for, then the commands
function next_commands.of(finished)
  local recipe, result = finished.recipe, finished.result
  local settings = recipe.options.overrides or {}
  local function trained(run, options)
    return command(finished, { "train", recipe.path },
                   { launched = true, settings = settings, options = options, run = run })
  end
  local list = { { "a page with figures", command(finished, { "report", finished.name }, {}) } }
  if result.update < result.updates then
    list[#list + 1] = { ("on from update %d"):format(result.update),
                        trained(finished.name, { "--resume", "latest" }) }
  else
    list[#list + 1] = { "loss and accuracy on the test split",
                        command(finished, { "evaluate", recipe.path },
                                { settings = settings, run = finished.name }) }
  end
  list[#list + 1] = comparison(finished, trained)
  return list
end

return next_commands
