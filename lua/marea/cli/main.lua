-- The command line: `marea <command> ...` and `marea FILE.lua ...`. Only the module of the command
-- that was asked for is loaded, so every command starts fast.

local fault = require "marea.fault"
local failure = require "marea.cli.failure"

local main = {}

-- In the order of `marea --help`. A command NAME is in lua/marea/cli/NAME.lua with "-" as "_". Such
-- a module is {name, summary, example, define = function(parser), run = function(options)}; run
-- returns the exit code.
main.commands = {
  { "demo", "the whole protocol on two ranks, ending in one table of verdicts" },
  { "new", "write a commented recipe to start from" },
  { "doctor", "check machine, libraries, MPI and a kernel on every rank" },
  { "prepare", "write a recipe's corpus, corpus card, plan and lock" },
  { "check-loss", "the example of 12 and 36 tokens, with its right and wrong means" },
  { "exercise", "predict the loss of two ranks, then see it" },
  { "weigh", "weight of every position, sequence and rank under each objective" },
  { "reference", "gradient of the declared objective, by one process" },
  { "parity", "prove the recipe's own gradient against the reference, with controls" },
  { "accumulation", "one window in N microbatches of B: loss, gradient, memory" },
  { "train", "train a recipe" },
  { "stop", "ask a run that is under way to save and stop" },
  { "compare", "compare two runs or checkpoints, and name the first difference" },
  { "evaluate", "loss and accuracy of a checkpoint on a split" },
  { "sample", "text from a checkpoint of a recipe of text" },
  { "report", "one page with figures of a run, or of several overlaid" },
  { "checkpoints", "verify every byte of every checkpoint" },
  { "runs", "list runs, how far they came and how they ended" },
  { "clean", "list what need not be kept; --yes removes it" },
  { "export", "weights of a checkpoint as safetensors, for other tools" },
  { "bench", "how fast a recipe's step is, beside its products alone and PyTorch" },
  { "launch", "start any of these commands on several ranks" },
  { "test", "run the specs" },
}

local overview = [[
Usage: marea <command> [RECIPE.lua] [key=value ...] [options]
       marea FILE.lua [key=value ...]          train a recipe, or run a script
       marea launch -n W <command> ...         the same on W ranks
       marea help [<command>]                  what a command does and takes
]]

local options_overview = [[
options of every command:
   --outputs DIR    folder of all runs (default: outputs)
   --run NAME       name of the run's folder (default: the recipe's name)
   --device NAME    cpu, cuda, cuda:N, or auto: a GPU where there is one (default: the recipe's)
   --share-gpu      let ranks share a GPU
   --json           results as JSON
   --trace          on an error, also print where in the library it came from
   -h, --help       what the command does and takes
   --version        print marea's version

exit codes: 0 good, 1 I/O, memory or Lua error, 2 command line, recipe or corpus, 3 a check failed,
            4 environment, 5 window refused, 6 ranks disagree or lost, 7 stopped on request]]

local function help_text()
  local lines = { overview, "commands:" }
  for _, row in ipairs(main.commands) do
    lines[#lines + 1] = ("   %-13s %s"):format(row[1], row[2])
  end
  lines[#lines + 1] = ""
  lines[#lines + 1] = options_overview
  return table.concat(lines, "\n")
end

-- Standard output belongs to rank 0.
local function print_once(text)
  if require("marea.launch").rank() == 0 then print(text) end
end

local leading_options = { "--device", "--help", "--json", "--outputs", "--run", "--share-gpu",
                          "--trace", "--version" }
local with_value = { ["--device"] = true, ["--outputs"] = true, ["--run"] = true }

-- Splits words into common options that stand before the command, the command, and the rest.
local function split(words)
  local before, i = {}, 1
  while words[i] and words[i]:sub(1, 1) == "-" do
    local name = words[i]:match("^[^=]*")
    if words[i] == "-h" or words[i] == "--help" then return { "--help" }, nil, {} end
    if words[i] == "--version" then return { "--version" }, nil, {} end
    local known = false
    for _, option in ipairs(leading_options) do known = known or option == name end
    if not known then
      fault.raise_at(2, "", "unknown option '%s'%s (see marea --help)", name,
                  require("marea.nearest").hint(name, leading_options))
    end
    before[#before + 1] = words[i]
    if with_value[words[i]] then
      i = i + 1
      if not words[i] then fault.raise_at(2, "", "option '%s' requires an argument", name) end
      before[#before + 1] = words[i]
    end
    i = i + 1
  end
  return before, words[i], table.move(words, i + 1, #words, 1, {})
end

--- The module of a command. Errors: code 2, with the nearest name.
---@param name string as on the command line
---@return marea.Command command
function main.module(name)
  local names = {}
  for _, row in ipairs(main.commands) do
    if row[1] == name then return require("marea.cli." .. name:gsub("%-", "_")) end
    names[#names + 1] = row[1]
  end
  fault.raise_at(2, "", "unknown command '%s'%s (see marea --help)", name,
              require("marea.nearest").hint(name, names))
end

-- "help" and "help train" as "--help" and "train --help".
local function without_help(words)
  if words[1] ~= "help" then return words end
  return { words[2] or "--help", words[2] and "--help" }
end

local function dispatch(words)
  local before, name, rest = split(without_help(words))
  if before[1] == "--version" then
    print_once("marea " .. require "marea.version")
    return 0
  elseif before[1] == "--help" then
    print_once(help_text())
    return 0
  elseif not name then
    fault.raise_at(2, "", "no command given (see marea --help)")
  end
  local command
  if name:match("%.lua$") then
    command = require "marea.cli.script"
    table.insert(rest, 1, name)
  else
    command = main.module(name)
  end
  table.move(rest, 1, #rest, #before + 1, before)
  local options, help = require("marea.cli.arguments").parse(command, before)
  if help then
    print_once(help)
    return 0
  end
  failure.trace = options.trace
  require("marea.device").give(options.device, options.share_gpu)
  return command.run(options) or 0
end

--- Runs marea with the words of its command line. An error is printed, never raised.
---@param words string[] without the program's name
---@return integer code exit code, 0 to 7
function main.run(words)
  require("marea.launch").words = words
  local good, result = xpcall(dispatch, failure.catch, words)
  if good then return failure.finish(result) end
  return failure.report(result)
end

return main
