-- marea check-loss: 12 tokens on one rank and 36 on the other, through the engine's own window,
-- reduction and backward, against values that can be worked out by hand.
--
-- One parameter w = 1; a token's loss is w x. Rank 0 holds 12 tokens of x = 1 (sum 12), rank 1
-- holds 36 of x = 3 (sum 108). So the mean of the ranks' means is (1 + 3) / 2 = 2, that over all
-- tokens (12 + 108) / 48 = 2.5; the loss is w times the gradient, so both are the same numbers.

local core = require "marea.core"
local fault = require "marea.fault"
local json = require "marea.json"
local nn = require "marea.nn"
local objective = require "marea.objective"
local recipe_of = require "marea.recipe"
local Replica = require "marea.replica"
local Window = require "marea.window"
local world_of = require "marea.world"

local tokens_of_rank = { [0] = 12, [1] = 36 }
local value_of_rank = { [0] = 1, [1] = 3 }
local failed = 3

-- A corpus of one-token sequences: ids 1 to 12 belong to rank 0's value, 13 to 48 to rank 1's.
local corpus = {}

function corpus.sequence(_, id) return { id = id, tokens = 1, length = 1, split = "train" } end

function corpus.gather(_, ids)
  local values, zeros, starts = {}, {}, {}
  for i, id in ipairs(ids) do
    values[i], zeros[i], starts[i] = id <= 12 and value_of_rank[0] or value_of_rank[1], 0, i - 1
  end
  local n = { #ids }
  return {
    ids = core.from(zeros, "i32", n), targets = core.from(zeros, "i32", n),
    positions = core.from(zeros, "i32", n), sequence_ids = core.from(ids, "i64", n),
    lengths = core.ones(n, "i64"), starts = core.from(starts, "i64", n),
    values = core.from(values, "f64", n),
  }
end

-- The window in `parts` microbatches a rank.
local function plan_of(parts)
  local window, first = {}, 1
  for rank = 0, 1 do
    local microbatches, size = {}, tokens_of_rank[rank] // parts
    for m = 1, parts do
      microbatches[m] = {}
      for i = 1, size do microbatches[m][i] = first + i - 1 end
      first = first + size
    end
    window[rank + 1] = microbatches
  end
  return { window }
end

local Scalar = nn.class("check_loss.Scalar")

--- Declares w = 1.
function Scalar:init() self:parameter("w", {}, { value = 1 }) end

--- w x for each row: x repeats w over its rows.
---@param batch marea.Batch with its x as `values`
---@return marea.tensor losses [rows]
function Scalar:forward(batch) return batch.values:multiply(self.w) end

local function new_session(parts, unit)
  return {
    recipe = recipe_of.of_loss(function(model, batch) return model(batch) end),
    config = { dtype = "f64", layout = "packed", seed = 0 },
    corpus = corpus, plan = plan_of(parts),
    terms = objective.terms(unit),
  }
end

-- One process plays both ranks in turn on one buffer, then takes the mean over ranks itself; two
-- ranks reduce.
local function accumulate(replica, window)
  local local_loss = 0
  for i, batch in ipairs(window) do
    local _ <close> = i < #window and replica:no_sync()
    local loss = replica:loss(batch, window:weights(batch))
    local_loss = local_loss + loss:item()
    loss:backward()
  end
  return local_loss
end

local function window_of(session, rank, extra, world)
  local window = Window.new(session, 1, rank):count(world)
  window.factor = 2 / extra
  return window
end

-- Gradient after the mean over both ranks, and each rank's part of the loss before it.
local function run(world, parts, unit, extra)
  local session = new_session(parts, unit)
  local model = Scalar():materialize { seed = 0, dtype = "f64" }
  local replica = Replica.new(session, model, world, { reduction = "mean" })
  if world:size() == 2 then
    replica:zero_grad()
    local own = accumulate(replica, window_of(session, world:rank(), extra, world))
    local both = world:all_gather(core.host.from({ own }, "f64", { 1 })):values()
    return model:gradients():get(1), both
  end
  local sum, both = 0, {}
  for rank = 0, 1 do
    replica:zero_grad()
    both[rank + 1] = accumulate(replica, window_of(session, rank, extra))
    sum = sum + model:gradients():get(1)
  end
  return sum / 2, both
end

local function measure(world)
  local mean_of_means = run(world, 1, objective.mean_of_means, 1)
  local token_mean, parts = run(world, 1, objective.global_token, 1)
  local in_two, parts_in_two = run(world, 2, objective.global_token, 1)
  local divided = run(world, 2, objective.global_token, 2)
  return {
    { name = "mean of means", value = mean_of_means, expected = 2 },
    { name = "token mean", value = token_mean, expected = 2.5 },
    { name = "part of rank 0", value = parts[1], expected = 0.5 },
    { name = "part of rank 1", value = parts[2], expected = 4.5 },
    { name = "token mean, two microbatches a rank", value = in_two, expected = 2.5 },
    { name = "part of rank 0, two microbatches", value = parts_in_two[1], expected = 0.5 },
    { name = "part of rank 1, two microbatches", value = parts_in_two[2], expected = 4.5 },
    { name = "divided once more by the microbatches", value = divided, expected = 1.25 },
  }
end

local function judge(rows)
  local pass = true
  for _, row in ipairs(rows) do
    row.pass = math.abs(row.value - row.expected) <= 1e-12 * row.expected
    pass = pass and row.pass
  end
  return pass
end

local function text(rows, pass, world)
  local lines = { ("12 tokens of loss 1 on rank 0, 36 of loss 3 on rank 1 (%s):"):format(
    world:size() == 2 and "two ranks" or "one process playing both ranks") }
  for _, row in ipairs(rows) do
    lines[#lines + 1] = ("  %-38s %-8s expected %-6s %s"):format(
      row.name, json.number(row.value), json.number(row.expected), row.pass and "ok" or "WRONG")
  end
  lines[#lines + 1] = "Averaging the ranks' averages counts a token of rank 0 three times " ..
                      "a token of rank 1."
  lines[#lines + 1] = pass and "pass" or "FAIL"
  return table.concat(lines, "\n")
end

local function run_command(options)
  require("marea.device").use_asked()
  local world = world_of.get()
  if world:size() > 2 then
    fault.raise_at(2, "", "check-loss is an example of two ranks: start it on 1 or 2, not on %d",
                   world:size())
  end
  local rows = measure(world)
  local pass = judge(rows)
  if world:rank() == 0 then
    local record = { rows = rows, pass = pass }
    print(options.json and json.encode(record) or text(rows, pass, world))
  end
  return pass and 0 or failed
end

---@type marea.Command
return {
  name = "check-loss",
  summary = "Check the example of 12 and 36 tokens: 2, 2.5 and 1.25.",
  example = "marea launch -n 2 check-loss",
  run = run_command,
}
