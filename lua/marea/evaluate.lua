-- Evaluation: loss per token and token accuracy of a model on a split.
--
-- The split is cut into blocks of 16 sequences in corpus order, whatever the batch size; of W
-- ranks, rank b mod W takes block b. A block is one packed batch without dropout. Its sums are
-- taken in f64 over what has a target, and are added in the order of the blocks: the result has the
-- same bits on any number of ranks.

local batch_of = require "marea.batch"
local checkpoint = require "marea.checkpoint"
local core = require "marea.core"
local fault = require "marea.fault"
local kind = require "marea.kind"
local loss_of = require "marea.loss"
local objective = require "marea.objective"
local prepare = require "marea.prepare"
local Session = require "marea.session"
local state = require "marea.state"
local together = require "marea.together"

local evaluate = {}

local block_sequences = 16
local block_fields = 3 -- loss sum, right positions (-1: not known), tokens

local function blocks_of(corpus, split)
  local rows, blocks = corpus:rows(split), {}
  if #rows == 0 then fault.raise_at(2, "", "the %s split of the corpus has no sequences", split) end
  for first = 1, #rows, block_sequences do
    blocks[#blocks + 1] = table.move(rows, first, math.min(first + block_sequences - 1, #rows), 1,
                                     {})
  end
  return blocks, #rows
end

local function has_axes(value, axes)
  return kind.is_tensor(value) and #value:shape() == axes
end

-- The model as recipe.loss calls it, with what it last returned at hand.
local function watched(model)
  local seen = {}
  local stand_in = setmetatable({}, {
    __index = model,
    __call = function(_, ...)
      seen.output = model(...)
      return seen.output
    end,
  })
  return stand_in, seen
end

-- The losses per position: recipe.loss itself, or the first of its terms that has one per position.
local function position_losses(session, losses, rows)
  if not session.named_terms then losses = { loss = losses } end
  for _, term in ipairs(session.terms) do
    local value = type(losses) == "table" and losses[term.name]
    if has_axes(value, 1) and value:shape()[1] == rows then return value end
  end
  fault.raise_at(2, session.recipe.path or "", "recipe.loss gives no loss per position, so " ..
                 "there is none to evaluate")
end

-- Positions whose target has the largest logit; -1 where the model gives no logits.
local function right_positions(output, made)
  if not has_axes(output, 2) or output:shape()[1] ~= made.rows then return -1 end
  local guesses, targets, right = output:argmax():values(), made.targets:values(), 0
  for i, target in ipairs(targets) do
    if target == guesses[i] then right = right + 1 end
  end
  return right
end

local function evaluate_block(session, rows)
  local made = batch_of.build(session.corpus, rows, { layout = "packed",
                                                      seed = session.config.seed })
  local model, seen = watched(session.model)
  local losses = position_losses(session, session.recipe.loss(model, made), made.rows)
  local sum = loss_of.supervised_sum(losses, made):item()
  return sum, right_positions(seen.output, made), made.tokens
end

-- This rank's sums, with room for as many blocks as any rank has.
local function my_sums(session, blocks, world)
  local slots = (#blocks + world:size() - 1) // world:size()
  local sums = {}
  for i = 1, slots * block_fields do sums[i] = 0 end
  for b = world:rank(), #blocks - 1, world:size() do
    local at = b // world:size() * block_fields
    sums[at + 1], sums[at + 2], sums[at + 3] = evaluate_block(session, blocks[b + 1])
  end
  return sums
end

local function add_in_order(all, blocks, world)
  local slots = (#blocks + world:size() - 1) // world:size()
  local loss, right, tokens, known = 0, 0, 0, true
  for b = 0, #blocks - 1 do
    local at = (b % world:size() * slots + b // world:size()) * block_fields
    loss, tokens = loss + all[at + 1], tokens + all[at + 3]
    known = known and all[at + 2] >= 0
    right = right + all[at + 2]
  end
  return loss, known and right or nil, math.tointeger(tokens)
end

--- What evaluation needs of a recipe: its corpus and its model, on any number of ranks. It has no
--- plan, no replica and no optimizer. All ranks call it.
--- Errors: code 2 as prepare.corpus, or a model that is none; code 6 for corpora that differ.
---@param recipe marea.Recipe loaded
---@param world marea.World
---@return marea.Session session
function evaluate.session(recipe, world)
  local corpus = prepare.corpus(recipe)
  together.same(world, "the corpus", corpus:hash(), recipe.place "corpus")
  local model = Session.new_model(recipe)
  local terms, named_terms = objective.terms(recipe.objective)
  return { recipe = recipe, config = recipe.config, corpus = corpus, model = model, world = world,
           terms = terms, named_terms = named_terms }
end

--- Gives a session's model the parameters of a checkpoint. All ranks call it; rank 0 reads. Of the
--- lock only the corpus counts.
--- Errors, code 3, on all ranks: damage, tensors that do not fit the model, another corpus.
---@param session marea.Session
---@param folder string of the checkpoint
function evaluate.load(session, folder)
  together.on_root(session.world, function()
    local opened = checkpoint.open(folder)
    local parameters <close> = opened.parameters
    opened.optimizer:close()
    if opened.state.lock.corpus ~= session.corpus:hash() then
      fault.raise_at(3, "", "%s was trained on another corpus: hash %s there, %s here", folder,
                     opened.state.lock.corpus, session.corpus:hash())
    end
    state.restore_parameters(session.model, parameters)
  end)
  state.broadcast(session.world, session.model)
end

---@class marea.Evaluation
---@field split string
---@field sequences integer
---@field tokens integer supervised positions
---@field loss number per token
---@field accuracy? number share of right positions; nil: the model gives no logits
---@field update? integer of the model

--- Loss per token and accuracy of a session's model on a split. All ranks call it; the model must
--- be the same on all of them.
--- Errors: code 2 for a split without sequences or a recipe without a loss per position; code 5
--- for a split without supervised positions.
---@param session marea.Session what evaluate.session made, or a whole one
---@param split "train"|"validation"|"test"
---@return marea.Evaluation result
function evaluate.split(session, split)
  local world = session.world
  local _ <close> = core.no_grad()
  local blocks, sequences = blocks_of(session.corpus, split)
  local sums = my_sums(session, blocks, world)
  local all = world:all_gather(core.host.from(sums, "f64")):values()
  local loss, right, tokens = add_in_order(all, blocks, world)
  if tokens == 0 then
    fault.raise_at(5, "", "the %s split has no supervised position", split)
  end
  return { split = split, sequences = sequences, tokens = tokens, loss = loss / tokens,
           accuracy = right and right / tokens }
end

return evaluate
