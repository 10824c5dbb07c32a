-- A folder for one test, and what is written into it.

local scratch = {}

local function run(format, ...)
  assert(os.execute(format:format(...)))
end

--- Makes an empty folder under /tmp; `folder.path` names it, and closing it (<close>) removes it.
---@return {path: string} folder
function scratch.folder()
  local stream = assert(io.popen("mktemp -d"))
  local path = stream:read("l")
  stream:close()
  return setmetatable({ path = path }, { __close = function() run("rm -rf '%s'", path) end })
end

--- Writes a file, with its parent folders.
---@param path string
---@param text string
---@param executable? boolean
function scratch.write(path, text, executable)
  run("mkdir -p '%s'", path:match("^(.*)/[^/]*$"))
  local stream <close> = assert(io.open(path, "wb"))
  stream:write(text)
  stream:close()
  if executable then run("chmod +x '%s'", path) end
end

--- The whole text of a file; nil when there is none.
---@param path string
---@return string? text
function scratch.read(path)
  local stream <close> = io.open(path, "rb")
  return stream and stream:read("a")
end

--- Runs a shell command with standard output and error apart.
---@param command string
---@return integer code 128 + the signal when one ended it
---@return string output
---@return string errors
function scratch.shell(command)
  local folder <close> = scratch.folder()
  local out, err = folder.path .. "/out", folder.path .. "/err"
  local _, kind, number = os.execute(("( %s\n) </dev/null >%s 2>%s"):format(command, out, err))
  return kind == "exit" and number or 128 + number, scratch.read(out), scratch.read(err)
end

return scratch
