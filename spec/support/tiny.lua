-- Starts marea on spec/recipes/tiny.lua, with runs in a folder of the test's own.

local json = require "marea.json"
local launch = require "marea.launch"
local scratch = dofile "spec/support/scratch.lua"

local tiny = { recipe = "spec/recipes/tiny.lua" }

--- Runs a command on some ranks; nil: one process without mpirun.
---@param outputs string
---@param ranks integer?
---@param words string[]
---@return integer code
---@return string output
---@return string errors
function tiny.run(outputs, ranks, words)
  local argv = table.move(words, 1, #words, 1, {})
  table.move({ "--outputs", outputs }, 1, 2, #argv + 1, argv)
  local code, output, errors, ending = launch.run({ ranks = ranks, threads = 1, time_limit = 60 },
                                                  argv)
  assert(ending == "exit", errors)
  return code, output, errors
end

--- Trains the recipe as run `name`; further words are settings and options.
---@param outputs string
---@param ranks integer?
---@param name string
---@param ... string
---@return integer code
---@return string output
---@return string errors
function tiny.train(outputs, ranks, name, ...)
  return tiny.run(outputs, ranks, { "train", tiny.recipe, "ranks=" .. (ranks or 1), "--run", name,
                                    ... })
end

--- The same for a start that must go well.
function tiny.must_train(outputs, ranks, name, ...)
  local code, output, errors = tiny.train(outputs, ranks, name, ...)
  assert(code == 0, ("exit code %d\n%s"):format(code, errors))
  return output, errors
end

--- The lines of a log, without what depends on time.
---@param path string
---@return string[] lines
function tiny.timeless_lines(path)
  local lines = {}
  for line in scratch.read(path):gmatch("[^\n]+") do
    local record = json.decode(line)
    record.ms, record.tokens_per_second, record.phases, record.waiting = nil, nil, nil, nil
    lines[#lines + 1] = json.encode(record)
  end
  return lines
end

--- The parts of compare's report by name.
---@param outputs string
---@param a string
---@param b string
---@return integer code
---@return table<string, table> parts
function tiny.compare(outputs, a, b)
  local code, output, errors = tiny.run(outputs, nil, { "compare", a, b, "--json" })
  assert(code == 0 or code == 3, errors)
  local parts = {}
  for _, part in ipairs(json.decode(output).parts) do parts[part.part] = part end
  return code, parts
end

return tiny
