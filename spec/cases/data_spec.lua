-- Public cases of data: a resume under other data is refused.

local core = require "marea.core"
local json = require "marea.json"
local marea_training = require "marea.training"
local recipe_of = require "marea.recipe"
local cases = dofile "spec/support/cases.lua"
local scratch = dofile "spec/support/scratch.lua"

local recipe = [[
local marea = require "marea"
return marea.recipe {
  name = "rows",
  config = { ranks = 1, updates = 8, batch_size_per_rank = 1 },
  corpus = function()
    return marea.corpus.jsonl { path = "rows.jsonl", vocabulary = 10, begin = 0, split = "split" }
  end,
  model = function()
    return marea.nn.Transformer { vocabulary = 10, context = 4, width = 4, hidden = 4, heads = 1,
                                  layers = 1 }
  end,
  optimizer = function(parameters, c) return marea.optim.SGD(parameters, { lr = c.lr }) end,
  plan = marea.sampler.shuffled,
}
]]

local function row(number) return ('{"split": "train", "tokens": [%d, 9]}\n'):format(number) end

-- By a refusal: the lock holds hashes of the corpus, of the plan step by step, of the config.
describe("B20: eight rows, stopped after four", function()
  local changes = {
    { "a: rows 2 and 5 swapped", "corpus", function(rows) rows[2], rows[5] = rows[5], rows[2] end },
    { "b: a byte of row 6 changed", "corpus", function(rows) rows[6] = rows[6]:gsub("9", "8") end },
    { "c: a ninth row", "corpus", function(rows) rows[9] = row(0) end },
    { "d: another shuffle seed", "config.seed", function() end, "seed=21" },
  }

  local function train(folder, rows, options, ...)
    scratch.write(folder .. "/rows.lua", recipe)
    scratch.write(folder .. "/rows.jsonl", table.concat(rows))
    options.outputs, options.accept = folder, options.accept or {}
    return marea_training.run(recipe_of.require(folder .. "/rows.lua", { ... }, 1), options)
  end

  local function eight()
    local rows = {}
    for number = 1, 8 do rows[number] = row(number) end
    return rows
  end

  for _, case in ipairs(changes) do
    local name, field, change, word = table.unpack(case)
    it(name .. ": refused, naming what differs; accepted, the checkpoint says so", function()
      local folder <close> = scratch.folder()
      local rows = eight()
      train(folder.path, rows, { until_update = 4 })
      change(rows)
      local message, code = cases.refusal(train, folder.path, rows, { resume = "latest" }, word)
      assert.equal(3, code, message)
      assert.truthy(message:find(field .. ": ", 1, true), message)
      if word then assert.truthy(message:find("config.seed: 20 then, 21 now", 1, true), message) end
      local accept = { field }
      if message:find("\n  plan: ", 1, true) and field ~= "plan" then
        table.insert(accept, "plan") -- a ninth row, or a seed, makes other windows too
      end
      assert.equal(field == "config.seed" or #rows == 9, #accept == 2)
      local result = train(folder.path, rows, { resume = "latest", accept = accept }, word)
      assert.equal(8, result.update)
      local state = json.decode(core.file.read(result.checkpoint .. "/state.json"))
      table.sort(accept)
      assert.same(accept, state.lock.accepted)
    end)
  end

  it("unchanged: accepted as it is", function()
    local folder <close> = scratch.folder()
    train(folder.path, eight(), { until_update = 4 })
    assert.equal(8, train(folder.path, eight(), { resume = "latest" }).update)
  end)
end)
