-- PyTorch as a peer: a process that does steps of the same model when it is told to, so that both
-- take turns. It is told through a pipe and answers through a named one: while it works this
-- process sleeps.

local core = require "marea.core"
local fault = require "marea.fault"
local json = require "marea.json"
local launch = require "marea.launch"

---@class marea.Torch
---@field ranks integer
---@field threads integer of each rank
---@field version string of PyTorch
---@field variant string "eager" or "compiled"
local Torch = {}
Torch.__index = Torch

local torch = {}

local interpreters = { "python3", "/usr/bin/python3" }

--- A python3 that has PyTorch.
---@return string? interpreter nil where none is found
function torch.find()
  for _, name in ipairs(interpreters) do
    if os.execute(name .. " -c 'import torch' >/dev/null 2>&1") then return name end
  end
end

local function unfit(reason)
  fault.raise_at(2, "", "--against torch compares models of nn.Transformer with layer norms, " ..
                 "f32 (bf16 on GPUs) and no dropout; %s", reason)
end

-- The model as torch_gpt.py expects it.
local function description_of(session)
  local o, config = session.model.options, session.config
  if not o or not o.heads or not o.vocabulary then unfit "this recipe's is another" end
  if o.norm_kind ~= "layer" then unfit "this recipe has other norms" end
  local fits = config.dtype == "f32" or config.dtype == "bf16" and core.device().name ~= "cpu"
  if not fits then unfit("this recipe's dtype is " .. config.dtype) end
  if o.dropout ~= 0 then unfit "this recipe has dropout" end
  return { layers = o.layers, width = o.width, hidden = o.hidden, heads = o.heads,
           vocabulary = o.vocabulary, classes = o.classes, context = o.context, norm = o.norm,
           activation = o.activation, causal = o.causal, tied = o.tied or false,
           bias = o.bias ~= false, optimizer = session.optimizer.kind,
           clip_norm = config.clip_norm or false }
end

-- lengths[rank][microbatch] of the first window: as planned for as many ranks, else every
-- microbatch's sequences dealt to them in turn. nil where one would get none.
local function deal(session, ranks)
  local planned, lengths = session.plan[1], {}
  for r = 1, ranks do lengths[r] = json.array {} end
  local dealt = {}
  for at, microbatches in ipairs(planned) do
    for m, ids in ipairs(microbatches) do
      for _, id in ipairs(ids) do
        dealt[m] = (dealt[m] or 0) + 1
        local of_rank = lengths[ranks == #planned and at or (dealt[m] - 1) % ranks + 1]
        of_rank[m] = of_rank[m] or json.array {}
        table.insert(of_rank[m], session.corpus:sequence(id).length)
      end
    end
  end
  for r = 1, ranks do
    if #lengths[r] ~= #lengths[1] or #lengths[r] == 0 then return nil end
  end
  return lengths
end

-- The files that connect both have lost their names when this returns: nothing stays where this
-- process is killed.
local function open(interpreter, script, argument, ranks, threads)
  local self = setmetatable({ ranks = ranks, threads = threads, variant = "eager" }, Torch)
  local answers, errors = os.tmpname(), os.tmpname()
  os.remove(answers)
  assert(os.execute("mkfifo " .. launch.quote(answers)))
  self.input = assert(io.popen(("exec %s %s %s 2>%s >%s"):format(
    interpreter, launch.quote(launch.root() .. "/lua/marea/bench/" .. script),
    launch.quote(json.encode(argument)), launch.quote(errors), launch.quote(answers)), "w"))
  self.output = assert(io.open(answers, "r")) -- waits for the peer, whose errors are open by then
  self.errors = assert(io.open(errors, "r"))
  os.remove(answers)
  os.remove(errors)
  local answer = self:answer()
  self.version, self.missing = answer.version, answer.missing
  return self
end

--- Starts a peer. Errors: code 4 when it does not come up.
---@param interpreter string as torch.find gives it
---@param session marea.Session built
---@param ranks integer
---@param threads integer of each
---@return marea.Torch? peer nil where the window cannot be dealt to so many ranks
function torch.start(interpreter, session, ranks, threads)
  local description = description_of(session)
  description.lengths = deal(session, ranks)
  if not description.lengths then return nil end
  description.ranks, description.threads = ranks, threads
  return open(interpreter, "torch_gpt.py", description, ranks, threads)
end

--- Starts the peer of a run on a GPU, one process on the same one: eager, or through torch.compile.
--- dtype bf16 is autocast over f32 weights. Errors: code 4 when it ends before it has answered.
---@param interpreter string as torch.find gives it
---@param session marea.Session built, on a GPU
---@param compile boolean
---@return marea.Torch? peer nil where PyTorch finds no GPU or its compiler does not work
---@return string? reason
function torch.on_gpu(interpreter, session, compile)
  local description = description_of(session)
  description.lengths = deal(session, 1)
  description.ranks, description.threads, description.compile = 1, 1, compile
  description.device, description.dtype = core.device().name, session.config.dtype
  local peer = open(interpreter, "torch_gpt.py", description, 1, 1)
  if peer.missing then
    peer:close()
    return nil, peer.missing
  end
  peer.variant = compile and "compiled" or "eager"
  return peer
end

--- Starts a peer for small operations. Errors: code 4 when it does not come up.
---@param interpreter string as torch.find gives it
---@param names string[] as torch_operations.py calls them
---@param side integer extent of the square tensors
---@return marea.Torch peer whose nanoseconds can be asked for
function torch.operations(interpreter, names, side)
  return open(interpreter, "torch_operations.py", { operations = names, side = side }, 1, 1)
end

-- lengths[step][rank][microbatch] of the whole plan.
local function all_lengths(session)
  local steps = {}
  for s, window in ipairs(session.plan) do
    steps[s] = {}
    for r, microbatches in ipairs(window) do
      steps[s][r] = json.array {}
      for m, ids in ipairs(microbatches) do
        steps[s][r][m] = json.array {}
        for i, id in ipairs(ids) do steps[s][r][m][i] = session.corpus:sequence(id).length end
      end
    end
  end
  return steps
end

--- One training of the whole plan by PyTorch, each rank with one thread, from the start of its
--- program to its end. Errors: code 4 when it fails.
---@param interpreter string as torch.find gives it
---@param session marea.Session built
---@return fun(): {seconds: number, loop: number, version: string} train
function torch.whole(interpreter, session)
  local description = description_of(session)
  description.ranks, description.threads = #session.plan[1], 1
  description.lengths = all_lengths(session)[1]
  local steps = json.encode(all_lengths(session))
  return function()
    local plan, answer, errors = os.tmpname(), os.tmpname(), os.tmpname()
    core.file.write(plan, steps)
    description.plan = plan
    local began = core.seconds()
    local process <close> = core.process.start {
      arguments = { interpreter, launch.root() .. "/lua/marea/bench/torch_gpt.py",
                    json.encode(description) },
      input = "/dev/null", output = answer, errors = errors }
    local kind, number = process:wait(600)
    local seconds = core.seconds() - began
    local found, said = core.file.read(answer), core.file.read(errors)
    for _, path in ipairs { plan, answer, errors } do os.remove(path) end
    if kind ~= "exit" or number ~= 0 then
      fault.raise_at(4, "", "PyTorch ended: %s", said:match "([^\n]+)%s*$" or "it said nothing")
    end
    local record = json.decode(found)
    return { seconds = seconds, loop = record.loop, version = record.version }
  end
end

--- Reads one answer. Errors: code 4 when the peer has ended.
---@return table answer
function Torch:answer()
  local line = self.output:read "l"
  if line then return json.decode(line) end
  local said = self.errors:read("a"):match "([^\n]+)%s*$" or "it said nothing"
  fault.raise_at(4, "", "PyTorch ended: %s", said)
end

--- Does steps and tells the milliseconds of each.
---@param count integer
---@return number[] milliseconds
function Torch:steps(count)
  self.input:write(count, "\n")
  self.input:flush()
  local answer = self:answer()
  self.peak = math.max(self.peak or 0, answer.peak)
  return answer.ms
end

--- Does small operations and tells the nanoseconds of each kind.
---@param count integer of each
---@return table<string, number> nanoseconds by name
function Torch:nanoseconds(count)
  self.input:write(count, "\n")
  self.input:flush()
  return self:answer().ns
end

--- Ends the peer.
function Torch:close()
  self.input:close()
  self.output:close()
  self.errors:close()
end
Torch.__close = Torch.close

return torch
