-- marea: what a recipe or script gets from require "marea". Parts are loaded when first used.

local core = require "marea.core"
local strict = require "marea.strict"

core.set_library(debug.getinfo(1, "S").source:match("^(@.*[/\\])init%.lua$") or "@")

---@class marea.Library
---@field corpus marea.parts.corpus
---@field nn marea.parts.nn
---@field objective marea.parts.objective
---@field optim marea.parts.optim
---@field random marea.parts.random
---@field sampler marea.parts.sampler
---@field schedule marea.parts.schedule
---@field tensor marea.parts.tensor
local marea = {
  version = require "marea.version",
}

local parts = { "corpus", "nn", "objective", "optim", "random", "sampler", "schedule", "tensor" }

--- Declares a recipe: the file returns what this returns. Fields are checked when it is loaded.
---@param definition marea.Definition
---@return marea.Declaration declaration
function marea.recipe(definition) return require("marea.recipe").declare(definition) end

--- The ranks of this run; a single one outside mpirun.
---@return marea.World
function marea.world() return require("marea.world").get() end

--- A scope in which operations are not recorded: `local _ <close> = marea.no_grad()`.
---@return marea.no_grad scope
function marea.no_grad() return core.no_grad() end

--- What the engine holds on the device, in bytes.
---@return marea.memory_use use
function marea.memory() return core.memory() end

--- Makes the model a replica on all ranks, for scripts; all ranks call it. Its loss is that of the
--- options, or cross_entropy of the model's logits.
---@param model marea.Module root module, materialized
---@param options? {reduction?: "mean"|"sum", loss?: fun(model: table, batch: table): marea.tensor}
---@return marea.Replica
function marea.replicate(model, options)
  options = options or {}
  local session = {
    recipe = require("marea.recipe").of_loss(options.loss or function(m, batch)
      return require("marea.nn").cross_entropy(m(batch), batch.targets)
    end),
    terms = require("marea.objective").terms(require("marea.objective").global_token),
  }
  return require("marea.replica").new(session, model, marea.world(),
                                      { reduction = options.reduction })
end

local refuse = strict.refusal(marea, "marea", { names = parts })

require("marea.tensor_refusals").install()

return setmetatable(marea, {
  __index = function(self, name)
    for _, part in ipairs(parts) do
      if part == name then
        rawset(self, name, strict.names(require("marea." .. name), "marea." .. name))
        return rawget(self, name)
      end
    end
    return refuse(self, name)
  end,
})
