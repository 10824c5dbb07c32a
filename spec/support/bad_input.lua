-- Bad input for whole programs: marea run as a child in a folder of its own, and what must hold
-- whatever was wrong: one message, its exit code, nothing half-written, no process left.

local assert = require "luassert"
local core = require "marea.core"
local json = require "marea.json"
local launch = require "marea.launch"
local scratch = dofile "spec/support/scratch.lua"

local bad = {}

local time_limit, at_once = 60, 4 -- seconds of a run; runs

bad.recipe = dofile "spec/support/spoiled_recipe.lua"

-- --- places --------------------------------------------------------------------------------------

local function lines_of(command)
  local stream <close> = assert(io.popen(command))
  local lines = {}
  for line in stream:lines() do lines[#lines + 1] = line end
  return lines
end

---@class bad.Place
---@field path string its folder
---@field recipe string tide.lua in it
---@field outputs string
---@field patience integer seconds that processes have to end
local Place = {}
Place.__index = Place
Place.__close = function(self)
  if self.process then getmetatable(self.process).__close(self.process) end
  getmetatable(self.folder).__close()
end

--- A folder with tide.lua and further files, to run marea in; closing it removes it.
---@param fields? table as of bad.recipe; `text`: the whole text of tide.lua
---@param files? table<string, string> text by name
---@return bad.Place place
function bad.place(fields, files)
  local folder = scratch.folder()
  local self = setmetatable({ folder = folder, path = folder.path, patience = 5 }, Place)
  self.recipe, self.outputs = self.path .. "/tide.lua", self.path .. "/outputs"
  self:rewrite(fields)
  for name, content in pairs(files or {}) do scratch.write(self.path .. "/" .. name, content) end
  return self
end

--- Puts another recipe in the place of tide.lua.
---@param fields? table as of bad.place
function Place:rewrite(fields)
  local text
  text, self.lines = bad.recipe(fields)
  scratch.write(self.recipe, (fields and fields.text or text):gsub("PLACE", self.path))
end

--- Everything in the place, one path a line.
---@return string
function Place:listing()
  return table.concat(lines_of(("cd '%s' && find . | LC_ALL=C sort"):format(self.path)), "\n")
end

-- A text of a program without the place's path.
function Place:shorten(text)
  return (text:gsub(self.path:gsub("%p", "%%%0") .. "/", ""))
end

--- Fails when a process is left that knows this place.
function Place:expect_no_process()
  local pattern = self.path:gsub("^(.*/)(.)", "%1[%2]") .. "/" -- not the shell that asks
  local deadline = os.time() + self.patience
  local function left() return table.concat(lines_of(("pgrep -af '%s'"):format(pattern)), "\n") end
  while left() ~= "" and os.time() <= deadline do os.execute "sleep 0.05" end
  assert.equal("", left())
end

local train = { "train", "RECIPE", "--outputs", "OUTPUTS" }

--- The words that train the place's recipe, and more.
---@param ... string
---@return string[]
function bad.train(...)
  return table.move({ ... }, 1, select("#", ...), #train + 1, table.move(train, 1, #train, 1, {}))
end

--- Words with RECIPE, OUTPUTS and PLACE for the place's paths.
---@param words string[]
---@return string[]
function Place:words(words)
  local argv = {}
  for i, word in ipairs(words) do
    argv[i] = word:gsub("RECIPE", self.recipe):gsub("OUTPUTS", self.outputs)
      :gsub("PLACE", self.path)
  end
  return argv
end

--- Starts marea in the place.
---@param ranks integer? nil: one process without mpirun
---@param words? string[] after "marea", as of Place:words; default: train the recipe
function Place:start(ranks, words)
  self.before = self:listing()
  self.out, self.err = os.tmpname(), os.tmpname()
  self.process = launch.start({ ranks = ranks, threads = 1, input = "/dev/null",
                                output = self.out, errors = self.err }, self:words(words or train))
end

-- Standard error without what a training says of its progress: its table is the only text there
-- whose lines begin with a space.
local function without_progress(errors)
  return (("\n" .. errors):gsub("\n [^\n]*", ""):gsub("\nmarea: update [^\n]*", "")
          :gsub("\nmarea: training [^\n]*", ""):gsub("\nmarea: an older run [^\n]*", ""):sub(2))
end

--- Waits for what Place:start started. No process must be left, unless others are at work.
---@param others boolean?
---@return {code: integer, output: string, errors: string} result errors without progress
function Place:finish(others)
  local process <close> = self.process
  local ending, number = process:wait(time_limit)
  local output, errors = scratch.read(self.out), scratch.read(self.err)
  os.remove(self.out)
  os.remove(self.err)
  assert.not_equal("limit", ending)
  if not others then self:expect_no_process() end
  return { code = launch.exit_code(ending, number), output = self:shorten(output),
           errors = self:shorten(without_progress(errors)) }
end

--- Runs marea in the place to its end.
---@param ranks integer? as of Place:start
---@param words? string[]
---@return {code: integer, output: string, errors: string} result as of Place:finish
function Place:run(ranks, words)
  self:start(ranks, words)
  return self:finish()
end

-- --- what must hold ------------------------------------------------------------------------------

-- "tide.lua:7" for "@plan" in a message, "tide.lua:8" for "@plan+1".
function Place:resolve(message)
  return (message:gsub("@(%a+)%+?(%d*)", function(name, more)
    local line = assert(self.lines[name], name)
    return ("tide.lua:%d"):format(line + (math.tointeger(tonumber(more)) or 0))
  end))
end

--- Asserts that a run that failed left whole files only: JSON that reads, no temporary names, a
--- record that says that it failed (or, where there was no room for that, is running).
---@param run_folder string
function bad.expect_whole_files(run_folder)
  for _, path in ipairs(lines_of(("find '%s' -type f"):format(run_folder))) do
    assert.is_nil(path:find("partial", 1, true) or path:find("%.tmp"), path)
    if path:find("%.json$") then
      assert.is_table(json.decode(scratch.read(path)), path)
    elseif path:find("%.jsonl$") then
      local text = scratch.read(path)
      assert.is_truthy(text == "" or text:sub(-1) == "\n", path)
      for line in text:gmatch("[^\n]+") do assert.is_table(json.decode(line), path) end
    elseif path:find("%.safetensors$") then
      core.safetensors.open(path):close()
    end
  end
end

---@class bad.Case
---@field [1] string what is wrong, for people
---@field ranks integer? nil: one process without mpirun
---@field words string[]? as of Place:start
---@field code integer
---@field message string|string[] with @FIELD for a line of the recipe; a list: one of each rank,
---  which say different things, in any order; where one ended it all at once, not all are heard
---@field rank integer? the rank that says it; nil: all fail alike, or there is one
---@field pattern boolean? the message is a Lua pattern, for its whole length
---@field failed boolean? a run was begun, and its folder says how it failed; otherwise nothing at
---  all was written

local function expect_one(place, case, errors)
  local expected = place:resolve(case.message)
  local who = case.rank and ("rank %d: "):format(case.rank) or ""
  if case.pattern then
    assert.is_truthy(errors:find("^marea: " .. who .. expected .. "\n$"),
                     ("%s: %s"):format(case[1], errors))
  else
    assert.equal(("marea: %s%s\n"):format(who, expected), errors, case[1])
  end
end

local function expect_of_ranks(place, case, errors)
  local allowed, count = {}, 0
  for r, message in ipairs(case.message) do
    allowed[("marea: rank %d: %s"):format(r - 1, place:resolve(message))] = true
  end
  for line in errors:gmatch("[^\n]+") do
    assert.is_true(allowed[line], ("%s: %s"):format(case[1], errors))
    allowed[line], count = nil, count + 1
  end
  assert.is_true(count > 0, case[1])
end

-- Asserts of a run that was started that it ends as it should.
local function expect_end(place, case)
  local result = place:finish()
  if type(case.message) == "table" then
    expect_of_ranks(place, case, result.errors)
  else
    expect_one(place, case, result.errors)
  end
  assert.equal(case.code, result.code, case[1])
  assert.equal("", result.output, case[1])
  if not case.failed then
    assert.equal(place.before, place:listing(), case[1])
    return
  end
  local record = json.decode(scratch.read(place.outputs .. "/tide/run.json"))
  assert.equal("failed", record.outcome, case[1])
  assert.is_truthy(#record.message > 0, case[1])
  bad.expect_whole_files(place.outputs .. "/tide")
end

--- Asserts that marea refuses something as it should.
---@param place bad.Place
---@param case bad.Case
function bad.expect(place, case)
  place:start(case.ranks, case.words)
  expect_end(place, case)
end

-- Each case for each of its worlds, complete.
local function spread(cases, common)
  local list = {}
  for _, case in ipairs(cases) do
    local whole = setmetatable(case, { __index = common })
    local ranks = whole.ranks
    for _, world in ipairs(type(ranks) == "table" and ranks or { ranks or false }) do
      local one = { place = bad.place(whole.fields, whole.files) }
      for _, name in ipairs { 1, "words", "code", "message", "rank", "pattern", "failed" } do
        one[name] = whole[name]
      end
      one.ranks = world or nil
      list[#list + 1] = one
    end
  end
  return setmetatable(list, { __close = function()
    for _, one in ipairs(list) do getmetatable(one.place).__close(one.place) end
  end })
end

--- The same for a list of cases, each in a place of its own and some at a time: when ranks fail,
--- mpirun sleeps for a second.
---@param cases table[] bad.Case with `fields` and `files`, as of bad.place; ranks may be a list, in
---  which false stands for none
---@param common? table fields of all cases
function bad.expect_all(cases, common)
  local list <close> = spread(cases, common)
  for i = 1, #list + at_once do
    if list[i - at_once] then expect_end(list[i - at_once].place, list[i - at_once]) end
    if list[i] then list[i].place:start(list[i].ranks, list[i].words) end
  end
end

return bad
