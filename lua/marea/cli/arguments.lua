-- The command line of one command: argparse reads it, this file words what is wrong with it.

local argparse = require "argparse"
local fault = require "marea.fault"
local nearest = require "marea.nearest"

local arguments = {}

-- Options that every command knows.
local function add_common(parser)
  parser:flag("-h --help", "Say what this command does and takes.")
  parser:flag("--json", "Print results as JSON.")
  parser:option("--outputs", "Folder of all runs.", "outputs"):argname("DIR")
  parser:option("--run", "Name of the run's folder (default: the recipe's name)."):argname("NAME")
  parser:option("--device", "Compute on cpu, cuda, cuda:N or auto (default: the recipe's).")
    :argname("NAME")
  parser:flag("--share-gpu", "Let ranks share a GPU.")
  parser:flag("--trace", "On an error, also print where in the library it came from.")
end

-- Every spelling of every option of a parser.
local function spellings(parser)
  local names = {}
  for _, option in ipairs(parser._options) do
    for _, alias in ipairs(option._aliases) do names[#names + 1] = alias end
  end
  return names
end

-- alias -> whether the option takes a value
local function takes_value(parser)
  local result = {}
  for _, option in ipairs(parser._options) do
    for _, alias in ipairs(option._aliases) do result[alias] = option._maxargs > 0 end
  end
  return result
end

--- The argparse parser of a command, common options included.
---@param command marea.Command
---@return table parser of argparse
function arguments.parser(command)
  local parser = argparse("marea " .. command.name, command.summary)
  parser:add_help(false)
  parser:help_max_width(100)
  if command.define then command.define(parser) end
  add_common(parser)
  if command.example then parser:epilog("Example:\n   " .. command.example) end
  return parser
end

-- Where the words of another command begin, for a command that hands them on untouched (its field
-- `hands_on` is true): the first word that is neither an option of its own nor an option's value.
local function first_foreign(parser, words)
  local values = takes_value(parser)
  local i = 1
  while i <= #words do
    local word = words[i]
    if word:sub(1, 1) ~= "-" then return i end
    local takes = values[word] or (word:match("^%-%a") and not word:match("^%-%-") and
      values[word:sub(1, 2)] and #word == 2)
    i = i + (takes and 2 or 1)
  end
  return #words + 1
end

-- "-n -1" as "-n-1" and "--until -1" as "--until=-1": argparse takes what begins with a dash for an
-- option, and a number is none.
local function join_numbers(parser, words)
  local values, joined = takes_value(parser), {}
  for _, word in ipairs(words) do
    local before = joined[#joined]
    if word:find("^%-%.?%d") and values[before] then
      joined[#joined] = before .. (before:find("^%-%-") and "=" or "") .. word
    else
      joined[#joined + 1] = word
    end
  end
  return joined
end

local function wants_help(words)
  for _, word in ipairs(words) do
    if word == "--" then return false end
    if word == "-h" or word == "--help" then return true end
  end
  return false
end

-- argparse's message with the nearest option's name in place of its own tip.
local function reword(problem, command, parser)
  local option = problem:match("^unknown option '([^']*)'")
  local line = problem:match("^[^\n]*")
  if option then
    line = ("unknown option '%s'%s"):format(option, nearest.hint(option, spellings(parser)))
  end
  return ("%s (see marea %s --help)"):format(line, command.name)
end

--- Declares what most commands take: a recipe's file, and key=value for its config.
---@param parser table of argparse
function arguments.recipe(parser)
  parser:argument("recipe", "The recipe's file."):argname("RECIPE.lua")
  parser:argument("settings", "Values for the recipe's config."):args("*"):argname("key=value")
end

--- A converter for an option that names an update, for argparse.
---@param option string "--until"
---@return fun(text: string): integer?, string? convert nil and what is wrong for anything else
function arguments.update(option)
  return function(text)
    local number = math.tointeger(tonumber(text))
    if number and number >= 1 then return number end
    return nil, ("%s must be an update of 1 or more, not %s"):format(option, text)
  end
end

--- Declares --step, the update whose window a command looks at.
---@param parser table of argparse
function arguments.step(parser)
  parser:option("--step", "Which update's window."):argname("K")
    :convert(arguments.update "--step"):default "1"
end

--- Reads the words behind a command's name. For a command with `hands_on`, the words of the
--- other command are in options.words. Errors: code 2, with the nearest option's name; for a
--- recipe's file, as recipe_word.check.
---@param command marea.Command
---@param words string[]
---@return table? options nil when help was asked for
---@return string? help
function arguments.parse(command, words)
  local parser = arguments.parser(command)
  local rest
  if command.hands_on then
    local first = first_foreign(parser, words)
    rest = table.move(words, first, #words, 1, {})
    words = table.move(words, 1, first - 1, 1, {})
  end
  if wants_help(words) then return nil, parser:get_help() end
  local good, result = parser:pparse(join_numbers(parser, words))
  if not good then fault.raise_at(2, "", "%s", reword(result, command, parser)) end
  if result.recipe then require("marea.cli.recipe_word").check(command.name, result) end
  result.words = rest
  return result
end

return arguments
