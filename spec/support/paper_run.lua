-- A run's folder as commands leave it, written from paper: two ranks, twelve updates, windows of 12
-- and 36 tokens, three parameters.

local json = require "marea.json"
local scratch = dofile "spec/support/scratch.lua"

local paper_run = {}

local updates = 12

local function hash(letter) return letter:rep(64) end

local function records()
  return {
    ["run.json"] = {
      name = "tide", recipe = "recipes/tide.lua", overrides = { "lr=0.05" }, version = "0.1.0",
      config = { lr = 0.05, updates = updates, seed = 20, ranks = 2, reduction = "mean",
                 objective = "global_token" },
      objective = "global_token", world = 2, threads = 1, parameters = 7, hosts = { "moon" },
      blas = "OpenBLAS", instruction_set = "v3", board = "shared", id = "id-1",
      started = "2026-01-02T03:04:05Z", ended = "2026-01-02T03:05:05Z", outcome = "complete",
      update = updates, resumed = json.array {},
      last_save = { update = updates, good = true, folder = "/somewhere/step-000012" } },
    ["lock.json"] = {
      corpus = hash "c", plan = { hash = hash "d", ranks = 2, steps = updates, chain = "" },
      config = { hash = hash "e", values = { lr = 0.05 } }, accepted = json.array {},
      files = { { name = "tide.lua", sha256 = hash "f" } } },
    ["corpus-card.json"] = {
      documents = 40, tokens = 960, vocabulary = 6, hash = hash "c",
      duplicates = { total = 1, across_splits = 0 },
      splits = { train = { documents = 40, tokens = 960, p10 = 4, p50 = 12, p90 = 36, max = 36 } },
      notes = { entropy = 1.18, drawn = "by hand",
                test = { loss = 1.19, commonest = 1, commonest_share = 0.25 } } },
    ["evaluate.json"] = {
      split = "test", sequences = 8, tokens = 100, loss = 1.25, accuracy = 0.5,
      checkpoint = "/somewhere/step-000012" },
  }
end

local function metrics()
  local lines = {}
  for u = 1, updates do
    lines[#lines + 1] = {
      update = u, objective = "global_token", loss_per_token = 1 + 1 / u, grad_norm = 2 / u,
      tokens = 48, rank_tokens = { 12, 36 }, sequences = 4, lr = 0.05, parameter_spread = 0,
      ms = 10, tokens_per_second = 4800, bytes_sent = 100 }
    if u % 6 == 0 then
      lines[#lines + 1] = { update = u, split = "validation", loss = 1.5 + 1 / u, sequences = 4,
                            tokens = 50 }
    end
  end
  return lines
end

local function rank_lines(rank, tokens)
  local lines = {}
  for u = 1, updates do
    lines[u] = { update = u, tokens = tokens, loss_sum = tokens * (1 + rank), draw = u, ms = 10,
                 waiting = 1 + rank, phases = { count = 1, forward = 2, backward = 4.5, step = 0.5,
                                                reduction = 1 + rank, save = u == 12 and 6 or 0 } }
  end
  return lines
end

local function errors(max_abs, worst, gate)
  return { max_abs = max_abs, failing = 0, rounding = 0,
           worst = { index = 1, error = worst, gate = gate } }
end

local function gated(atol, rtol, counts)
  local shares, edges = {}, { 0, 1e-4, 1e-2, 1, 10 }
  for i, count in ipairs(counts) do shares[i] = { up_to = edges[i], count = count } end
  return { failing = 0, rounding = 0, max_abs = 5e-8, max_rel = 0.1, atol = atol, rtol = rtol,
           shares = shares, worst = { parameter = "w", index = 1, values = { 1, 1 } } }
end

local function parity()
  return {
    recipe = "tide", objective = "global_token", reduction = "mean", world = 2, components = 7,
    window = { step = 1, tokens = 48, rank_tokens = { 12, 36 }, sequences = 4 }, loss = 2.5,
    f32 = gated(1e-6, 1e-4, { 3, 2, 2, 0, 0, 0 }), f64 = gated(1e-12, 1e-9, { 5, 2, 0, 0, 0, 0 }),
    parameters = {
      { name = "embedding.weight", count = 4, shape = { 2, 2 }, max_gradient = 0.5,
        f32 = errors(5e-8, 4e-8, 2e-6), f64 = errors(1e-16, 1e-16, 1e-12) },
      { name = "head.bias", count = 3, shape = { 3 }, max_gradient = 0.25,
        f32 = errors(0, 0, 1e-6), f64 = errors(0, 0, 1e-12) },
      { name = "nothing", count = 0, shape = { 0 }, max_gradient = 0,
        f32 = { max_abs = 0, failing = 0, rounding = 0 },
        f64 = { max_abs = 0, failing = 0, rounding = 0 } } },
    equal_on_all_ranks = true, begun_equal = true, controls_pass = true, pass = true,
    controls = {
      { name = "mean_of_means", meaning = "averaged twice", told_apart = true, detected = true,
        max_abs = 0.5, failing = 7 },
      { name = "global_token", meaning = "alike", told_apart = false, detected = false,
        reason = "it is the declared one" } } }
end

-- Weights of two sequences of 12 and 36 tokens under an objective that gives the first `share`.
local function weighed(name, declared, share)
  local function of(id, rank, tokens, part)
    return { id = id, rank = rank, microbatch = 1, tokens = tokens, share = part,
             weight = part / tokens }
  end
  return { name = name, declared = declared,
           ranks = { { rank = 0, tokens = 12, share = share, per_token = share / 12 },
                     { rank = 1, tokens = 36, share = 1 - share, per_token = (1 - share) / 36 } },
           sequences = { of(3, 0, 12, share), of(7, 1, 36, 1 - share) } }
end

local function weigh()
  return { recipe = "tide", step = 1, world = 2, tokens = 48, rank_tokens = { 12, 36 },
           objectives = { weighed("global_token", true, 0.25),
                          weighed("mean_of_means", false, 0.5) } }
end

local function encode_lines(lines)
  local texts = {}
  for i, line in ipairs(lines) do texts[i] = json.encode(line) .. "\n" end
  return table.concat(texts)
end

--- What a folder of a run holds, by file: a table for JSON, a list of tables for JSON lines.
---@return table<string, table> files
function paper_run.files()
  local files = records()
  files["metrics.jsonl"] = metrics()
  files["rank-0.jsonl"], files["rank-1.jsonl"] = rank_lines(0, 12), rank_lines(1, 36)
  files["parity.json"], files["weigh.json"] = parity(), weigh()
  return files
end

--- Writes a run's folder; `change(files)` changes what is in it before, and a text stays as it is.
---@param folder string
---@param change? fun(files: table<string, table|string>)
function paper_run.write(folder, change)
  local files = paper_run.files()
  if change then change(files) end
  for name, content in pairs(files) do
    local text = content
    if type(content) == "table" then
      text = name:find("l$") and encode_lines(content) or json.encode(content)
    end
    scratch.write(folder .. "/" .. name, text)
  end
end

return paper_run
