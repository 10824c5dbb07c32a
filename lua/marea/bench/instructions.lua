-- How many instructions an update takes, by who executes them: counted by valgrind's callgrind,
-- so neighbours change nothing. A training of 2N updates less one of N, on one thread: what
-- starting and saving take falls away.

local core = require "marea.core"
local fault = require "marea.fault"
local launch = require "marea.launch"

local instructions = {}

local updates = 2 -- N
local time_limit = 600

--- Who executes, in the order of the table.
instructions.parts = { "OpenBLAS", "kernels", "engine", "Lua", "C library", "others" }

local function part_of(object, file)
  if object:find "libopenblas" then return "OpenBLAS" end
  if object:find "liblua" or file:find "/engine/lua/" then return "Lua" end
  if file:find "/kernels/cpu/" then return "kernels" end
  if file:find "/engine/" then return "engine" end
  if object:find "/libc[%.%-]" or object:find "/libm[%.%-]" or object:find "/ld[%.%-]" then
    return "C library"
  end
  return "others"
end

--- Sums up what callgrind wrote: the instructions that functions execute themselves, by part.
--- Names are written once, "(3) name", and "(3)" stands for them afterwards.
---@param lines fun(): string? of the file
---@return table<string, integer> counts by the names of instructions.parts
function instructions.read(lines)
  local names, counts = { ob = {}, fl = {} }, {}
  local object, file, called = "", "", false
  for _, part in ipairs(instructions.parts) do counts[part] = 0 end
  local function name_of(kind, text)
    local id, name = text:match "^(%(%d+%)) ?(.*)$"
    if not id then return text end
    if name ~= "" then names[kind][id] = name end
    return names[kind][id] or ""
  end
  for line in lines do
    local key, value = line:match "^(%l+)=(.*)$"
    if key == "ob" then
      object = name_of("ob", value)
    elseif key == "fl" then
      file = name_of("fl", value)
    elseif key == "cob" then
      name_of("ob", value)
    elseif key == "cfi" or key == "cfl" or key == "fi" or key == "fe" then
      name_of("fl", value)
    elseif key == "calls" then
      called = true -- the next line counts what was called
    elseif line:find "^[%d%+%-%*]" then
      local count = math.tointeger(tonumber(line:match "^%S+ (%d+)$"))
      local part = part_of(object, file)
      if count and not called then counts[part] = counts[part] + count end
      called = false
    end
  end
  return counts
end

-- Counts of a training of `count` updates.
local function count_training(recipe_words, count)
  local folder = os.tmpname()
  os.remove(folder)
  local out, errors = folder .. ".callgrind", folder .. ".errors"
  local words = { "valgrind", "--tool=callgrind", "--callgrind-out-file=" .. out, launch.program(),
                  "train" }
  table.move(recipe_words, 1, #recipe_words, #words + 1, words)
  for _, word in ipairs { "ranks=1", "--until", tostring(count), "--quiet", "--outputs", folder } do
    words[#words + 1] = word
  end
  local process <close> = core.process.start {
    arguments = words, input = "/dev/null", output = "/dev/null", errors = errors,
    set = { OMP_NUM_THREADS = "1", OPENBLAS_NUM_THREADS = "1" } }
  local kind, number = process:wait(time_limit)
  local said = core.file.read(errors)
  os.remove(errors)
  os.execute("rm -rf " .. launch.quote(folder))
  if kind ~= "exit" or number ~= 0 then
    fault.raise_at(1, "", "--instructions: the training under callgrind ended with %s %d: %s", kind,
                   number, said:match "(marea: [^\n]+)" or said:match "([^\n]*)%s*$")
  end
  local file <close> = assert(io.open(out))
  local counts = instructions.read(file:lines())
  os.remove(out)
  return counts
end

---@class marea.Instructions
---@field updates integer of the shorter training
---@field total number an update
---@field parts table<string, number> an update, by the names of instructions.parts; Lua is liblua
---  and the binding

--- Whether valgrind is there.
---@return boolean
function instructions.available()
  return os.execute "valgrind --version >/dev/null 2>&1" == true
end

--- Counts the instructions of an update. Errors: code 1 when the training fails.
---@param recipe_words string[] the recipe's path and settings
---@return marea.Instructions? counts nil without valgrind
function instructions.measure(recipe_words)
  if not instructions.available() then return nil end
  local short, long = count_training(recipe_words, updates), count_training(recipe_words,
                                                                            2 * updates)
  local parts, total = {}, 0
  for _, part in ipairs(instructions.parts) do
    parts[part] = (long[part] - short[part]) / updates
    total = total + parts[part]
  end
  return { updates = updates, total = total, parts = parts }
end

return instructions
