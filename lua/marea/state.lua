-- The state of a training run as named tensors, and back: parameters and optimizer state by the
-- names of the parameters, so that a recipe that declares them in another order keeps its own.

local core = require "marea.core"
local fault = require "marea.fault"
local sorted = require "marea.sorted"
local wording = require "marea.wording"

local state = {}

local function range_of(flat, range)
  return flat:slice(range.offset + 1, range.count):reshape(range.shape)
end

--- The parameters of a model.
---@param model marea.Module root module, materialized
---@return marea.named_tensor[] list views
function state.parameters(model)
  local list, values = {}, model:values()
  for i, range in ipairs(model.unit:ranges()) do
    list[i] = { range.name, range_of(values, range) }
  end
  return list
end

--- The state of an optimizer.
---@param model marea.Module root module
---@param optimizer marea.Optimizer
---@return marea.named_tensor[] list views, named "STATE.PARAMETER"
function state.optimizer(model, optimizer)
  local list = {}
  local flats = optimizer:state()
  for _, name in ipairs(sorted.keys(flats)) do
    for _, range in ipairs(model.unit:ranges()) do
      list[#list + 1] = { name .. "." .. range.name, range_of(flats[name], range) }
    end
  end
  return list
end

--- What a checkpoint says about an optimizer besides its tensors.
---@param optimizer marea.Optimizer
---@return table<string, string> metadata kind, optimizer, steps
function state.optimizer_metadata(optimizer)
  return { kind = "marea optimizer", optimizer = optimizer.kind,
           steps = ("%d"):format(optimizer:steps()) }
end

-- Names that only one side has.
local function check_names(file, list)
  local wanted = {}
  for _, item in ipairs(list) do
    wanted[item[1]] = true
    if not file:has(item[1]) then
      fault.raise_at(3, file:path(), "the recipe's model expects a tensor %s, the file has none",
                     item[1])
    end
  end
  for _, name in ipairs(file:names()) do
    if not wanted[name] then
      fault.raise_at(3, file:path(), "the file has a tensor %s, the recipe's model has none", name)
    end
  end
end

-- Copies every tensor of a file over the one of that name. Nothing is changed unless all fit.
local function fill(file, list)
  check_names(file, list)
  for _, item in ipairs(list) do
    local expected, found = wording.shape(item[2]:shape()), wording.shape(file:shape(item[1]))
    if expected ~= found then
      fault.raise_at(3, file:path(), "%s: the recipe's model expects the shape %s, the file has %s",
                     item[1], expected, found)
    end
  end
  for _, item in ipairs(list) do
    local stored <close> = file:tensor(item[1])
    local dtype = item[2]:dtype()
    local fitting <close> = stored:dtype() == dtype and stored or stored:to(dtype)
    item[2]:copy_(fitting)
  end
end

--- Replaces a model's parameters by those of a file.
--- Errors, code 3: tensors that are missing, left over, or of another shape.
---@param model marea.Module root module
---@param file marea.safetensors a tensor file
function state.restore_parameters(model, file)
  local _ <close> = core.no_grad()
  fill(file, state.parameters(model))
end

--- Replaces an optimizer's state by that of a file.
--- Errors, code 3: as state.restore_parameters; another kind of optimizer.
---@param model marea.Module root module
---@param optimizer marea.Optimizer
---@param file marea.safetensors a tensor file
function state.restore_optimizer(model, optimizer, file)
  local _ <close> = core.no_grad()
  local metadata = file:metadata()
  if metadata.optimizer ~= optimizer.kind then
    fault.raise_at(3, file:path(), "the recipe's optimizer is %s, the file's is %s",
                   optimizer.kind, tostring(metadata.optimizer))
  end
  fill(file, state.optimizer(model, optimizer))
  optimizer:restore(math.tointeger(tonumber(metadata.steps)))
end

--- Makes every rank's parameters, optimizer state and steps those of rank 0.
---@param world marea.World
---@param model marea.Module root module
---@param optimizer? marea.Optimizer
function state.broadcast(world, model, optimizer)
  if world:size() == 1 then return end
  world:broadcast(model:values(), 0)
  if not optimizer then return end
  local flats = optimizer:state()
  for _, name in ipairs(sorted.keys(flats)) do world:broadcast(flats[name], 0) end
  local steps = core.host.from({ optimizer:steps() }, "i64", { 1 })
  world:broadcast(steps, 0)
  optimizer:restore(math.tointeger(steps:get(1)))
end

return state
