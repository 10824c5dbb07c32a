-- Training as a whole: from a recipe to a run's folder with its logs and checkpoints.

local config_of = require "marea.config"
local core = require "marea.core"
local evaluate = require "marea.evaluate"
local fault = require "marea.fault"
local history_of = require "marea.history"
local journal_of = require "marea.journal"
local json = require "marea.json"
local prepare = require "marea.prepare"
local progress_of = require "marea.progress"
local resume_of = require "marea.resume"
local run_of = require "marea.run"
local run_record = require "marea.run_record"
local saves = require "marea.saves"
local stop_request = require "marea.stop_request"
local Session = require "marea.session"
local together = require "marea.together"
local trainer_of = require "marea.trainer"
local weights = require "marea.weights"
local world_of = require "marea.world"

local training = {}

---@class marea.TrainOptions
---@field outputs? string root folder of runs (default "outputs")
---@field name? string of the run (default: the recipe's)
---@field continuous? boolean config.stop does not count
---@field until_update? integer the last update; overrides config.stop
---@field resume? string "latest" or a folder
---@field init? string a file whose weights the run begins with
---@field accept? string[] fields of the lock that may differ
---@field controls? string[] "reseed-streams", "restart-updates": what a resume gets wrong
---@field stop_asked? fun(): boolean whether this rank was asked to stop
---@field progress? marea.Progress what says how far it is (default: a table on standard error)

---@class marea.Trained
---@field run string the run's folder
---@field update integer that was reached
---@field updates integer of the config
---@field outcome "complete"|"stopped"
---@field asked boolean ended by a request to stop
---@field reason? string why it ended where it did, unless there is nothing to say
---@field skipped? integer updates, of the whole run, in which no rank stepped; on rank 0
---@field checkpoint? string the last one saved
---@field moved_to? string the folder that an older run was moved to
---@field tokens_seen? integer supervised positions of all updates; none where nothing was done
---@field loss_per_token? number of the last update

--- The update that a start goes to from update `at`.
--- Errors, code 2: --until behind the last update.
---@param config marea.Config
---@param options marea.TrainOptions
---@param at integer
---@return integer update
function training.target(config, options, at)
  local wanted = options.until_update
  if wanted and wanted > config.updates then
    fault.raise_at(2, "", "--until %d is behind the last update, %d (updates=%d plans for more)",
                   wanted, config.updates, wanted)
  end
  if wanted then return wanted end
  if config.stop and not options.continuous and at < config.stop then
    return math.min(config.stop, config.updates)
  end
  return config.updates
end

--- Refuses, with code 2, options that do not go together.
---@param options marea.TrainOptions
function training.check_options(options)
  if options.resume and options.init then
    fault.raise_at(2, "", "--init begins a run and --resume goes on with one: give either")
  end
  if options.resume then return end
  for option, list in pairs { control = options.controls, accept = options.accept } do
    if #list > 0 then fault.raise_at(2, "", "--%s needs --resume", option) end
  end
end

--- A session of a recipe with its data prepared and its model built; also a dry run's.
--- Errors: code 2 for another number of ranks than planned; what prepare.make and callbacks raise.
---@param recipe marea.Recipe
---@param world marea.World
---@return marea.Session session
---@return marea.Prepared prepared
function training.session(recipe, world)
  recipe:require_ranks(world:size())
  local prepared = prepare.make(recipe, world)
  local session = Session.open(recipe, { world = world, corpus = prepared.corpus,
                                         plan = prepared.plan })
  return session:build(), prepared
end

--- Lets a session begin with the weights of a file, which its lock names from then on. All ranks
--- call it. Errors: as weights.load.
---@param session marea.Session built
---@param prepared marea.Prepared
---@param path string
function training.begin_with(session, prepared, path)
  local hash = weights.load(session.model, session.world, path)
  session.init = { file = path, sha256 = hash }
  prepared.lock.init = hash
end

-- Restores what is to be resumed. Returns what is said of it in run.json, and the lock.
local function restore(trainer, source, prepared, options)
  local lock = resume_of.restore(trainer, source.folder, prepared.lock, options.accept,
                                 options.controls)
  return { folder = source.folder, own = source.own, update = trainer.update,
           accepted = options.accept or {}, controls = options.controls or {} }, lock
end

--- Puts a session where a start with --resume begins, and nothing else. All ranks call it.
--- Errors: as training.run.
---@param session marea.Session built
---@param prepared marea.Prepared
---@param options marea.TrainOptions with resume
---@return integer update
---@return boolean own whether it is a checkpoint of the run itself
function training.look_at_resume(session, prepared, options)
  local name = options.name or session.recipe.name
  local source = resume_of.find(session.world, options.outputs or "outputs", name, options.resume)
  local trainer = trainer_of.new(session, { history = history_of.new() })
  local from = restore(trainer, source, prepared, options)
  return from.update, from.own
end

local function rewind(run, update, say)
  local moved = together.on_root(run.world, function()
    return table.concat(saves.rewind(run.folder, update), ", ")
  end)
  if moved ~= "" then say("checkpoints behind update %d were renamed: %s", update, moved) end
end

local function is_due(every, update) return every ~= nil and update % every == 0 end

local function validate(trainer, progress)
  local result = evaluate.split(trainer.session, "validation")
  collectgarbage() -- what it computed is not to lie beside the next update
  trainer.phases:done "evaluate"
  result.update = trainer.update
  trainer.journal:write_metrics(result)
  progress:evaluation(result)
  return result.loss
end

-- Why the run ends here, before its last update: a request that one rank got and all heard of, or
-- the loss of the whole validation split, which all ranks have in every bit.
local function reason_to_end(trainer, asked, loss)
  local limit = trainer.config.stop_below
  if asked then return "stopped on request" end
  if loss and limit and loss < limit then
    return ("the validation loss %s is below %s, config.stop_below"):format(json.number(loss),
                                                                          json.number(limit))
  end
end

-- After one update, what no callback has asked for is asked for by none.
local function warn_of_typos(config, progress)
  for _, pair in ipairs(config_of.likely_typos(config)) do
    progress:say("no callback reads config.%s; did you mean config.%s?", pair[1], pair[2])
  end
end

-- Updates until `target`, or until there is a reason to end before. Returns "complete" or
-- "stopped", whether it was asked, and the reason.
local function go_on(trainer, target, save, progress, stop_asked)
  local config, first = trainer.config, trainer.update + 1
  while trainer.update < target do
    trainer.stop_asked = stop_asked()
    local result, asked = trainer:advance()
    trainer.last_result = result
    if trainer.update == first then warn_of_typos(config, progress) end
    progress:update(result)
    local loss = is_due(config.evaluate_every, trainer.update) and validate(trainer, progress)
    local last = trainer.update == target
    local reason = not last and reason_to_end(trainer, asked, loss) or nil
    if last or reason or is_due(config.save_every, trainer.update) then save() end
    trainer:end_update()
    if reason then return "stopped", asked, reason end
  end
  return target == config.updates and "complete" or "stopped", false
end

-- Whether this rank was asked to stop: by a signal, or, for rank 0, by `marea stop`.
local function asking(run, options)
  local by_signal = options.stop_asked or function() return false end
  if not run:writes() then return by_signal end
  local by_file = stop_request.watch(run.folder)
  return function() return by_signal() or by_file() end
end

-- What is returned where the resumed update is the last one already: nothing is written.
local function nothing_to_do(trainer, folder)
  local config = trainer.config
  return { run = folder, update = trainer.update, updates = config.updates, asked = false,
           outcome = trainer.update >= config.updates and "complete" or "stopped" }
end

local function is_done(trainer, options)
  return trainer.update >= training.target(trainer.config, options, trainer.update)
end

local function train_in(run, trainer, prepared, options, from)
  local stop_asked = asking(run, options)
  local record <close> = run_record.begin(run, trainer.session, from)
  local target = training.target(trainer.config, options, trainer.update)
  local progress = options.progress or progress_of.new(trainer.world)
  if run.moved_to then
    progress:say("an older run%s was moved to %s", together.on_root(trainer.world, function()
      return run_record.recipe_of(run.moved_to)
    end), run.moved_to)
  end
  if from then
    progress:say("resuming from %s at update %d", from.folder, from.update)
    for _, problem in ipairs(from.problems) do progress:say("passed over: %s", problem) end
    if from.unseen then progress:say("%s", from.unseen) end
    rewind(run, trainer.update, function(...) progress:say(...) end)
  end
  progress:begin(trainer.session, run.folder, trainer.update + 1, target)
  prepare.write(run, prepared)
  local journal <close> = journal_of.open(run, from and from.own and trainer.update or 0)
  trainer.journal = journal
  collectgarbage() -- the same for what was prepared and restored
  local checkpoint
  local function save()
    record:reach(trainer.update)
    checkpoint = saves.save(run, trainer, { id = record.id, lock = prepared.lock })
    trainer.phases:done "save"
    record:note_save(checkpoint)
  end
  local outcome, asked, reason = go_on(trainer, target, save, progress, stop_asked)
  record:reach(trainer.update)
  local skipped = trainer.history:count_skipped()
  skipped = skipped > 0 and skipped or nil
  record:note_skipped(skipped)
  record:measure()
  record:finish(outcome, reason)
  return { run = run.folder, update = trainer.update, updates = trainer.config.updates,
           outcome = outcome, asked = asked, reason = reason, checkpoint = checkpoint,
           skipped = skipped, moved_to = run.moved_to,
           tokens_seen = trainer.tokens_seen,
           loss_per_token = trainer.last_result and trainer.last_result.loss_per_token }
end

--- Trains a recipe: to config.stop, else to the end; a resume at or behind `stop` goes to the end.
--- All ranks call it.
--- Errors: code 1 for the disk, code 2 for options, plans and checkpoints that do not fit, code 3
--- for damage and locks that differ, code 4 for a folder in use, code 5 for a refused window, code
--- 6 for ranks that disagree; what callbacks raise.
---@param recipe marea.Recipe
---@param options marea.TrainOptions
---@return marea.Trained result without a checkpoint and a loss where there was nothing to do
function training.run(recipe, options)
  training.check_options(options)
  core.bind_threads()
  local world, name = world_of.get(), options.name or recipe.name
  local outputs = options.outputs or "outputs"
  local source = options.resume and resume_of.find(world, outputs, name, options.resume)
  local session, prepared = training.session(recipe, world)
  training.target(recipe.config, options, 0)
  if options.init then training.begin_with(session, prepared, options.init) end
  local trainer = trainer_of.new(session, { history = history_of.new() })
  local own = source and source.own
  local run, from
  if source and not own then
    from, prepared.lock = restore(trainer, source, prepared, options)
    if is_done(trainer, options) then return nothing_to_do(trainer, source.folder) end
  end
  run = run_of.open { outputs = outputs, name = name, way = own and "existing" or "fresh",
                      world = world }
  local _ <close> = run
  if own then
    source = resume_of.find(world, outputs, name, options.resume) -- now that nobody else saves
    from, prepared.lock = restore(trainer, source, prepared, options)
    if is_done(trainer, options) then return nothing_to_do(trainer, run.folder) end
  end
  if from then from.problems, from.unseen = source.problems, source.unseen end
  return train_in(run, trainer, prepared, options, from)
end

return training
