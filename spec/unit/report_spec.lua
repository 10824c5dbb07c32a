-- The report: a page from stored JSON, and from nothing else.

local core = require "marea.core"
local fault = require "marea.fault"
local json = require "marea.json"
local report = require "marea.report"
local scratch = dofile "spec/support/scratch.lua"
local paper_run = dofile "spec/support/paper_run.lua"

if not os.execute("command -v gnuplot >/dev/null") then
  pending("gnuplot, which the wrapper installs, is not there")
  return
end

local folder, outputs

before_each(function()
  folder = scratch.folder()
  outputs = folder.path .. "/outputs"
end)

after_each(function() getmetatable(folder).__close() end)

local function write(name, change) paper_run.write(outputs .. "/" .. name, change) end

local function page_of(names, without)
  return report.make(names, { outputs = outputs, without = without }).html
end

local function refusal(names, without)
  local good, raised = pcall(page_of, names, without)
  assert.is_false(good, "a page was made")
  return fault.of(raised)
end

local function has(page, text) return page:find(text, 1, true) ~= nil end

local function count(page, pattern) return select(2, page:gsub(pattern, "")) end

-- The part of a page between the section's beginning and its end.
local function section(page, id)
  return page:match('<section id="' .. id .. '">.-</section>') or error("no section " .. id)
end

local figures = { "loss", "validation", "gradient", "tokens", "rank-weights", "position-weights",
                  "parameter-errors", "gate-shares" }

describe("a report", function()
  it("has every figure for wide and for narrow pages, with its title and description", function()
    write "tide"
    local page = page_of { "tide" }
    for _, name in ipairs(figures) do
      for _, form in ipairs { "wide", "narrow" } do
        local id = name .. "-" .. form
        local svg = page:match('<svg class="' .. form .. '" role="img" aria%-labelledby="' ..
          id:gsub("%-", "%%-") .. "%-title.-</svg>")
        assert.is_string(svg, id)
        assert.truthy(svg:match('<title id="' .. id:gsub("%-", "%%-") .. '%-title">%w'), id)
        assert.truthy(svg:match('<desc id="' .. id:gsub("%-", "%%-") .. '%-text">%w'), id)
        assert.truthy(svg:find("<path") or svg:find("<polygon"), id)
      end
    end
    assert.equal(2 * #figures, count(page, "<svg "))
    assert.equal(count(page, "<figure>"), #figures)
  end)

  it("shows what is stored, in tables beside the figures", function()
    write "tide"
    local page = page_of { "tide" }
    assert.truthy(has(section(page, "loss"), "<td class=\"number\">1.0833</td>"))
    assert.truthy(has(section(page, "loss"), "from 2.0000 at update 1 to 1.0833 at update 12"))
    assert.truthy(has(section(page, "validation"), "<td class=\"number\">1.6667</td>"))
    assert.truthy(has(section(page, "gradient"), "<td class=\"number\">0.1667</td>"))
    assert.truthy(has(section(page, "tokens"), "<td class=\"number\">432</td>"))
    assert.truthy(has(section(page, "tokens"), "75.00 %"))
    local times = '1</th><td class="number">1.0</td><td class="number">2.0</td>' ..
      '<td class="number">4.5</td><td class="number">2.0</td><td class="number">0.5</td>' ..
      '<td class="number">0.5</td><td class="number">0.0</td><td class="number">10.5</td>' ..
      '<td class="number">2.0</td>'
    assert.truthy(has(section(page, "time"), times))
    assert.truthy(has(section(page, "weights"), "3 : 1"))
    assert.truthy(has(section(page, "weights"), "<td class=\"number\">2.000</td>"))
    assert.truthy(has(section(page, "parity"), "<td class=\"number\">5.00e-08</td>"))
    assert.truthy(has(section(page, "parity"), "10⁻⁶ + 10⁻⁴ |b|"))
    assert.truthy(has(section(page, "parity"), "it is the declared one"))
    assert.truthy(has(section(page, "config"), "<td>0.05</td>"))
    assert.truthy(has(section(page, "config"), "<td>ffffffffffffffff</td>"))
    assert.truthy(has(section(page, "versions"), "<td>OpenBLAS</td>"))
    assert.truthy(has(section(page, "again"), "marea launch -n 2 train recipes/tide.lua lr=0.05\n"))
    assert.truthy(has(section(page, "verdicts"), "1 of 1 detected"))
    assert.truthy(has(page, "All 8 verdicts are good."))
  end)

  it("is the same bytes from the same JSON, wherever it lies", function()
    write "tide"
    local page = page_of { "tide" }
    assert.equal(page, page_of { "tide" })
    outputs = folder.path .. "/elsewhere"
    write "tide"
    assert.equal(page, page_of { outputs .. "/tide/" })
    assert.is_false(has(page, folder.path))
    assert.is_false(has(page, "/somewhere"))
    assert.is_false(has(page:lower(), "gnuplot 5"))
    assert.is_false(has(page:lower(), "gnuplot_"))
    assert.is_false(has(page, "<script"))
    assert.is_false(has(page, "http://www.w3.org/1999/xlink"))
  end)

  it("is other bytes when any file says something else", function()
    write "tide"
    local page = page_of { "tide" }
    for name, change in pairs {
      ["run.json"] = function(file) file.blas = "another" end,
      ["lock.json"] = function(file) file.corpus = ("0"):rep(64) end,
      ["corpus-card.json"] = function(file) file.vocabulary = 7 end,
      ["metrics.jsonl"] = function(file) file[4].loss_per_token = 3 end,
      ["rank-1.jsonl"] = function(file) file[4].loss_sum = 3 end,
      ["parity.json"] = function(file) file.parameters[1].f32.worst.error = 3e-8 end,
      ["weigh.json"] = function(file) file.objectives[2].ranks[1].share = 0.4 end,
      ["evaluate.json"] = function(file) file.loss = 1.26 end } do
      write("tide", function(files) change(files[name]) end)
      assert.is_true(page ~= page_of { "tide" }, name)
    end
  end)

  it("draws the values: a higher loss ends higher", function()
    local function last_y()
      local svg = page_of({ "tide" }):match('aria%-labelledby="loss%-wide%-title.-</svg>')
      return tonumber(svg:match("series%-1[^>]-d='M[^']-,([%d.]+)%s*'/>"))
    end
    write "tide"
    local low = last_y()
    write("tide", function(files) files["metrics.jsonl"][13].loss_per_token = 1.9 end)
    assert.is_true(last_y() < low - 50, "SVG counts downwards")
  end)

  it("needs no colour: series differ in dashes and markers", function()
    write "tide"
    write("ebb", function(files) files["metrics.jsonl"][3].loss_per_token = 1.8 end)
    local svg = page_of({ "tide", "ebb" }):match('aria%-labelledby="loss%-wide%-title.-</svg>')
    assert.truthy(svg:match("stroke='var%(%-%-series%-1,#%x+%)' d="))
    assert.truthy(svg:match("stroke='var%(%-%-series%-2,#%x+%)' stroke%-dasharray='[%d.,]+' d="))
    assert.truthy(svg:match("href='#loss%-wide%-Pt6'"))
    assert.truthy(svg:match("href='#loss%-wide%-Pt8'"))
    for reference in svg:gmatch("href='#([%w-]+)'") do
      assert.equal(1, count(svg, "id='" .. reference:gsub("%-", "%%-") .. "'"), reference)
    end
  end)
end)

describe("a report of unusual runs", function()
  local function resize(files, ranks)
    local function tokens_of()
      local list = {}
      for r = 1, ranks do list[r] = 10 * r end
      return list
    end
    files["run.json"].world, files["parity.json"].world = ranks, ranks
    files["weigh.json"].world, files["weigh.json"].rank_tokens = ranks, tokens_of()
    for _, entry in ipairs(files["weigh.json"].objectives) do
      for r = 1, ranks do
        entry.ranks[r] = { rank = r - 1, tokens = 10 * r, share = 1 / ranks, per_token = 0.1 / r }
      end
      for r = ranks + 1, #entry.ranks do entry.ranks[r] = nil end
    end
    for _, line in ipairs(files["metrics.jsonl"]) do
      if line.rank_tokens then line.rank_tokens = tokens_of() end
    end
    for r = 1, ranks do
      files[("rank-%d.jsonl"):format(r - 1)] = { { update = 1, tokens = 10 * r } }
    end
  end

  it("has one update, on one rank", function()
    write("tide", function(files)
      resize(files, 1)
      files["metrics.jsonl"] = { files["metrics.jsonl"][1], files["metrics.jsonl"][7] }
    end)
    local page = page_of { "tide" }
    assert.truthy(has(section(page, "loss"), "from 2.0000 at update 1 to 2.0000 at update 1"))
    assert.equal(2 * #figures, count(page, "<svg "))
    assert.is_false(has(section(page, "verdicts"), "on all ranks"))
  end)

  it("has more ranks than a figure tells apart, and many updates and parameters", function()
    write("tide", function(files)
      resize(files, 20)
      local lines, first = {}, files["metrics.jsonl"][1]
      for u = 1, 2000 do
        lines[u] = setmetatable({ update = u, loss_per_token = 1 + u % 5 }, { __index = first })
        for key, value in pairs(first) do lines[u][key] = rawget(lines[u], key) or value end
      end
      lines[2001] = files["metrics.jsonl"][7]
      files["metrics.jsonl"] = lines
      local parameters = files["parity.json"].parameters
      for i = 4, 60 do
        parameters[i] = { name = "layer." .. i, count = 4, shape = { 4 }, max_gradient = 1,
                          f32 = parameters[1].f32, f64 = parameters[1].f64 }
      end
    end)
    local page = page_of { "tide" }
    assert.truthy(has(section(page, "tokens"), "least of a rank"))
    assert.truthy(has(section(page, "loss"), "is the mean of up to 5 updates"))
    assert.truthy(has(section(page, "gradient"), "is the largest of up to 5 updates"))
    assert.truthy(has(section(page, "parity"), "The 40 parameters nearest to their gates, of 59."))
    assert.truthy(has(section(page, "parity"), '<th scope="row">layer.60</th>'))
    assert.is_nil(page:find('id="rank-weights-wide-title"', 1, true))
    assert.truthy(has(section(page, "weights"), "rank 19"))
    assert.is_true(#page < 700000, #page)
  end)

  it("diverged: what is not finite is neither drawn nor left out silently", function()
    write("tide", function(files)
      for _, line in ipairs(files["metrics.jsonl"]) do
        if line.split then line.loss = 0 / 0 end
        line.grad_norm = line.grad_norm and 1 / 0
      end
      files["evaluate.json"].loss = 0 / 0
    end)
    local message, code = refusal { "tide" }
    assert.equal(2, code)
    assert.truthy(has(message, "no validation has a finite loss"), message)
    assert.truthy(has(message, "no update has a finite gradient norm"), message)
    local page = page_of({ "tide" }, { "validation", "gradient" })
    assert.truthy(has(page, "the loss of the test split is not finite"))
  end)
end)

describe("a report of several runs", function()
  it("overlays their curves and sets their configs side by side", function()
    write "tide"
    write("ebb", function(files)
      files["run.json"].config.lr = 0.2
      files["parity.json"], files["weigh.json"] = nil, nil
      for _, line in ipairs(files["metrics.jsonl"]) do
        if line.loss_per_token then line.loss_per_token = line.loss_per_token + 0.5 end
      end
    end)
    local page = page_of { "tide", "ebb" }
    for _, id in ipairs { "loss", "validation", "gradient" } do
      local part = section(page, id)
      assert.truthy(has(part, ">tide</text>"), id)
      assert.truthy(has(part, ">ebb</text>"), id)
      assert.truthy(part:match('scope="col">tide</th><th class="number" scope="col">ebb</th>'), id)
    end
    assert.truthy(has(section(page, "loss"), "tide 2.0000 to 1.0833; ebb 2.5000 to 1.5833"))
    local config = section(page, "config")
    assert.truthy(config:match("lr <span[^>]*>%(differs%)</span></th><td>0.05</td><td>0.2</td>"))
    assert.equal(1, count(config, "%(differs%)"))
    assert.truthy(has(page, "marea report tide ebb"))
  end)

  it("tells two of one name apart", function()
    write "tide"
    paper_run.write(folder.path .. "/other/tide")
    assert.truthy(has(page_of { "tide", folder.path .. "/other/tide" }, ">tide (2)</text>"))
  end)

  it("refuses more than a figure can tell apart", function()
    write "tide"
    local names = {}
    for i = 1, 9 do names[i] = "tide" end
    local message, code = refusal(names)
    assert.equal("a figure tells 8 runs apart, got 9", message)
    assert.equal(2, code)
  end)
end)

describe("a measurement that is missing", function()
  local missing = {
    { "weights", "weigh.json", "weigh.json is not there",
      "marea weigh recipes/tide.lua lr=0.05 --outputs %s\n" },
    { "parity", "parity.json", "parity.json is not there",
      "marea launch -n 2 parity recipes/tide.lua lr=0.05 --outputs %s\n" },
    { "evaluation", "evaluate.json", "evaluate.json is not there",
      "marea evaluate recipes/tide.lua lr=0.05 --outputs %s\n" },
    { "tokens", "rank-1.jsonl", "rank-1.jsonl is not there",
      "marea launch -n 2 train recipes/tide.lua lr=0.05 --outputs %s\n" },
  }

  for _, row in ipairs(missing) do
    local part, file, problem, command = table.unpack(row)
    it("is an error with the command that makes it: " .. part, function()
      write("tide", function(files) files[file] = nil end)
      local message, code = refusal { "tide" }
      assert.equal(2, code)
      assert.truthy(has(message, problem), message)
      assert.truthy(has(message, command:format(outputs)), message)
      assert.equal(("marea report tide --without %s --outputs %s"):format(part, outputs),
                   message:match("a report without them: ([^\n]*)$"))
      local page = page_of({ "tide" }, { part })
      assert.truthy(has(page, "Left out on request (--without): " .. part .. "."))
      assert.is_nil(page:find('<section id="' .. part .. '"'))
      assert.truthy(has(page, "marea report tide --without " .. part .. "\n") or
                    has(page, "marea report tide --without " .. part .. "</code>"))
    end)
  end

  it("is left out by a command that repeats what was left out already", function()
    write("tide", function(files) files["weigh.json"], files["parity.json"] = nil, nil end)
    write("ebb", function(files) files["evaluate.json"] = nil end)
    local message = refusal({ "tide", "ebb" }, { "validation", "parity" })
    assert.equal(("marea report tide ebb --without validation --without weights --without " ..
                  "parity --without evaluation --outputs %s"):format(outputs),
                 message:match("a report without them: ([^\n]*)$"))
    os.remove(outputs .. "/tide/lock.json") -- which no report can do without
    assert.is_nil(refusal({ "tide" }):find("a report without them", 1, true))
  end)

  it("is one line in metrics too: validation, and losses", function()
    write("tide", function(files)
      local kept = {}
      for _, line in ipairs(files["metrics.jsonl"]) do
        if not line.split then kept[#kept + 1] = line end
      end
      files["metrics.jsonl"] = kept
    end)
    local message, code = refusal { "tide" }
    assert.equal(2, code)
    assert.truthy(has(message, "config.evaluate_every is not set"), message)
    assert.truthy(has(message, "train recipes/tide.lua lr=0.05 evaluate_every=1 "), message)
    assert.is_nil(page_of({ "tide" }, { "validation" }):find('<section id="validation"'))
    write("tide", function(files)
      for _, line in ipairs(files["metrics.jsonl"]) do line.loss_per_token = nil end
    end)
    message, code = refusal { "tide" }
    assert.equal(2, code)
    assert.truthy(has(message, "no update has a loss per token"), message)
  end)

  it("is asked of the runs that are overlaid as well, and all are named at once", function()
    write "tide"
    write("ebb", function(files) files["evaluate.json"], files["lock.json"] = nil, nil end)
    local message, code = refusal { "tide", "ebb" }
    assert.equal(2, code)
    assert.truthy(has(message, "/ebb/evaluate.json is not there"), message)
    assert.truthy(has(message, "/ebb/lock.json is not there"), message)
    assert.truthy(has(message, "marea prepare recipes/tide.lua lr=0.05 --run ebb"), message)
  end)

  it("of time is left out where older logs have none", function()
    write("tide", function(files)
      for _, line in ipairs(files["rank-1.jsonl"]) do line.phases = nil end
    end)
    assert.is_nil(page_of({ "tide" }):find('<section id="time"', 1, true))
  end)

  it("in an older parity.json is told too: errors by parameter", function()
    write("tide", function(files) files["parity.json"].parameters = nil end)
    local message = refusal { "tide" }
    assert.truthy(has(message, "parity.json has no errors by parameter"), message)
  end)

  it("is no run at all: what has no run.json", function()
    scratch.write(outputs .. "/plain/plan.json", "{}")
    local message, code = refusal { "plain" }
    assert.equal("plain holds no run that was trained: marea train RECIPE.lua makes one", message)
    assert.equal(2, code)
    message, code = refusal { "nowhere" }
    assert.equal(2, code)
    assert.truthy(has(message, "there is no run nowhere"))
  end)
end)

describe("a measurement of something else", function()
  for name, change in pairs {
    objective = function(files) files["parity.json"].objective = "per_sequence" end,
    ranks = function(files) files["parity.json"].world = 3 end,
    reduction = function(files) files["parity.json"].reduction = "sum" end,
    window = function(files) files["weigh.json"].step = 2 end,
    ["tokens of the ranks"] = function(files) files["weigh.json"].rank_tokens = { 13, 36 } end,
  } do
    it("is refused: " .. name, function()
      write("tide", change)
      local message, code = refusal { "tide" }
      assert.equal(3, code)
      assert.truthy(has(message, "is of another computation than the run: " .. name), message)
    end)
  end
end)

describe("damage", function()
  for name, change in pairs {
    ["run.json"] = function() return "{" end,
    ["lock.json"] = function() return "[]" end,
    ["weigh.json"] = function() return "{}" end,
    ["metrics.jsonl"] = function() return '{"update":1}\n' end,
    ["rank-0.jsonl"] = function() return "no JSON\n" end,
  } do
    it("of a file is told by its name: " .. name, function()
      write("tide", function(files) files[name] = change() end)
      local message, code = refusal { "tide" }
      assert.equal(3, code)
      assert.truthy(has(message, outputs .. "/tide/" .. name .. " is damaged"), message)
    end)
  end

  it("is a rank's log that says other tokens than the summary", function()
    write("tide", function(files) files["rank-1.jsonl"][5].tokens = 35 end)
    local message, code = refusal { "tide" }
    assert.equal(3, code)
    assert.truthy(has(message, "update 5 has 35 tokens there, 36 in metrics.jsonl"), message)
  end)

  it("is not a last line that a killed process left", function()
    write "tide"
    local path = outputs .. "/tide/metrics.jsonl"
    local page = page_of { "tide" }
    scratch.write(path, scratch.read(path) .. '{"update":13,"tok')
    assert.equal(page, page_of { "tide" })
  end)
end)

describe("verdicts", function()
  local function verdicts_of(change)
    write("tide", change)
    local page = page_of { "tide" }
    return section(page, "verdicts"), page
  end

  it("are bad where something failed, and the page says how many", function()
    local found, page = verdicts_of(function(files)
      local parity = files["parity.json"]
      parity.f64.failing, parity.pass = 2, false
      parity.parameters[1].f64.failing = 2
      parity.parameters[1].f64.worst = { index = 1, gate = 1e-12, finite = false }
      parity.controls[1].detected, parity.controls_pass = false, false
      parity.factor = { value = 0.5, name = "1/W (W = 2)" }
      files["metrics.jsonl"][2].parameter_spread = 0.25
      files["run.json"].outcome, files["run.json"].message = "failed", "the disk is full"
    end)
    assert.equal(4, count(found, "BAD"))
    assert.truthy(has(page, "4 of 8 verdicts are bad."))
    for _, text in ipairs { "the disk is full", "5 of 7 components", "missed: mean_of_means",
                            "largest difference of the ranks&#39; sums 0.25" } do
      assert.truthy(has(found, text), text)
    end
    local parity = section(page, "parity")
    for _, text in ipairs { "0.5 times the reference throughout: 1/W (W = 2)", "2 FAIL",
                            "NOT DETECTED", "beyond" } do
      assert.truthy(has(parity, text), text)
    end
  end)

  it("note resumes, accepted differences and stops, and hold controls against a run", function()
    local found = verdicts_of(function(files)
      local record = files["run.json"]
      record.outcome, record.update = "stopped", 6
      record.resumed = { { from = "/x/step-000003", update = 3, accepted = {}, controls = {} },
                         { from = "/x/step-000004", update = 4, controls = { "reseed-streams" } } }
      files["lock.json"].accepted = { "config.lr" }
    end)
    for _, text in ipairs { "at update 6 of 12", "at update 3 from step-000003", "config.lr",
                            "broken on purpose: reseed-streams" } do
      assert.truthy(has(found, text), text)
    end
    assert.equal(1, count(found, "BAD"))
  end)

  it("note updates that were skipped, whose values are no numbers", function()
    local found, page = verdicts_of(function(files)
      local line = files["metrics.jsonl"][3]
      line.loss_per_token, line.grad_norm, line.skipped = 0 / 0, 1 / 0, "rank 0"
    end)
    assert.truthy(has(found, "1, the first at update 3: a loss or gradient was not finite"))
    assert.equal(0, count(found, "BAD"))
    assert.is_false(has(page, "nan"))
  end)

  it("come with the command for a run that began with given weights and stopped early", function()
    local _, page = verdicts_of(function(files)
      files["lock.json"].init = ("9"):rep(64)
      files["run.json"].outcome, files["run.json"].update = "stopped", 7
    end)
    assert.truthy(has(section(page, "config"), 'init</th><td>9999999999999999</td>'))
    assert.truthy(has(section(page, "again"), "tide.lua lr=0.05 --until 7 --init FILE\n"))
  end)

  it("are bad for a loss that rose, and for more learned than there is", function()
    local found = verdicts_of(function(files)
      files["metrics.jsonl"][13].loss_per_token = 2.5
      files["evaluate.json"].loss = 1.1
    end)
    assert.equal(2, count(found, "BAD"))
  end)
end)

describe("text from data", function()
  local hostile = [[<script>alert("x")</script>'`touch %s/touched`' & Q01qq system("true") \n %%s]]

  it("is escaped wherever it stands, and never reaches gnuplot", function()
    local text = hostile:format(folder.path)
    write("tide", function(files)
      local record = files["run.json"]
      record.outcome, record.message, record.blas = "failed", text, text
      record.hosts, record.overrides = { text }, { text }
      record.config[text] = text
      files["lock.json"].files[1].name = text
      files["corpus-card.json"].notes.drawn = text
      files["parity.json"].parameters[1].name = text
      files["parity.json"].controls[1].name = text
      files["parity.json"].controls[2].reason = text
      files["weigh.json"].objectives[2].name = text
    end)
    paper_run.write(folder.path .. "/a<b>`&\"c")
    local page = page_of { "tide", folder.path .. "/a<b>`&\"c" }
    assert.is_false(has(page, "<script"))
    assert.is_false(has(page, "<b>"))
    assert.is_false(core.file.exists(folder.path .. "/touched"))
    assert.is_true(count(page, "&lt;script&gt;alert%(&quot;x&quot;%)&lt;/script&gt;") > 10)
    assert.truthy(has(section(page, "loss"), "a&lt;b&gt;`&amp;&quot;c</text>"))
    assert.truthy(has(section(page, "parity"), "Q01qq system"))
  end)

  it("that is no UTF-8 becomes readable", function()
    write("tide", function(files)
      files["run.json"] = json.encode(files["run.json"]):gsub("moon", "mo\xFFn\\u0001")
    end)
    assert.truthy(has(section(page_of { "tide" }, "versions"), "mo\u{FFFD}n\u{FFFD}"))
  end)
end)
