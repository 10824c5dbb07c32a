-- What one rank does, all ranks learn: rank 0 writes files and decides, the others get the same
-- text or the same error, and none is left waiting. On the others the error is marked as `peer`:
-- another rank has said it already.

local core = require "marea.core"
local fault = require "marea.fault"
local json = require "marea.json"

local together = {}

local function send_text(world, text)
  local length = core.host.from({ text and #text or -1 }, "i64", { 1 })
  world:broadcast(length, 0)
  if not text or text == "" then return end
  local bytes = {}
  for i = 1, #text do bytes[i] = text:byte(i) end
  world:broadcast(core.host.from(bytes, "i32", { #bytes }), 0)
end

local function receive_text(world)
  local length = core.host.zeros({ 1 }, "i64")
  world:broadcast(length, 0)
  local count = math.tointeger(length:get(1))
  if count < 0 then return nil elseif count == 0 then return "" end
  local bytes = core.host.zeros({ count }, "i32")
  world:broadcast(bytes, 0)
  local parts = bytes:values()
  for i, byte in ipairs(parts) do parts[i] = string.char(math.tointeger(byte)) end
  return table.concat(parts)
end

--- Runs a function on rank 0 alone. All ranks call it; all return the text that it returned (or
--- nil), or raise the error that it raised, with its code.
---@param world marea.World|marea.group
---@param action fun(): string?
---@return string?
function together.on_root(world, action)
  if world:size() == 1 then return action() end
  if world:rank() == 0 then
    local ok, result = xpcall(action, fault.seize)
    local message, code = result, 0
    if not ok then message, code = fault.of(result) end
    world:broadcast(core.host.from({ code }, "i64", { 1 }), 0)
    send_text(world, message)
    if not ok then error(result, 0) end
    return result
  end
  local code = core.host.zeros({ 1 }, "i64")
  world:broadcast(code, 0)
  code = math.tointeger(code:get(1))
  local message = receive_text(world)
  if code == 0 then return message end
  local raised = fault.new(code, message)
  raised.peer = true
  error(raised, 0)
end

--- Gathers a text from every rank. All ranks call it.
---@param world marea.World|marea.group
---@param text string
---@return string[] texts in rank order
function together.texts(world, text)
  local lengths = world:all_gather(core.host.from({ #text }, "i64")):values()
  local longest = math.max(1, table.unpack(lengths))
  local bytes = {}
  for i = 1, longest do bytes[i] = text:byte(i) or 0 end
  local all, texts = world:all_gather(core.host.from(bytes, "i32")):values(), {}
  for rank, length in ipairs(lengths) do
    local characters, first = {}, (rank - 1) * longest
    for i = 1, length do characters[i] = string.char(all[first + i]) end
    texts[rank] = table.concat(characters)
  end
  return texts
end

--- What every rank has to tell: on each rank the list of all ranks' values, in rank order.
---@param world marea.World|marea.group
---@param value any what JSON can hold
---@return any[] values
function together.gather(world, value)
  if world:size() == 1 then return { value } end
  local values = together.texts(world, json.encode(value))
  for r, text in ipairs(values) do values[r] = json.decode(text) end
  return values
end

--- Refuses, on all ranks with code 6, a hash that is not the same on all of them.
---@param world marea.World|marea.group
---@param what string "the corpus"
---@param hash string hexadecimal
---@param place? string "file:line" of what made it
function together.same(world, what, hash, place)
  if world:size() == 1 then return end
  local prefix = hash:sub(1, 12)
  local all = world:all_gather(core.host.from({ tonumber(prefix, 16) }, "i64", { 1 })):values()
  for rank, value in ipairs(all) do
    if value ~= all[1] then
      fault.raise_at(6, place or "", "%s is not the same on all ranks: hash %012x on rank 0, " ..
                     "%012x on rank %d; it must not depend on the order of pairs or on time",
                     what, math.tointeger(all[1]), math.tointeger(value), rank - 1)
    end
  end
end

return together
