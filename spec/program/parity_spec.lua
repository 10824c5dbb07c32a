-- marea parity as a program: exit code, lines, parity.json.

local json = require "marea.json"
local launch = require "marea.launch"
local scratch = require "spec.support.scratch"

-- Runs parity on two ranks on a copy of spec/recipes/tiny.lua in which `from` reads `to`.
local function run(folder, from, to, ...)
  local text, path = scratch.read("spec/recipes/tiny.lua"), folder.path .. "/tiny.lua"
  if from then
    local first, last = text:find(from, 1, true)
    text = text:sub(1, first - 1) .. to .. text:sub(last + 1)
  end
  scratch.write(path, text)
  return launch.run({ ranks = 2, threads = 1, time_limit = 60 },
                    { "parity", path, "--outputs", folder.path, ... })
end

local function shows(output, ...)
  for _, text in ipairs { ... } do
    assert(output:find(text, 1, true), ("no '%s' in:\n%s"):format(text, output))
  end
end

local function report_in(folder)
  return json.decode(scratch.read(folder.path .. "/tiny/parity.json"))
end

local weights = "window:weights(batch)"

describe("marea parity", function()
  it("takes any window, and the parameters of a checkpoint", function()
    local folder <close> = scratch.folder()
    local code, first, errors = run(folder, nil, nil, "--step", "2", "--json")
    assert.equal(0, code, errors)
    assert.equal(0, (launch.run({ ranks = 2, threads = 1, time_limit = 60 }, {
      "train", folder.path .. "/tiny.lua", "--continuous", "--outputs", folder.path })))
    local later
    code, later, errors = run(folder, nil, nil, "--step", "2", "--checkpoint", "latest", "--json")
    assert.equal(0, code, errors)
    first, later = json.decode(first), json.decode(later)
    assert.equal(2, first.window.step)
    assert.equal(2, later.window.step)
    assert.is_truthy(later.checkpoint:find("tiny/checkpoints/step-", 1, true))
    assert.is_nil(first.checkpoint)
    assert.are_not.equal(first.loss, later.loss)
    assert.is_true(later.pass)
  end)

  it("passes a right recipe, with code 0, and leaves parity.json", function()
    local folder <close> = scratch.folder()
    local code, output = run(folder)
    assert.equal(0, code)
    shows(output, "parity of tiny: global_token, update 1, 2 ranks, ", "\nf32   ", "\nf64   ",
          "\ncontrol   no_reduction               detected: off by ",
          "\ncontrol   global_token               not told apart: every position")
    assert.equal("pass\n", output:sub(-5))
    local report = report_in(folder)
    assert.is_true(report.pass)
    assert.same({ 0, 1e-12, 1e-9 }, { report.f64.failing, report.f64.atol, report.f64.rtol })
  end)

  it("fails a loop that halves its weights, with code 3, and names the factor", function()
    local folder <close> = scratch.folder()
    local code, output = run(folder, weights, weights .. ":scale_(0.5)", "accumulation=3")
    assert.equal(3, code)
    shows(output, " FAIL, worst ",
          "\nfactor    the gradient is 0.5 times the reference throughout: " ..
          "1/W (W = 2)\n")
    assert.equal("FAIL\n", output:sub(-5))
    local report = report_in(folder)
    assert.is_false(report.pass)
    assert.equal("1/W (W = 2)", report.factor.name)
    assert.equal(2, #report.f64.worst.values)
  end)

  it("prints the report itself with --json", function()
    local folder <close> = scratch.folder()
    local code, output = run(folder, nil, nil, "--json", "--step", "2", "objective=per_sequence")
    assert.equal(0, code)
    local report = json.decode(output)
    assert.same(report_in(folder), report)
    assert.same({ 2, "per_sequence", 2 },
                { report.window.step, report.objective, report.world })
  end)

  it("refuses an update that is not planned, and a window that is refused", function()
    local folder <close> = scratch.folder()
    local code, _, errors = run(folder, nil, nil, "--step", "9")
    assert.equal(2, code)
    shows(errors, "the plan has 8 steps, and update 9 was asked for")
    code, _, errors = run(folder, "targets[i] = symbol", "targets[i] = -100")
    assert.equal(5, code)
    shows(errors, "window 1: no rank has a supervised position, so its loss is not defined")
  end)

  it("gives the recipe's line where a loop is refused, with code 1", function()
    local folder <close> = scratch.folder()
    local code, _, errors = run(folder, "local _ <close> = i < #window and replica:no_sync()", "")
    assert.equal(1, code)
    assert.matches("tiny.lua:%d+: backward: these gradients were already reduced", errors)
  end)
end)
