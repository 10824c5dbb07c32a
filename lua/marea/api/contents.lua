-- What the page of the Lua API has, in its order: sections for authors of recipes first, then what
-- scripts use, then the engine beneath. Everything that is said about a function or a type comes
-- from its annotation; here stands only where to find it, and what it is called.

---@class marea.api.Entry
---@field functions? string file and local table: its functions that are no methods
---@field class? string type: what it is, its fields and its methods
---@field module? string type of nn: how it is made and called
---@field record? string type with fields alone, or an alias
---@field config? string type whose fields have the defaults of a recipe's config
---@field methods? string file and local table: its methods, without the type itself
---@field as? string what the functions or methods belong to, as a recipe would write it
---@field object? string what an object of a module of nn is called
---@field from? string[] files and local tables with a class's methods; all unless given
---@field title? string heading; without it the entry goes on with the one before
---@field text? string before the annotations
---@field also? string[] further types that this entry describes
---@field only? string[] functions to show; all unless given
---@field without? string[] functions and fields that only the library uses

---@class marea.api.Section
---@field title string
---@field text string
---@field example? string Lua that runs as it stands
---@field entries marea.api.Entry[]

local from_tensor_file = { "zeros", "ones", "full", "from" }

---@type marea.api.Section[]
return {
  {
    title = "The module",
    text = [[
What a recipe or script begins with. Its parts (`marea.nn`, `marea.optim`, `marea.objective`,
`marea.sampler`, `marea.schedule`, `marea.corpus`, `marea.tensor`, `marea.random`) are loaded
when they are first used.]],
    example = [[
local marea = require "marea"
local nn, optim, objective = marea.nn, marea.optim, marea.objective
local world = marea.world()
assert(world:rank() < world:size())]],
    entries = {
      { title = "marea", functions = "init.lua marea", as = "marea" },
      { title = "Memory", record = "marea.memory_use" },
      { title = "Scopes without gradients", record = "marea.no_grad" },
    },
  },
  {
    title = "Recipes",
    text = [[
A file that returns `marea.recipe { ... }`. Only `name`, `corpus`, `model`, `optimizer` and
`plan` must be given. A recipe's own keys in `config` need a default there, which gives them
their type; `key=value` on the command line overrides any of them.]],
    entries = {
      { title = "Fields", record = "marea.Definition" },
      { title = "Config keys", config = "marea.Config" },
      { title = "Declarations", record = "marea.Declaration" },
    },
  },
  {
    title = "Corpora",
    text = [[
Sequences with their splits and fields, from JSON lines, from plain text, from a chain of four
symbols, or from lists of your own.]],
    example = [[
local corpus = require("marea").corpus
local mine = corpus.from {
  vocabulary = 4,
  sequences = { { inputs = { 0, 1, 2 }, targets = { 1, 2, -100 }, split = "train",
                  fields = { book = "first" } } },
}
assert(mine:sequence(1).tokens == 2 and mine:sequence(1).book == "first")]],
    entries = {
      { title = "marea.corpus", functions = "corpus.lua corpus", as = "corpus" },
      { title = "A corpus", class = "marea.Corpus", as = "corpus" },
      { title = "A sequence", record = "marea.Sequence" },
      { title = "The tensors of a microbatch", record = "marea.gathered" },
    },
  },
  {
    title = "Plans",
    text = [[
Which sequences each rank reads in each update, as data, made before the run. A recipe's `plan`
calls one of these, or returns lists of its own.]],
    example = [[
local sampler = require("marea").sampler
local rows = { { id = 1, length = 3, tokens = 3 }, { id = 2, length = 9, tokens = 9 } }
local config = { seed = 20, ranks = 2, updates = 1, accumulation = 1, batch_size_per_rank = 1 }
local plan = sampler.by_length(rows, config, { limit = 4 })
assert(plan[1][1][1][1] == 1 and plan[1][2][1][1] == 2)   -- rank 0 reads the short one]],
    entries = {
      { title = "A plan", record = "marea.Plan" },
      { title = "marea.sampler", functions = "sampler.lua sampler", as = "sampler" },
    },
  },
  {
    title = "Models",
    text = [[
A model is a tree of modules; its parameters lie in one flat buffer in the order in which they
were declared. `marea train` materializes a recipe's model; a script does so itself.]],
    example = [[
local nn = require("marea").nn
local Pair = nn.class "Pair"
function Pair:init(options)
  self:parameter("scale", { options.width }, { value = 1, decay = false })
  self:child("out", nn.Linear { input = options.width, output = 2 })
end
function Pair:forward(x) return self.out(x:multiply(self.scale)) end
local model = Pair { width = 3 }
model:materialize { seed = 20, dtype = "f32" }
assert(model:count() == 3 + 2 * 3 + 2)]],
    entries = {
      { title = "marea.nn", functions = "nn.lua nn", as = "nn" },
      { title = "nn.Transformer", module = "marea.Transformer", as = "nn.Transformer",
        object = "transformer" },
      { title = "nn.Linear", module = "marea.Linear", as = "nn.Linear", object = "linear" },
      { title = "nn.Embedding", module = "marea.Embedding", as = "nn.Embedding",
        object = "embedding" },
      { title = "nn.LayerNorm", module = "marea.LayerNorm", as = "nn.LayerNorm", object = "norm" },
      { title = "nn.RMSNorm", module = "marea.RMSNorm", as = "nn.RMSNorm", object = "norm" },
      { title = "nn.Dropout", module = "marea.Dropout", as = "nn.Dropout", object = "dropout" },
      { title = "Classes of your own", functions = "nn/module.lua Module", as = "nn",
        only = { "class" } },
      { title = "A module", class = "marea.Module", as = "model",
        without = { "declared", "children", "layer" } },
    },
  },
  {
    title = "Optimizers and schedules",
    text = [[
A recipe's `optimizer` returns one of these; its `schedule` returns a function that gives each
update a factor of `lr`.]],
    entries = {
      { title = "marea.optim", functions = "optim.lua optim", as = "optim" },
      { title = "An optimizer", class = "marea.Optimizer", as = "optimizer", without = { "core" } },
      { title = "marea.schedule", functions = "schedule.lua schedule", as = "schedule" },
    },
  },
  {
    title = "Objectives",
    text = [[
What is averaged over what: the weight of every supervised position. The loss of a window is
sum(weight \* loss) / sum(weight) over the supervised positions of all ranks.]],
    example = [[
local objective = require("marea").objective
local function by_root(sequence) return 1 / math.sqrt(sequence.tokens) end
local unit = objective.product { by_root, objective.scaled_by "cost" }
assert(unit({ id = 1, tokens = 4, cost = 3 }, { step = 1 }) == 1.5)]],
    entries = {
      { title = "Units and terms", record = "marea.Weighting" },
      { title = "A term", record = "marea.Term" },
      { title = "marea.objective", functions = "objective.lua objective", as = "objective" },
      { title = "Units made for a field or a class", functions = "weightings.lua weightings",
        as = "objective", without = { "text", "set_text", "parse" } },
    },
  },
  {
    title = "Windows",
    text = [[
What a recipe's `accumulate(replica, window)` is given: the microbatches of this rank, what is
known of all ranks, and the replica that reduces their gradients. A script makes a replica by
`marea.replicate`, and batches and weights of its own.]],
    example = [[
local marea = require "marea"
local nn, tensor, world = marea.nn, marea.tensor, marea.world()
local model = nn.Linear { input = 3, output = 1 }
model:materialize { seed = 20, dtype = "f32" }
local sgd = marea.optim.SGD(model, { lr = 0.1 })
local replica = marea.replicate(model, {
  loss = function(m, batch) return nn.squared_error(m(batch.x), batch.y):reshape { batch.rows } end,
})
local wanted, rows = tensor.from { { 1 }, { 2 }, { 3 } }, 8
for update = 1, 60 do
  local x = tensor.normal({ rows, 3 }, { seed = update, stream = world:rank() })
  replica:zero_grad()
  local batch = { x = x, y = x:matmul(wanted), rows = rows }
  replica:loss(batch, tensor.full({ rows }, 1 / rows)):backward()   -- reduces: a mean over ranks
  sgd:step()
end
assert(math.abs(model.weight:get(3) - 3) < 1e-4)]],
    entries = {
      { title = "A window", class = "marea.Window", as = "window",
        without = { "count", "share", "sum_of", "release", "session", "factor" } },
      { title = "A sequence in a window", record = "marea.PlacedSequence" },
      { title = "A batch", record = "marea.Batch" },
      { title = "Weights", record = "marea.Weights" },
      { title = "A replica", class = "marea.Replica", as = "replica" },
      { title = "Scopes that send nothing", record = "marea.no_sync" },
    },
  },
  {
    title = "Ranks",
    text = [[
`marea.world()` and groups of it. On one process a world has one rank, and everything works.]],
    example = [[
local marea = require "marea"
local world = marea.world()
local t = marea.tensor.full({ 4 }, world:rank() + 1)
local handle = world:all_reduce_async(t, "sum")   -- other work meanwhile
handle:wait()
assert(t:get(1) == world:size() * (world:size() + 1) / 2)]],
    entries = {
      { title = "The world", class = "marea.group", also = { "marea.World" }, as = "world" },
      { title = "An operation under way", class = "marea.handle", as = "handle" },
    },
  },
  {
    title = "Tensors",
    text = [[
Contiguous, row-major arrays. Nouns ask, verbs return something new, and a verb that ends in `_`
changes its object and returns it.]],
    example = [[
local tensor = require("marea").tensor
local w = tensor.from { { 1, 2 }, { 3, 4 } }
w:requires_gradient_()
w:multiply(w):sum():backward()
assert(table.concat(w:gradient():values(), " ") == "2.0 4.0 6.0 8.0")]],
    entries = {
      { title = "marea.tensor", functions = "annotations/tensor.lua core", as = "tensor",
        only = from_tensor_file },
      { title = "Tensors of random numbers", functions = "annotations/random.lua core",
        as = "tensor", only = { "normal", "uniform" } },
      { title = "A tensor", class = "marea.tensor", as = "tensor",
        from = { "annotations/tensor.lua tensor" } },
      { title = "Operations", as = "tensor", methods = "annotations/operations.lua tensor",
        text = [[
Methods of every tensor; all but those that say so have a gradient. `options` are one table that
ends the call.]] },
    },
  },
  {
    title = "Random numbers",
    text = [[
Streams that depend on a seed and a number, never on time, rank or thread. `marea.random` also
has `normal` and `uniform` of `marea.tensor`.]],
    entries = {
      { title = "marea.random", functions = "annotations/random.lua core", as = "random",
        only = { "stream" } },
      { title = "A stream", class = "marea.stream", as = "stream" },
    },
  },
  {
    title = "Files",
    text = [[
`local core = require "marea.core"` is the engine itself. Its files are whole or not there at
all.]],
    example = [[
local core = require "marea.core"
local path = os.tmpname()
core.safetensors.write(path, { { "w", core.ones { 2, 3 } } }, { made_by = "me" })
local file <close> = core.safetensors.open(path)
assert(file:tensor("w"):total() == 6 and file:metadata().made_by == "me")
core.file.remove(path)]],
    entries = {
      { title = "marea.core.file", functions = "annotations/file.lua file", as = "core.file" },
      { title = "A file of lines", class = "marea.appender", as = "appender" },
      { title = "A folder under construction", class = "marea.staging", as = "staging" },
      { title = "A lock", class = "marea.lock", as = "lock" },
      { title = "marea.core.safetensors", functions = "annotations/store.lua safetensors",
        as = "core.safetensors" },
      { title = "A tensor file", class = "marea.safetensors", as = "file" },
    },
  },
  {
    title = "The engine",
    text = [[
What the library itself is made with, for those who go below it.]],
    entries = {
      { title = "marea.core", functions = "annotations/core.lua core", as = "core",
        also = { "marea.core" } },
      { title = "marea.core.host", functions = "annotations/host.lua host", as = "core.host",
        text = "The makers of tensors once more, for tensors of the CPU whatever device is in " ..
               "use." },
      { title = "Units, reducers and optimizers", functions = "annotations/training.lua core",
        as = "core" },
      { title = "A unit", class = "marea.unit", as = "unit" },
      { title = "A reducer", class = "marea.reducer", as = "reducer" },
      { title = "An optimizer of a unit", class = "marea.optimizer", as = "optimizer" },
      { title = "Scopes and randomness", functions = "annotations/tensor.lua core", as = "core",
        only = { "no_grad" } },
      { functions = "annotations/random.lua core", as = "core", only = { "philox" } },
      { title = "The world's beginning and end", functions = "annotations/group.lua core",
        as = "core" },
      { title = "Corpora in files and in memory", functions = "annotations/store.lua core",
        as = "core" },
      { title = "A corpus of the engine", class = "marea.corpus", as = "corpus" },
      { title = "marea.core.process", functions = "annotations/process.lua core_process",
        as = "core.process" },
      { title = "A child program", class = "marea.process", as = "process" },
      { title = "Measuring", functions = "annotations/bench.lua core", as = "core" },
      { title = "The products of a step", class = "marea.products", as = "products" },
      { title = "Records of operations", record = "marea.operation" },
    },
  },
}
