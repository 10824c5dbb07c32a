-- What tensors are not asked for: names that they do not have, elements by number, and operators.
-- Lua's own words for these would name neither what is wrong nor what to write instead.

local fault = require "marea.fault"
local strict = require "marea.strict"

local instead = {
  __add = "a:add(b)", __sub = "a:add(b:scale(-1))", __mul = "a:multiply(b), or a:scale(2)",
  __div = "a:scale(1 / 2)", __unm = "a:scale(-1)",
  __concat = "a:item(), the number of a tensor of one element",
}

local tensor_refusals = {}

--- Lets tensors refuse what they do not have, with code 1.
function tensor_refusals.install()
  local meta = debug.getregistry()["marea.tensor"]
  strict.names(meta.__index, "a tensor", {
    code = 1, index = "a tensor has no elements by number: t:get(i) reads one, t:slice(first, " ..
      "count) takes rows, t:values() gives all as a list" })
  for name, text in pairs(instead) do
    meta[name] = function() fault.raise(1, "tensors have no operators; use %s", text) end
  end
end

return tensor_refusals
