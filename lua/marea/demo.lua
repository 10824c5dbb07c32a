-- The protocol, step by step: each step starts commands as a user would, and gives verdicts.
--
-- A verdict is {name, good, detail}. Steps never stop the demo: a command that fails, or says
-- something that cannot be read, is a bad verdict with its message.

local core = require "marea.core"
local fault = require "marea.fault"
local json = require "marea.json"
local launch = require "marea.launch"

---@class marea.DemoVerdict
---@field name string
---@field good boolean
---@field detail string

---@class marea.Demo
---@field outputs string folder of all runs
---@field say fun(line: string)
---@field verdicts marea.DemoVerdict[]
local Demo = {}
Demo.__index = Demo

local demo = {}

local time_limit = 120

local function last_line(text)
  local line = ""
  for each in text:gmatch("[^\n]+") do line = each end
  return line
end

--- Starts a command on some ranks and waits for it.
---@param ranks integer? nil: one process without mpirun
---@param ... string words of the command
---@return {code: integer, output: string, errors: string} result
function Demo:run(ranks, ...)
  local words = { ... }
  table.move({ "--outputs", self.outputs }, 1, 2, #words + 1, words)
  local began = core.seconds()
  self.say(("$ marea %s%s"):format(ranks and ("launch -n %d "):format(ranks) or "",
                                   table.concat(words, " ")))
  local code, output, errors = launch.run({ ranks = ranks, time_limit = time_limit }, words)
  self.say(("  exit %d, %.1f s"):format(code, core.seconds() - began))
  return { code = code, output = output, errors = errors }
end

--- The same for a command that must succeed: what it was to leave is then of this demo, and not of
--- an earlier one.
---@param ranks integer?
---@param ... string
function Demo:must(ranks, ...)
  local result = self:run(ranks, ...)
  if result.code == 0 then return end
  fault.raise_at(1, "", "exit %d: %s", result.code, last_line(result.errors))
end

--- Notes a verdict.
---@param name string
---@param good any whether it is good
---@param detail string
function Demo:judge(name, good, detail)
  self.verdicts[#self.verdicts + 1] = { name = name, good = good and true or false,
                                        detail = detail }
end

-- The JSON that a command printed; raises with its message when it printed none.
local function decoded(result)
  local value = json.decode(result.output)
  if type(value) == "table" then return value end
  fault.raise_at(1, "", "exit %d: %s", result.code, last_line(result.errors))
end

local function read_lines(path)
  local list = {}
  for line in core.file.read(path):gmatch("[^\n]+") do
    local value = json.decode(line)
    if type(value) == "table" then list[#list + 1] = value end
  end
  return list
end

local function recipe_path(name)
  local path = "recipes/" .. name .. ".lua"
  local root = launch.root()
  return root == os.getenv("PWD") and path or root .. "/" .. path
end

-- --- steps ------------------------------------------------------------------------------------

local steps = {}

function steps.check_loss(self)
  local values = decoded(self:run(2, "check-loss", "--json"))
  local shown = {}
  for i, row in ipairs(values.rows) do shown[i] = ("%.4g"):format(row.value) end
  self:judge("check-loss: 2, 2.5, parts 0.5 and 4.5, 1.25", values.pass,
             table.concat(shown, "  "))
end

function steps.exercise(self)
  local report = decoded(self:run(2, "exercise", "--answer", "--json"))
  local engine = report.engine
  self:judge("exercise: the mean of means stays, the token mean moves", report.pass,
             ("%.6f stays, %.6f becomes %.6f"):format(
               engine.mean_of_means.after, engine.token_mean.before, engine.token_mean.after))
end

local function controls_detail(controls)
  local detected, apart, missed = 0, 0, {}
  for _, entry in ipairs(controls) do
    if entry.told_apart then
      apart = apart + 1
      if entry.detected then detected = detected + 1 else missed[#missed + 1] = entry.name end
    end
  end
  return detected == apart, ("%d of %d detected%s"):format(detected, apart,
    #missed > 0 and "; missed: " .. table.concat(missed, ", ") or "")
end

local function parity_of(self, name)
  local report = decoded(self:run(2, "parity", recipe_path(name), "--json"))
  for _, dtype in ipairs { "f32", "f64" } do
    local result = report[dtype]
    self:judge(("parity %s %s"):format(name, dtype), result.failing == 0 and
               report.equal_on_all_ranks,
               ("%d of %d components, largest error %.3g"):format(
                 report.components - result.failing, report.components, result.max_abs))
  end
  local _, detail = controls_detail(report.controls)
  self:judge(("controls of %s"):format(name), report.controls_pass, detail)
end

function steps.parity_minimum(self) parity_of(self, "minimum") end

function steps.parity_verses(self) parity_of(self, "verses") end

-- The parts of a comparison by name: {equal, detail}.
local function compare(self, a, b)
  local parts = {}
  for _, part in ipairs(decoded(self:run(nil, "compare", a, b, "--json")).parts) do
    local detail = part.first or "difference 0"
    if part.max_abs and part.max_abs > 0 then
      detail = ("%s; largest difference %.3g"):format(detail, part.max_abs)
    end
    parts[part.part] = { equal = part.equal, detail = detail }
  end
  return parts
end

local function whole_and_resumed(self, whole, resumed, ...)
  local recipe = recipe_path "minimum"
  local control = { ... }
  self:must(2, "train", recipe, "--continuous", "--run", whole, table.unpack(self.settings))
  self:must(2, "train", recipe, "--run", resumed, table.unpack(self.settings))
  local words = { "train", recipe, "--resume", "latest", "--run", resumed }
  table.move(self.settings, 1, #self.settings, #words + 1, words)
  table.move(control, 1, #control, #words + 1, words)
  self:must(2, table.unpack(words))
  return compare(self, whole, resumed)
end

function steps.resume(self)
  self.settings = { "evaluate_every=25" }
  local found = whole_and_resumed(self, "minimum", "minimum-resumed")
  for _, part in ipairs { "lock", "parameters", "optimizer", "random states", "position",
                          "history" } do
    self:judge("resume at 50: " .. part, found[part].equal, found[part].detail)
  end
end

function steps.reseeded_resume(self)
  self.settings = { "dropout=0.1" }
  local found = whole_and_resumed(self, "minimum-dropout", "minimum-reseeded",
                                  "--control", "reseed-streams", "--control", "restart-updates")
  for _, part in ipairs { "history", "parameters" } do
    self:judge(("re-seeded resume: its %s differ%s"):format(part, part == "history" and "s" or ""),
               not found[part].equal, found[part].detail)
  end
end

function steps.empty_window(self)
  local found = decoded(self:run(2, "demo", "--part", "empty-window"))
  self:judge("an empty window is refused by both ranks alike", found.good, found.detail)
end

function steps.empty_rank(self)
  local found = decoded(self:run(2, "demo", "--part", "empty-rank"))
  self:judge("a locally empty rank equals one process", found.good, found.detail)
end

local function evaluate(self, ranks, recipe, run, ...)
  return decoded(self:run(ranks, "evaluate", recipe_path(recipe), "--run", run, "--json", ...))
end

function steps.evaluate(self)
  local one = evaluate(self, nil, "minimum", "minimum")
  local two = evaluate(self, 2, "minimum", "minimum")
  local equal = one.loss == two.loss and one.accuracy == two.accuracy and one.tokens == two.tokens
  self:judge("evaluate is the same on 1 and 2 ranks", equal,
             ("loss %.17g and %.17g"):format(one.loss, two.loss))
  local card = json.decode(core.file.read(self.outputs .. "/minimum/corpus-card.json"))
  local chain, commonest = card.notes.test.loss, card.notes.test.commonest_share
  self:judge("minimum learned its chain, and no more than it holds",
             one.loss < math.log(4) and one.loss > chain and one.accuracy > commonest,
             ("test loss %.4f between %.4f and ln 4 = %.4f; accuracy %.4f above %.4f"):format(
               one.loss, chain, math.log(4), one.accuracy, commonest))
end

local function loss_fell(self, name)
  local lines = read_lines(("%s/%s/metrics.jsonl"):format(self.outputs, name))
  local losses = {}
  for _, line in ipairs(lines) do losses[#losses + 1] = line.loss_per_token end
  local first, last = losses[1], losses[#losses]
  self:judge("loss fell: " .. name, last < first,
             ("%.4f to %.4f in %d updates"):format(first, last, #losses))
end

function steps.loss_minimum(self) loss_fell(self, "minimum") end

function steps.verses(self)
  self:must(2, "train", recipe_path "verses", "--run", "verses")
  loss_fell(self, "verses")
end

function steps.report(self)
  local weighed = self:run(nil, "weigh", recipe_path "minimum")
  local made = self:run(nil, "report", "minimum")
  local path = self.outputs .. "/minimum/report.html"
  local page = made.code == 0 and core.file.read(path) or ""
  local _, figures = page:gsub("<svg", "")
  self:judge("report: one page with figures", weighed.code == 0 and made.code == 0 and figures > 0,
             made.code == 0 and ("%s, %d figures"):format(path, figures) or last_line(made.errors))
end

function steps.sample(self)
  local function greedy(ranks)
    return self:run(ranks, "sample", recipe_path "verses", "--greedy", "--prompt", "And ",
                    "--tokens", "40", "--raw").output
  end
  local one, two = greedy(nil), greedy(2)
  self:judge("sample: the same bytes on 1 and 2 ranks", one == two and #one > 0,
             ("%q"):format((one:gsub("%s+", " "))))
end

function steps.checkpoints(self)
  local result = self:run(nil, "checkpoints")
  self:judge("checkpoints: all verify", result.code == 0, last_line(result.output))
end

function steps.clean(self)
  local before = core.file.list(self.outputs)
  local result = self:run(nil, "clean")
  local after = core.file.list(self.outputs)
  self:judge("clean: lists, and removes nothing unasked", result.code == 0 and
             table.concat(before, "\n") == table.concat(after, "\n"), last_line(result.output))
end

local order = { "check_loss", "exercise", "resume", "parity_minimum", "loss_minimum", "evaluate",
                "report", "reseeded_resume", "empty_window", "empty_rank", "verses",
                "parity_verses", "sample", "checkpoints", "clean" }

--- Runs all steps.
---@param options {outputs: string, say: fun(line: string)}
---@return marea.DemoVerdict[] verdicts
function demo.run(options)
  local self = setmetatable({ outputs = options.outputs, say = options.say, verdicts = {} }, Demo)
  for _, name in ipairs(order) do
    local good, problem = pcall(steps[name], self)
    if not good then
      self:judge(name:gsub("_", " "), false, (fault.of(problem)))
    end
  end
  return self.verdicts
end

return demo
