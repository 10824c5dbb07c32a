-- marea report as a program, and its page in a browser.

local json = require "marea.json"
local launch = require "marea.launch"
local scratch = dofile "spec/support/scratch.lua"
local paper_run = dofile "spec/support/paper_run.lua"

local recipe = [[
local marea = require "marea"
return marea.recipe {
  name = "tide",
  config = { ranks = 2, updates = 4, batch_size_per_rank = 2, accumulation = 2, lr = 0.1,
             evaluate_every = 2 },
  corpus = function(c)
    return marea.corpus.symbols { seed = c.seed, train = 20, validation = 4, test = 4 }
  end,
  model = function()
    return marea.nn.Transformer { vocabulary = 6, classes = 4, context = 128, width = 8,
                                  hidden = 8, heads = 1, layers = 1 }
  end,
  optimizer = function(parameters, c) return marea.optim.SGD(parameters, { lr = c.lr }) end,
  plan = function(rows, c) return marea.sampler.by_length(rows, c) end,
  loss = function(model, batch) return marea.nn.cross_entropy(model(batch), batch.targets) end,
}
]]

local folder, outputs, path

before_each(function()
  folder = scratch.folder()
  outputs, path = folder.path .. "/outputs", folder.path .. "/tide.lua"
end)

after_each(function() getmetatable(folder).__close() end)

local function marea(ranks, ...)
  local words = { ... }
  table.move({ "--outputs", outputs }, 1, 2, #words + 1, words)
  return launch.run({ ranks = ranks, time_limit = 120 }, words)
end

describe("marea report", function()
  it("names what is missing until the commands that it names have made it", function()
    scratch.write(path, recipe)
    local code, _, errors = marea(2, "train", path)
    assert.equal(0, code, errors)
    local named = {}
    code, _, errors = marea(nil, "report", "tide")
    assert.equal(2, code)
    for line in errors:gmatch("\n    marea ([^\n]*)") do named[#named + 1] = line end
    assert.equal(3, #named, errors)
    for _, line in ipairs(named) do
      local words = {}
      for word in line:gmatch("%S+") do words[#words + 1] = word end
      code, _, errors = launch.run({ time_limit = 120 }, words)
      assert.equal(0, code, line .. ": " .. errors)
    end
    local output
    code, output, errors = marea(nil, "report", "tide")
    assert.equal("", errors)
    assert.equal(0, code)
    assert.equal(outputs .. "/tide/report.html\n", output)
    local page = scratch.read(outputs .. "/tide/report.html")
    assert.is_nil(page:find(folder.path, 1, true))
    assert.truthy(page:find("marea launch -n 2 train tide.lua\n", 1, true))
    assert.equal(0, (marea(2, "report", "tide")))
    assert.equal(page, scratch.read(outputs .. "/tide/report.html"))
  end)

  it("prints what it made as JSON", function()
    paper_run.write(outputs .. "/tide")
    paper_run.write(outputs .. "/ebb")
    local code, output = marea(nil, "report", "tide", "ebb", "--without", "parity", "--without",
                               "weights", "--json")
    assert.equal(0, code)
    local found = json.decode(output)
    assert.equal(outputs .. "/tide/report.html", found.report)
    assert.same({ "tide", "ebb" }, found.runs)
    assert.same({ "runs", "verdicts", "loss", "validation", "gradient", "tokens", "time",
                  "config", "corpus", "versions", "again" }, found.sections)
    assert.equal(#scratch.read(found.report), found.bytes)
  end)

  it("refuses parts that there are not, and no run", function()
    local code, _, errors = marea(nil, "report", "tide", "--without", "moon")
    assert.equal(2, code)
    assert.truthy(errors:find("must be one of 'loss', 'validation'", 1, true), errors)
    assert.equal(2, (marea(nil, "report")))
  end)

  it("stops with 4, and writes nothing, where gnuplot cannot be started", function()
    paper_run.write(outputs .. "/tide")
    local code, _, errors = launch.run({ time_limit = 60, set = { PATH = "/nowhere" } },
                                       { "report", "tide", "--outputs", outputs })
    assert.equal(4, code)
    assert.truthy(errors:find("install gnuplot-nox (Debian, Ubuntu)", 1, true), errors)
    assert.is_nil(scratch.read(outputs .. "/tide/report.html"))
  end)
end)

-- --- in a browser -----------------------------------------------------------------------------

-- The first browser there is.
local function find_browser()
  for _, name in ipairs { "chromium", "chromium-browser", "google-chrome" } do
    if os.execute("command -v " .. name .. " >/dev/null") then return name end
  end
end

local browser = find_browser()

-- Looks at a page in frames of several widths and writes down what is there.
local probe = [[
<!DOCTYPE html><meta charset="utf-8"><body style="margin:0"><pre id="found"></pre><script>
function look(frame, width) {
  const view = frame.contentWindow, page = frame.contentDocument;
  const box = (node) => node.getBoundingClientRect();
  const figures = [...page.querySelectorAll("figure")].map((figure) => {
    const shown = [...figure.querySelectorAll("svg")].filter((svg) => box(svg).width > 0);
    const svg = shown[0];
    const marks = svg ? [...svg.querySelectorAll("path, polygon, use")].filter(
      (mark) => !mark.closest("defs") && (box(mark).width > 0 || box(mark).height > 0)) : [];
    const inside = svg && [...svg.querySelectorAll("text")].every((text) =>
      box(text).left >= -1 && box(text).right <= width + 1);
    return { shown: shown.length, id: svg && svg.querySelector("title").id, marks: marks.length,
             inside: Boolean(inside), texts: svg ? svg.querySelectorAll("text").length : 0,
             lost: svg ? [...svg.querySelectorAll("use")].filter(
               (use) => !page.getElementById(use.getAttribute("href").slice(1))).length : 0 };
  });
  const ids = [...page.querySelectorAll("[id]")].map((node) => node.id);
  const style = view.getComputedStyle(page.body);
  const axis = page.querySelector("svg.wide text").parentNode;
  return { width, figures, overflow: page.documentElement.scrollWidth - width,
           repeated: ids.length - new Set(ids).size, ink: style.color,
           paper: style.backgroundColor, axis: view.getComputedStyle(axis).fill,
           tables: page.querySelectorAll("table").length,
           headings: [...page.querySelectorAll("h1, h2")].map((node) => node.textContent),
           dead: [...page.querySelectorAll("a")].filter(
             (link) => !page.querySelector(link.getAttribute("href"))).length };
}
const widths = [400, 700, 1400], found = [];
let left = widths.length;
for (const width of widths) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `border:0;width:${width}px;height:2000px`;
  frame.onload = () => {
    found.push(look(frame, width));
    if (--left === 0) document.getElementById("found").textContent = JSON.stringify(found);
  };
  frame.src = "report.html";
  document.body.append(frame);
}
</script>]]

local function browse(words)
  local command = ("timeout 100 %s --headless --no-sandbox --disable-gpu --hide-scrollbars " ..
    "--allow-file-access-from-files --enable-logging=stderr --user-data-dir=%s/browser %s"):format(
    browser, folder.path, words)
  local code, output, errors = scratch.shell(command)
  assert(code == 0, errors)
  return output, errors
end

-- What the probe found at each width.
local function look(more)
  scratch.write(outputs .. "/tide/probe.html", probe)
  local output, errors = browse(("--virtual-time-budget=8000 --dump-dom %s " ..
    "file://%s/tide/probe.html"):format(more or "", outputs))
  assert.is_nil(errors:find("CONSOLE", 1, true), errors)
  local found = json.decode((output:match('<pre id="found">(.-)</pre>'):gsub("&lt;", "<")
    :gsub("&gt;", ">"):gsub("&amp;", "&")))
  assert.equal(3, #found)
  table.sort(found, function(a, b) return a.width < b.width end)
  return found
end

-- WCAG's contrast of two colours, "rgb(r, g, b)".
local function contrast(a, b)
  local function luminance(color)
    local sum, weights = 0, { 0.2126, 0.7152, 0.0722 }
    local i = 0
    for channel in color:gmatch("%d+") do
      i = i + 1
      local value = tonumber(channel) / 255
      value = value <= 0.03928 and value / 12.92 or ((value + 0.055) / 1.055) ^ 2.4
      sum = sum + (weights[i] or 0) * value
    end
    return sum
  end
  local light, dark = luminance(a), luminance(b)
  if light < dark then light, dark = dark, light end
  return (light + 0.05) / (dark + 0.05)
end

local names = { "loss", "validation", "gradient", "tokens", "rank-weights", "position-weights",
                "parameter-errors", "gate-shares" }

describe("the page in a browser", function()
  if not browser then
    it("is looked at", function() pending("there is no chromium") end)
    return
  end

  before_each(function()
    paper_run.write(outputs .. "/tide")
    paper_run.write(outputs .. "/ebb")
    local code, _, errors = marea(nil, "report", "tide", "ebb")
    assert(code == 0, errors)
  end)

  it("shows every figure at every width, with marks, texts and no lost part", function()
    for _, found in ipairs(look()) do
      local where = "at " .. found.width
      local form = found.width < 641 and "narrow" or "wide"
      assert.equal(#names, #found.figures, where)
      for i, figure in ipairs(found.figures) do
        assert.equal(names[i] .. "-" .. form .. "-title", figure.id, where)
        assert.equal(1, figure.shown, where)
        assert.is_true(figure.marks > 5 and figure.texts > 4, where .. " " .. figure.id)
        assert.equal(0, figure.lost, where .. " " .. figure.id)
        assert.is_true(figure.inside, where .. " " .. figure.id)
      end
      assert.equal(0, found.overflow, where)
      assert.equal(0, found.repeated, where)
      assert.equal(0, found.dead, where)
      assert.is_true(found.tables > 12)
      assert.equal("tide, ebb", found.headings[1])
    end
  end)

  it("is readable in the light and in the dark", function()
    local light, dark = look()[3], look("--blink-settings=preferredColorScheme=0")[3]
    for _, found in ipairs { light, dark } do
      assert.is_true(contrast(found.ink, found.paper) >= 7, found.ink .. found.paper)
      assert.is_true(contrast(found.axis, found.paper) >= 4.5, found.axis .. found.paper)
    end
    assert.is_true(contrast(light.paper, dark.paper) > 10)
  end)

  it("is painted and printed", function()
    scratch.write(outputs .. "/tide/blank.html", "<!DOCTYPE html><title>blank</title>")
    local sizes = {}
    for _, name in ipairs { "report", "blank" } do
      local file = ("%s/%s.png"):format(folder.path, name)
      browse(("--window-size=1400,3000 --screenshot=%s file://%s/tide/%s.html"):format(
        file, outputs, name))
      sizes[name] = #scratch.read(file)
    end
    assert.is_true(sizes.report > 10 * sizes.blank, sizes.report .. " and " .. sizes.blank)
    local _, errors = browse(("--no-pdf-header-footer --print-to-pdf=%s/page.pdf " ..
      "file://%s/tide/report.html"):format(folder.path, outputs))
    assert.is_nil(errors:find("CONSOLE", 1, true), errors)
    assert.equal("%PDF", scratch.read(folder.path .. "/page.pdf"):sub(1, 4))
  end)

  it("that lost a figure or points nowhere is seen to be so", function()
    local file = outputs .. "/tide/report.html"
    local page = scratch.read(file)
    page = page:gsub('<svg class="narrow".-</svg>', "", 1):gsub('href="#loss"', 'href="#lost"', 1)
    scratch.write(file, page:gsub("</main>", '<div style="width:2000px">wide</div></main>'))
    local narrow = look()[1]
    assert.equal(0, narrow.figures[1].shown)
    assert.equal(1, narrow.dead)
    assert.is_true(narrow.overflow > 1000)
  end)
end)
