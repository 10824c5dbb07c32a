-- Growth: what a token costs as sequences get longer, the model wider, and the sequences of a
-- window more and of uneven length. The recipe's own update is measured, on a model with its
-- options but for what varies, and on random symbols.
--
-- Points of a family take turns, in the other order every other time, so that what disturbs the
-- machine for a while disturbs all alike.

local core = require "marea.core"
local corpus_of = require "marea.corpus"
local fault = require "marea.fault"
local Session = require "marea.session"
local statistics = require "marea.bench.statistics"
local subject = require "marea.bench.subject"
local trainer_of = require "marea.trainer"

local growth = {}

--- Layers of every model: what is measured here grows with them in proportion.
growth.layers = 2

--- Width where it does not vary.
growth.width = 256

local warm_up, least_turns = 2, 3
local repeat_seconds, most_repeats = 0.02, 20 -- of a point in a turn

---@class marea.GrowthPoint
---@field family "length"|"width"|"sequences"
---@field value integer what varies
---@field lengths integer[] of the sequences of each rank
---@field width integer
---@field uneven? boolean the next point has as many tokens, in sequences of equal length

---@class marea.GrowthRow
---@field family string
---@field value integer
---@field width integer
---@field sequences integer of each rank
---@field shortest integer
---@field longest integer
---@field tokens integer of all ranks
---@field ms_per_token marea.Spread
---@field gflop_per_token number of the products; attention's over all pairs of rows
---@field gflops number per second
---@field step_to_floor marea.Spread how much more it takes than its products alone
---@field uneven_to_equal? marea.Spread of pairs

local function equal(count, length)
  local lengths = {}
  for i = 1, count do lengths[i] = length end
  return lengths
end

local least, most = 16, 128 -- of uneven lengths

--- Lengths from 16 to 128, evenly spread and in mixed order; their mean is 72, exactly.
---@param count integer a power of two; a single one is 72
---@return integer[] lengths
function growth.uneven(count)
  if count == 1 then return { (least + most) // 2 } end
  local lengths, place = {}, 0
  for i = 1, count do
    local from_below = math.min(place, count - 1 - place)
    local length = least + (most - least) * from_below // (count - 1)
    lengths[i] = from_below == place and length or least + most - length
    place = (place + (count // 2 | 1)) % count -- an odd stride meets every place once
  end
  return lengths
end

--- The points of the whole table, family by family.
---@return marea.GrowthPoint[][] families
function growth.families()
  local by_length, by_width, by_sequences = {}, {}, {}
  for power = 6, 11 do
    local length = 1 << power
    by_length[#by_length + 1] = { family = "length", value = length, width = growth.width,
                                  lengths = equal(2048 // length, length) }
  end
  for power = 6, 10 do
    by_width[#by_width + 1] = { family = "width", value = 1 << power, width = 1 << power,
                                lengths = equal(4, 128) }
  end
  for power = 0, 6 do
    local count = 1 << power
    for _, uneven in ipairs { true, false } do
      by_sequences[#by_sequences + 1] = {
        family = "sequences", value = count, width = growth.width, uneven = uneven and count > 1,
        lengths = uneven and growth.uneven(count) or equal(count, (least + most) // 2) }
    end
  end
  return { by_length, by_width, by_sequences }
end

-- --- sessions -----------------------------------------------------------------------------------

--- The options of a session's model, and the size of a head, which does not vary.
--- Errors: code 2 for a model that is no nn.Transformer, or has heads whose size divides no width.
---@param session marea.Session of the recipe, built
---@return marea.TransformerOptions options
---@return integer head_size
function growth.options_of(session)
  local o = session.model.options
  if not o or not o.heads or not o.vocabulary then
    fault.raise_at(2, "", "--growth varies models of nn.Transformer; this recipe's is another")
  end
  local size = o.width // o.heads
  if 64 % size ~= 0 then
    fault.raise_at(2, "", "--growth keeps the size of a head, which must divide 64; this " ..
                   "recipe's is %d", size)
  end
  return o, size
end

local function random_corpus(lengths, ranks, options)
  local stream, list = core.stream(20, 0), {}
  for i = 1, #lengths * ranks do
    local inputs, targets = {}, {}
    for t = 1, lengths[(i - 1) % #lengths + 1] do
      inputs[t] = stream:integer(options.vocabulary) - 1
      targets[t] = stream:integer(options.classes) - 1
    end
    list[i] = { inputs = inputs, targets = targets, split = "train" }
  end
  return corpus_of.from { sequences = list,
                          vocabulary = math.max(options.vocabulary, options.classes) }
end

local function plan_of(count, ranks)
  local window = {}
  for r = 1, ranks do
    window[r] = { {} }
    for i = 1, count do window[r][1][i] = (r - 1) * count + i end
  end
  return { window }
end

local function longest(lengths) return math.max(table.unpack(lengths)) end

local function session_at(point, session)
  local given, head_size = growth.options_of(session)
  local options = {}
  for name, value in pairs(given) do options[name] = value end
  options.layers, options.width = growth.layers, point.width
  options.hidden = given.hidden * point.width // given.width
  options.heads, options.context = point.width // head_size, longest(point.lengths)
  local recipe = setmetatable({
    model = function() return require("marea.nn").Transformer(options) end,
  }, { __index = session.recipe })
  local ranks = session.world:size()
  return Session.open(recipe, {
    world = session.world, corpus = random_corpus(point.lengths, ranks, options),
    plan = plan_of(#point.lengths, ranks) }):build()
end

-- --- turns --------------------------------------------------------------------------------------

---@class marea.GrowthSubject one point, ready to be measured
---@field point marea.GrowthPoint
---@field session marea.Session
---@field repeats integer
---@field step number[] milliseconds of each turn
---@field floor number[]

local function median_of(world, count, action)
  world:barrier()
  return subject.largest(world, subject.median(count, action))
end

local function prepare(point, session)
  local made = session_at(point, session)
  local self = { point = point, session = made, step = {}, floor = {},
                 advance = subject.advancer(trainer_of.new(made)),
                 products = subject.products(made) }
  self.pace = median_of(made.world, warm_up, self.advance) / 1000
  self.repeats = math.max(1, math.min(most_repeats, math.ceil(repeat_seconds / self.pace)))
  return self
end

local function measure_once(self, turn)
  local world = self.session.world
  self.step[turn] = median_of(world, self.repeats, self.advance)
  self.floor[turn] = median_of(world, self.repeats, function() subject.run(self.products) end)
end

local function take_turns(subjects, world, seconds)
  local began, turn = core.seconds(), 0
  repeat
    turn = turn + 1
    for i = 1, #subjects do
      measure_once(subjects[turn % 2 == 1 and i or #subjects + 1 - i], turn)
    end
    local left = subject.largest(world, seconds - (core.seconds() - began))
  until left <= 0 and turn >= least_turns
end

local function row_of(self)
  local point, world = self.point, self.session.world
  local operations = subject.operations(self.products)
  local tokens = subject.tokens(self.session)
  local gflop = (operations.single + operations.batched) * world:size() / 1e9
  local per_token = {}
  for i, ms in ipairs(self.step) do per_token[i] = ms / tokens end
  return {
    family = point.family, value = point.value, width = point.width, sequences = #point.lengths,
    shortest = math.min(table.unpack(point.lengths)), longest = longest(point.lengths),
    tokens = tokens, ms_per_token = statistics.spread(per_token),
    gflop_per_token = gflop / tokens, gflops = gflop / statistics.median(self.step) * 1000,
    step_to_floor = statistics.ratio(self.step, self.floor),
  }
end

local function measure_family(points, session, seconds)
  local subjects, rows = {}, {}
  for i, point in ipairs(points) do subjects[i] = prepare(point, session) end
  take_turns(subjects, session.world, seconds)
  for i, self in ipairs(subjects) do
    rows[i] = row_of(self)
    if self.point.uneven then
      local a, b = self.step, subjects[i + 1].step
      rows[i].uneven_to_equal = statistics.ratio(a, b)
    end
  end
  for _, self in ipairs(subjects) do self.session.driver:close() end
  return rows
end

--- Measures on all ranks, which all call it.
--- Errors: as growth.options_of.
---@param session marea.Session of the recipe, built
---@param seconds number that turns take in all, about; each family takes at least three
---@param families? marea.GrowthPoint[][] (default: those of growth.families)
---@return {layers: integer, head_size: integer, rows: marea.GrowthRow[]} table
function growth.measure(session, seconds, families)
  families = families or growth.families()
  local _, head_size = growth.options_of(session)
  local found = { layers = growth.layers, head_size = head_size, rows = {} }
  for _, points in ipairs(families) do
    local rows = measure_family(points, session, seconds / #families)
    table.move(rows, 1, #rows, #found.rows + 1, found.rows)
    collectgarbage()
  end
  return found
end

return growth
