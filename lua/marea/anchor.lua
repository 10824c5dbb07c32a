-- Anchors: functions that stand, for the stack, on a line of a recipe, so that what they call can
-- be blamed on it. A fault's message begins with the first line outside the library; a callback
-- that ends in `return nn.cross_entropy(...)` has left the stack by then (a tail call), and what
-- the library checks on its own about a recipe has no line of the recipe on the stack at all.

local anchor = {}

local text = "local call, pack, unpack = ... return function(...) " ..
  "local results = pack(call(...)) return unpack(results, 1, results.n) end"

local function called_from(source, line, called)
  return assert(load(("\n"):rep(line - 1) .. text, source, "t"))(called, table.pack, table.unpack)
end

--- The same callback, called from the line on which it begins; what no file defines stays as it is.
---@generic F: function?
---@param callback F
---@return F
function anchor.callback(callback)
  local info = callback and debug.getinfo(callback, "S")
  if not info or info.source:sub(1, 1) ~= "@" then return callback end
  return called_from(info.source, info.linedefined, callback)
end

local function call(action, ...) return action(...) end

--- A function (action, ...) that calls action(...) from a place.
---@param place string "file:line"; without a line, nothing stands on the stack
---@return fun(action: function, ...: any): ...
function anchor.place(place)
  local file, line = place:match("^(.*):(%d+)$")
  if not file then return call end
  return called_from("@" .. file, math.tointeger(tonumber(line)), call)
end

--- A function of the library that is called from a place, whoever calls it.
---@generic F: function
---@param place string as of anchor.place
---@param called F
---@return F
function anchor.bound(place, called)
  local from = anchor.place(place)
  return function(...) return from(called, ...) end
end

return anchor
