-- marea stop: asks a run that is under way to save and stop.

local launch = require "marea.launch"
local json = require "marea.json"
local stop_request = require "marea.stop_request"

local function folder_of(name, outputs)
  if name:find("/", 1, true) then return (name:gsub("(.)/+$", "%1")) end
  return outputs .. "/" .. name
end

local function run_command(options)
  if launch.rank() > 0 then return 0 end
  local folder = folder_of(options.name, options.outputs)
  local holder = stop_request.ask(folder)
  print(options.json and json.encode { run = folder, asked = holder } or
        ("asked %s to save %s after its update and to stop"):format(holder, folder))
  return 0
end

---@type marea.Command
return {
  name = "stop",
  summary = "Ask a run that is under way to save after its update and stop; it exits with 7.",
  example = "marea stop minimum",
  define = function(parser)
    parser:argument("name", "The run's name, or its folder."):argname("RUN")
  end,
  run = run_command,
}
