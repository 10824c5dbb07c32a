-- Parts of the report: markup, series, what becomes of gnuplot's SVG.

local fault = require "marea.fault"
local gnuplot = require "marea.report.gnuplot"
local html = require "marea.report.html"
local series = require "marea.report.series"
local sheet = require "marea.report.sheet"
local text = require "marea.report.text"
local wording = require "marea.wording"

describe("markup", function()
  it("escapes text and attributes, and only markup goes through", function()
    local made = html.element("p", { title = "<\"'&>", lang = "en", hidden = false },
                              { "a<b", nil }).text
    assert.equal('<p lang="en" title="&lt;&quot;&#39;&amp;&gt;">a&lt;b</p>\n', made)
    assert.equal("<i>1 &gt; 0</i>", html.element("i", nil, { html.raw "1 &gt; 0" }).text)
    assert.equal("<i>a&amp;<b>c</b>7true</i>", html.element("i", nil,
      { "a&", { html.element("b", nil, "c") }, 7, false, true }).text)
  end)

  it("holds neither control characters nor bytes that are no UTF-8", function()
    assert.equal("a\u{FFFD}b\u{FFFD}\u{FFFD}c\n\u{E9}", html.escape("a\0b\xC3\x28\x1Bc\n\u{E9}")
                   :gsub("%(", ""), nil)
  end)

  it("makes tables whose columns and rows have heads", function()
    local made = html.table { caption = "A & B", head = { "of_one", "n" },
                              rows = { { "x", 1 } } }.text
    assert.truthy(made:find('<div aria-label="A &amp; B" class="scroll" role="group" tabindex="0">',
                            1, true))
    assert.truthy(made:find("<caption>A &amp; B</caption>", 1, true))
    assert.truthy(made:find('<th scope="col">of_<wbr>one<wbr></th><th class="number" scope="col">n',
                            1, true))
    assert.truthy(made:find('<th scope="row">x</th><td class="number">1</td>', 1, true))
  end)

  it("gives its text back", function()
    assert.equal("a < b & c", html.plain(html.element("p", nil, { "a < b", html.element("b", nil,
      " & c") })):gsub("\n", ""), nil)
  end)
end)

describe("numbers as text", function()
  it("have commas, hundredths and plurals", function()
    assert.same({ "0", "999", "1,000", "282,628", "-1,234,567" },
      { wording.whole(0), wording.whole(999), wording.whole(1000), wording.whole(282628),
        wording.whole(-1234567) })
    assert.same({ "25.00 %", "\u{2013}" }, { text.percent(0.25), text.percent(nil) })
    assert.same({ "1 rank", "2 ranks" }, { wording.count(1, "rank"), wording.count(2, "rank") })
    assert.same({ "0", "5.96e-08", "not finite" },
      { text.error(0), text.error(5.96e-8), text.error(nil) })
    assert.same({ "1", "10", "10\u{B2}", "10\u{207B}\u{B9}\u{2070}" },
      { sheet.power(0), sheet.power(1), sheet.power(2), sheet.power(-10) })
  end)
end)

describe("series", function()
  local function ramp(count)
    local points = {}
    for i = 1, count do points[i] = { i, i % 7 } end
    return points
  end

  it("are thinned by means or by largest values, and say by how much", function()
    local points, each = series.thin(ramp(400), "mean")
    assert.same({ 400, 1 }, { #points, each })
    points, each = series.thin(ramp(1001), "mean")
    assert.same({ 334, 3 }, { #points, each })
    assert.same({ 3, 2 }, points[1])
    assert.same({ 1001, (1000 % 7 + 1001 % 7) / 2 }, points[334])
    assert.same({ 6, 6 }, (series.thin(ramp(1001), "largest"))[2])
  end)

  it("carry about eight markers, each at other points", function()
    local first, second = series.marked(ramp(100), 0), series.marked(ramp(100), 1)
    assert.is_true(#first >= 8 and #first <= 9 and #second >= 8 and #second <= 9)
    assert.is_true(first[1][1] ~= second[1][1])
    assert.equal(5, #series.marked(ramp(5), 3))
  end)

  it("are sampled with their first and their last", function()
    assert.same({ 1, 25, 50, 75, 100 }, series.sample({ ramp(100) }, 5))
    assert.same({ 1, 2, 5 }, series.sample({ { { 1, 0 }, { 5, 0 } }, { { 2, 0 } } }, 11))
  end)
end)

describe("gnuplot", function()
  if not os.execute("command -v gnuplot >/dev/null") then
    return it("draws", function() pending("gnuplot is not there") end)
  end

  local plain = "set terminal svg size 200,100 noenhanced\nplot 1 lc " ..
    gnuplot.color "series-1" .. " title %s\n"

  local function element(svg)
    return gnuplot.element(svg, { id = "f", class = "wide", title = "T<", description = "D",
                                  labels = gnuplot.labels() }).text
  end

  it("draws several scripts at once, none of which knows of another", function()
    local labels = gnuplot.labels()
    local first = "set xrange [1:2]\n" .. plain:format(labels:add "one")
    local both = gnuplot.run { first, plain:format "'two'" }
    local alone = gnuplot.run { plain:format "'two'" }
    assert.equal(2, #both)
    assert.equal(element(alone[1]), element(both[2]))
    assert.is_true(element(alone[1]) ~= element(both[1]))
  end)

  it("refuses what is no script, with code 1", function()
    local good, raised = pcall(gnuplot.run, { "plot nothing at all" })
    assert.is_false(good)
    local message, code = fault.of(raised)
    assert.equal(1, code)
    assert.truthy(message:find("gnuplot failed", 1, true), message)
    good, raised = pcall(gnuplot.run, { "set xrange [1:2]" })
    assert.is_false(good)
    assert.equal("gnuplot drew 0 of 1 figures", (fault.of(raised)))
  end)

  it("takes placeholders, and the page gets the texts, shortened where there is no room", function()
    local labels = gnuplot.labels()
    assert.equal("'Q01qqq'", labels:add "a<b c>")
    assert.equal("'Q02qq'", labels:add("123456", 5))
    assert.equal("'Q03qq'", labels:add("layers.0.bias", 5, true))
    assert.equal("'Q04'", labels:add "x")
    assert.equal("a&lt;b c&gt;|1234\u{2026}|\u{2026}bias|x",
                 labels:put "Q01qqq|Q02qq|Q03qq|Q04")
  end)

  it("leaves a drawing in the page's colours, with ids of its own", function()
    local labels = gnuplot.labels()
    local svg = gnuplot.run { plain:gsub("plot 1", "plot 1 with linespoints pt 7")
                                :format(labels:add "tide & ebb") }
    local made = gnuplot.element(svg[1], { id = "f", class = "wide", title = "T<", labels = labels,
                                           description = "D" }).text
    assert.truthy(made:find('^<svg class="wide" role="img" aria%-labelledby="f%-title f%-text" ' ..
                            'viewBox="0 0 200 100"'))
    assert.truthy(made:find('<title id="f-title">T&lt;</title>', 1, true))
    assert.truthy(made:find("tide &amp; ebb</text>", 1, true))
    assert.truthy(made:find("var(--series-1,#1a5fb4)", 1, true))
    assert.truthy(made:find("id='f-Pt5'", 1, true) and made:find("href='#f-Pt6'", 1, true))
    for _, unwanted in ipairs { "rgb%(", "xlink", "gnuplot", "font%-family", "black", "gpPt" } do
      assert.is_nil(made:lower():find(unwanted:lower()), unwanted)
    end
  end)
end)
