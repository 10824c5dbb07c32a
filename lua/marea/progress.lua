-- What a run says while it goes on, rank 0 only: on standard error a table with one line per update
-- or per second, whichever is rarer; the first, the last and those that were skipped always. With
-- `json`, each update and evaluation as a line of JSON on standard output instead.

local config_text = require "marea.config_text"
local core = require "marea.core"
local fault = require "marea.fault"
local json = require "marea.json"
local table_of = require "marea.progress_table"
local terminal = require "marea.terminal"
local wording = require "marea.wording"

local progress = {}

--- What --progress may be: a table, coloured on a terminal (not beside lines of JSON); a table
--- without colours; none.
progress.modes = { "auto", "plain", "none" }

local rows_between_headers = 20
local dim, bold = "\27[2m", "\27[1m"

---@class marea.ProgressOptions
---@field mode? "auto"|"plain"|"none"
---@field json? boolean lines of JSON on standard output

---@class marea.Progress
---@field silent boolean nothing goes to standard error
---@field lines boolean lines of JSON go to standard output
---@field colours boolean
---@field rows integer since the last header
local Progress = {}
Progress.__index = Progress

--- Makes the progress of a run.
--- Errors, code 2: an unknown mode.
---@param world marea.World
---@param options? marea.ProgressOptions
---@return marea.Progress
function progress.new(world, options)
  options = options or {}
  local mode, on_root = options.mode or "auto", world:rank() == 0
  if mode ~= "auto" and mode ~= "plain" and mode ~= "none" then
    fault.raise_at(2, "", "--progress must be one of %s, not %s",
                   table.concat(progress.modes, ", "), tostring(mode))
  end
  local silent = mode == "none" or mode == "auto" and options.json
  return setmetatable({
    silent = not on_root or silent or false, lines = on_root and options.json or false,
    colours = mode == "auto" and terminal.has_colours(), world = world, shown = 0, rows = 0,
  }, Progress)
end

local function write(self, text)
  if not self.silent then io.stderr:write(text, "\n") end
end

-- A text in a colour, where there are colours.
local function painted(self, colour, text)
  return self.colours and colour .. text .. "\27[0m" or text
end

--- Says a line of text.
---@param format string as of string.format
---@param ... any
function Progress:say(format, ...) write(self, "marea: " .. format:format(...)) end

-- Sequences of one step of a plan.
local function sequences_of(window)
  local count = 0
  for _, microbatches in ipairs(window or {}) do
    for _, ids in ipairs(microbatches) do count = count + #ids end
  end
  return count
end

--- Says what is about to run, with the resolved config.
---@param session marea.Session built
---@param run_folder string
---@param first integer update
---@param last integer update
function Progress:begin(session, run_folder, first, last)
  self.first, self.last, self.began = first, last, core.seconds()
  self.width = terminal.width() or 80
  self.table = table_of.new(self.width, self.world:size(), last)
  if self.silent then return end
  local recipe, ranks = session.recipe, self.world:size()
  self:say("training %s on %d rank%s, updates %d to %d of %d", recipe.name, ranks,
           ranks == 1 and "" or "s", first, last, recipe.config.updates)
  write(self, ("  %s parameters, into %s"):format(wording.whole(session.model:count()), run_folder))
  write(self, ("  effective batch: %d sequences in update %d, of all ranks and microbatches")
    :format(sequences_of(session.plan[first]), first))
  for _, line in ipairs(config_text.lines(recipe, self.width)) do write(self, line) end
end

-- Seconds that are likely to be left. The first update of a start is slower than the others.
local function estimate(self, update, now)
  local done = update - self.first
  if done == 0 then return (now - self.began) * (self.last - update) end
  return (now - self.first_done) / done * (self.last - update)
end

local function show_row(self, result, now)
  local line, widened = self.table:row(result, {
    last = self.last, elapsed = now - self.began, left = estimate(self, result.update, now) })
  if self.rows % rows_between_headers == 0 or widened then
    self.rows = 0
    write(self, painted(self, dim, self.table:header()))
  end
  self.rows = self.rows + 1
  write(self, line)
end

local function print_line(record)
  io.stdout:write(json.encode(record), "\n")
  io.stdout:flush()
end

--- Shows an update when it is time to.
---@param result marea.Metrics
function Progress:update(result)
  local now = core.seconds()
  if self.lines then print_line(result) end
  if result.update == self.first then self.first_done = now end
  local always = result.update == self.first or result.update == self.last or result.skipped
  if self.silent or not always and now - self.shown < 1 then return end
  self.shown = now
  show_row(self, result, now)
end

--- Shows the result of an evaluation.
---@param result marea.Evaluation
function Progress:evaluation(result)
  if self.lines then print_line(result) end
  local text = ("  %s at %d/%d: loss/token %.4f%s, %d sequences"):format(
    result.split, result.update, self.last, result.loss, result.accuracy and
    (", accuracy %.2f %%"):format(100 * result.accuracy) or "", result.sequences)
  write(self, painted(self, bold, text))
end

return progress
