-- marea train: trains a recipe, to config.stop or to the end, from the start or from a checkpoint.

local arguments = require "marea.cli.arguments"
local core = require "marea.core"
local fault = require "marea.fault"
local json = require "marea.json"
local next_commands = require "marea.next_commands"
local progress_of = require "marea.progress"
local recipe_of = require "marea.recipe"
local training = require "marea.training"
local world_of = require "marea.world"

local controls = { "reseed-streams", "restart-updates" }

local function print_on_root(text)
  if world_of.get():rank() == 0 then print(text) end
end

local function summary(result)
  local lines = {}
  if not result.loss_per_token and not result.checkpoint then
    lines[1] = ("%s is already at update %d of %d; nothing was done"):format(
      result.run, result.update, result.updates)
  else
    lines[1] = ("%s at update %d of %d, %d tokens seen%s"):format(
      result.run, result.update, result.updates, result.tokens_seen,
      result.loss_per_token and (", loss %.4f a token"):format(result.loss_per_token) or "")
    lines[2] = ("checkpoint %s"):format(result.checkpoint)
    lines[#lines + 1] = result.reason
    if result.skipped then
      lines[#lines + 1] = ("%d of %d updates were skipped"):format(result.skipped, result.update)
    end
  end
  return table.concat(lines, "\n")
end

--- Adds the options of what is said while a run goes on.
---@param parser table of argparse
local function define_progress(parser)
  parser:option("--progress", "On standard error: auto, plain (no colours) or none.")
    :argname("HOW"):choices(progress_of.modes)
  parser:flag("--quiet", "The same as --progress none.")
end

--- Trains a loaded recipe as the options of the command line say.
---@param loaded marea.Recipe a loaded recipe
---@param options table
---@return integer code 0, or 7 when it was asked to stop
local function run_recipe(loaded, options)
  local wanted = {
    outputs = options.outputs, name = options.run, continuous = options.continuous,
    until_update = options["until"], resume = options.resume, init = options.init,
    accept = options.accept, controls = options.control,
    stop_asked = function() return core.process.stop_requested() ~= nil end }
  if options.dry_run then
    local result = require("marea.dry_run").of(loaded, world_of.get(), wanted)
    print_on_root(options.json and json.encode(result) or require("marea.dry_run_text").of(result))
    return 0
  end
  local world = world_of.get()
  local progress = progress_of.new(world, { mode = options.quiet and "none" or options.progress,
                                            json = options.json })
  wanted.progress = progress
  core.process.watch_stop()
  local result = training.run(loaded, wanted)
  print_on_root(options.json and json.encode(result) or summary(result))
  if not progress.silent then
    print(next_commands.text(next_commands.of {
      recipe = loaded, ranks = world:size(), outputs = options.outputs,
      name = options.run or loaded.name, init = options.init, result = result }))
  end
  return result.asked and 7 or 0
end

---@type marea.Command
return {
  name = "train",
  summary = "Train a recipe.",
  example = "marea train recipes/minimum.lua lr=0.05 objective=per_sequence",
  define = function(parser)
    arguments.recipe(parser)
    parser:option("--until", "Stop after update N; config.stop does not count then.")
      :argname("N"):convert(arguments.update "--until")
    parser:flag("--continuous", "Do not stop at config.stop.")
    parser:option("--resume", "Go on from 'latest' or from a checkpoint's folder.")
      :argname("FOLDER")
    parser:option("--init", "Begin with the weights of a safetensors file, of any tool.")
      :argname("FILE")
    parser:option("--accept", "Go on although this field of the lock differs (repeatable).")
      :argname("FIELD"):count("*")
    define_progress(parser)
    parser:flag("--dry-run", "Show plan, shapes and memory; train nothing, write nothing.")
    parser:option("--control", "Get a part of a resume wrong, for a demonstration (repeatable).")
      :choices(controls):argname("NAME"):count("*"):hidden(true)
  end,
  run = function(options)
    local world = world_of.get()
    if options["until"] and options.continuous then
      fault.raise_at(2, "", "train: give either --until or --continuous")
    end
    return run_recipe(recipe_of.require(options.recipe, options.settings, world:size()), options)
  end,
  run_recipe = run_recipe,
  define_progress = define_progress,
}
