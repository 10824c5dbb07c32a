-- The weights of a model as a tensor file of their own: written for other tools, and read from what
-- marea or another tool wrote. Names and shapes are those of the model's parameters.

local core = require "marea.core"
local fault = require "marea.fault"
local state = require "marea.state"
local together = require "marea.together"
local wording = require "marea.wording"

local weights = {}

--- What the metadata of written weights call their kind.
weights.kind = "marea weights"

-- What is read, by the names that tensor files of every tool use.
local readable = { f32 = true, f64 = true, bf16 = true }
local published = { i32 = "I32", i64 = "I64" }
local widths = { f32 = 4, f64 = 8, bf16 = 2 }

local most_named = 5 -- of what is wrong with a file

--- Writes tensors as weights, as a whole or not at all. Equal arguments give equal bytes.
--- Errors, code 1: the disk.
---@param path string
---@param list marea.named_tensor[] f32, f64 or bf16
---@param about {dtype?: "f32"|"f64"|"bf16", metadata: table<string, string>} dtype: of the file
---@return integer bytes of the elements
function weights.write(path, list, about)
  local converted, bytes = {}, 0
  for i, item in ipairs(list) do
    local tensor = item[2]
    if about.dtype and tensor:dtype() ~= about.dtype then tensor = tensor:to(about.dtype) end
    converted[i] = { item[1], tensor }
    bytes = bytes + tensor:count() * widths[tensor:dtype()]
  end
  local metadata = { kind = weights.kind, format = "pt" } -- "pt": what readers of torch ask for
  for key, value in pairs(about.metadata) do metadata[key] = value end
  core.safetensors.write(path, converted, metadata)
  return bytes
end

-- What keeps a file from being the weights of a model, in the order of the model, then the file.
local function misfits(file, list)
  local problems, wanted = {}, {}
  local function add(...) problems[#problems + 1] = string.format(...) end
  for _, item in ipairs(list) do
    local name, tensor = item[1], item[2]
    wanted[name] = true
    if not file:has(name) then
      add("%s is missing", name)
    elseif not readable[file:dtype(name)] then
      add("%s is %s, and F32, F64 or BF16 is read", name, published[file:dtype(name)] or
          file:dtype(name))
    elseif wording.shape(file:shape(name)) ~= wording.shape(tensor:shape()) then
      add("%s has the shape %s, the model's is %s", name, wording.shape(file:shape(name)),
          wording.shape(tensor:shape()))
    end
  end
  for _, name in ipairs(file:names()) do
    if not wanted[name] then add("%s is no parameter of the model", name) end
  end
  return problems
end

local function refuse(path, problems)
  local shown = table.move(problems, 1, math.min(#problems, most_named), 1, {})
  local more = #problems - #shown
  fault.raise_at(2, "", "%s does not fit the recipe's model: %s%s", path,
                 table.concat(shown, "; "), more > 0 and ("; and %d more"):format(more) or "")
end

local function read(model, path)
  if not core.file.exists(path) then fault.raise_at(2, "", "there is no file %s", path) end
  local file <close> = core.safetensors.open(path)
  local list = state.parameters(model)
  local problems = misfits(file, list)
  if #problems > 0 then refuse(path, problems) end
  local _ <close> = core.no_grad()
  for _, item in ipairs(list) do
    local stored <close> = file:tensor(item[1])
    local dtype = item[2]:dtype()
    local fitting <close> = stored:dtype() == dtype and stored or stored:to(dtype)
    item[2]:copy_(fitting)
  end
end

--- Gives a model the weights of a file, converted to its dtype. All ranks call it; rank 0 reads.
--- Errors, on all ranks: code 3 for a file that is damaged or foreign; code 2 for one that is not
--- there, and for parameters that are missing, left over, of another shape, or none of f32, f64 and
--- bf16.
---@param model marea.Module root module, materialized
---@param world marea.World
---@param path string
---@return string hash sha-256 of the file
function weights.load(model, world, path)
  local hash = together.on_root(world, function()
    read(model, path)
    return core.file.sha256_of(path)
  end)
  state.broadcast(world, model)
  return hash
end

return weights
