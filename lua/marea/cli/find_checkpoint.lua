-- The checkpoint that a command's words name; newer ones that are damaged are said to be passed
-- over.

local saves = require "marea.saves"

--- For rank 0. Errors: as saves.resolve.
---@param outputs string root folder of runs
---@param word string a checkpoint's folder, a run, or "latest" of the run `own`
---@param own? string folder of a run
---@return string folder
local function find_checkpoint(outputs, word, own)
  local folder, problems = saves.resolve(outputs, word, own)
  for _, problem in ipairs(problems) do
    io.stderr:write("marea: passed over: ", problem, "\n")
  end
  return folder
end

return find_checkpoint
