-- Runs spec files through busted inside this process's Lua state, and notes each step as a line of
-- JSON in a file, so that whoever started this process sees how far it came when it dies.
--
-- Lines: {event = "start", file, name};
-- {event = "end", file, name, status, message, trace, seconds};
-- {event = "error", file, name, message, trace} for errors outside a test; {event = "done"}.
-- Specs run in the order in which they are given and written: under mpirun all ranks must agree.

local json = require "marea.json"

local worker = {}

-- The names of a test's describe blocks and its own, and the file it stands in.
local function place_of(busted, element)
  local names, file = {}, nil
  while element do
    if element.descriptor == "file" then
      file = element.name
    elseif not file and element.descriptor ~= "suite" and element.name then
      table.insert(names, 1, element.name)
    end
    element = busted.context.parent(element)
  end
  return file or "", table.concat(names, " ")
end

-- Equal names within a file get their number behind them: each test counts.
local function distinguisher()
  local seen, chosen = {}, {}
  return function(element, file, name)
    if not chosen[element] then
      local key = file .. "\0" .. name
      seen[key] = (seen[key] or 0) + 1
      chosen[element] = seen[key] == 1 and name or ("%s (%d)"):format(name, seen[key])
    end
    return chosen[element]
  end
end

local function only_matching(busted, filter)
  local function wanted(name)
    local _, context = place_of(busted, busted.context.get())
    local full = context == "" and name or context .. " " .. name
    return nil, full:find(filter, 1, true) ~= nil
  end
  busted.subscribe({ "register", "it" }, wanted, { priority = 1 })
  busted.subscribe({ "register", "pending" }, wanted, { priority = 1 })
end

local function trace_text(trace)
  return type(trace) == "table" and trace.traceback or nil
end

local function subscribe(busted, note)
  local unique, problems = distinguisher(), {}
  local function test_place(element)
    local file, name = place_of(busted, element)
    return file, unique(element, file, name)
  end
  local function problem(element, _, message, trace)
    if element.descriptor == "it" then
      problems[element] = problems[element] or
        { message = tostring(message), trace = trace_text(trace) }
    else
      local file, name = place_of(busted, element)
      if file == "" and element.name then file, name = element.name, "" end
      name = ("%s (%s)"):format(name, element.descriptor or "?"):match("%S.*")
      note { event = "error", file = file, name = name, message = tostring(message),
             trace = trace_text(trace) }
    end
    return nil, true
  end
  busted.subscribe({ "failure" }, problem)
  busted.subscribe({ "error" }, problem)
  busted.subscribe({ "pending" }, function(element, _, message)
    problems[element] = { message = message and tostring(message) }
    return nil, true
  end)
  busted.subscribe({ "test", "start" }, function(element)
    local file, name = test_place(element)
    note { event = "start", file = file, name = name }
    return nil, true
  end)
  busted.subscribe({ "test", "end" }, function(element, _, status)
    local file, name = test_place(element)
    local known = problems[element] or {}
    note { event = "end", file = file, name = name, status = status, message = known.message,
           trace = known.trace, seconds = element.duration or 0 }
    return nil, true
  end)
end

--- Runs spec files and writes what happened to `results`. Returns once all have run, whatever
--- their outcome.
---@param files string[]
---@param results string path of the file of JSON lines
---@param filter? string run only tests whose full name has this text
function worker.run(files, results, filter)
  local stream = assert(io.open(results, "w"))
  stream:setvbuf("line")
  local function note(entry) stream:write(json.encode(entry), "\n") end
  require "marea.core" -- stays loaded: busted forgets what a spec file loads first
  require "busted.languages.en"
  local busted = require "busted.core"()
  require "busted"(busted)
  subscribe(busted, note)
  if filter then only_matching(busted, filter) end
  local load_files = require "busted.modules.test_file_loader"(busted, { "lua" })
  load_files(files, {}, { excludes = {}, verbose = false, recursive = false })
  require "busted.execute"(busted)(1, { seed = 1, shuffle = false, sort = false })
  note { event = "done" }
  stream:close()
end

return worker
