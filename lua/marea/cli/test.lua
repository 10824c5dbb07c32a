-- marea test: every spec, each test counted once.

local core = require "marea.core"
local device = require "marea.device"
local fault = require "marea.fault"
local launch = require "marea.launch"

local default_worlds = { 1, 2, 3, 4 }

-- Specs name files from the checkout's root; so their workers run there, and paths that the user
-- gave are made absolute or relative to it first.
local function move_to_root(paths)
  local lfs = require "lfs"
  local here, root = lfs.currentdir(), launch.root()
  lfs.chdir(root)
  root = lfs.currentdir()
  local moved = {}
  for i, path in ipairs(paths) do
    local full = path:sub(1, 1) == "/" and path or here .. "/" .. path
    full = full:gsub("/%./", "/")
    moved[i] = full:sub(1, #root + 1) == root .. "/" and full:sub(#root + 2) or full
  end
  return moved
end

-- What runs on a device that was asked for: the specs that compute, on as many ranks as share it.
local function choose(options)
  local paths, worlds = options.files, options.ranks or default_worlds
  if device.asked() and not options.worker then
    device.give(nil, true)
    if #paths == 0 then
      local root = launch.root() .. "/"
      for i, path in ipairs(dofile(root .. "spec/on_device.lua")) do paths[i] = root .. path end
      worlds = options.ranks or { 1, 2 }
    end
  end
  return paths, worlds
end

local function print_files(tally, files)
  for _, file in ipairs(files) do
    local counts = tally:counts(file)
    if counts.passed + counts.failed + counts.skipped > 0 then
      print(("%-44s %4d passed %4d failed %4d skipped %7.1f s"):format(
        file, counts.passed, counts.failed, counts.skipped, counts.seconds))
    end
  end
  io.stdout:flush()
end

local function run_all(runs, tally, options)
  local suite = require "marea.spec.suite"
  for i, run in ipairs(runs) do
    local plural = #run.files == 1 and "" or "s"
    io.stderr:write(("marea: %d spec file%s: %s\n"):format(#run.files, plural, run.label))
    local stopped = suite.finish(run, suite.start(run), options.time_limit, tally, options.verbose)
    if stopped then fault.raise_at(7, "", "test: stopped by signal %d", stopped) end
    if not runs[i + 1] or runs[i + 1].kind ~= run.kind then print_files(tally, run.files) end
  end
  tally:add_unreached(runs)
end

local function report(tally)
  for _, item in ipairs(tally.order) do
    if tally.verdict(item) == "failed" then print("\n" .. tally.describe(item)) end
  end
  local counts = tally:counts()
  print(("\n%d passed, %d failed, %d skipped"):format(counts.passed, counts.failed, counts.skipped))
  return counts.failed == 0 and counts.passed > 0 and 0 or 3
end

local function run(options)
  if options.worker then
    local results = ("%s.%d"):format(options.worker, launch.rank())
    device.use_asked()
    require "marea.spec.worker".run(options.files, results, options.filter)
    return 0
  end
  if launch.under_launcher() then
    fault.raise_at(2, "", "test: starts mpirun itself; run it without mpirun")
  end
  local suite, all = require "marea.spec.suite", launch.root() .. "/spec"
  if #options.files == 0 and not core.file.is_folder(all) then
    fault.raise_at(2, "", "test: an installed marea comes without specs: name files of your " ..
                   "own, or run ./marea test in a checkout")
  end
  local chosen, worlds = choose(options)
  local paths = move_to_root(#chosen > 0 and chosen or { all })
  local runs = suite.plan(suite.find(paths), worlds, options.filter)
  if #runs == 0 then
    fault.raise_at(2, "", "test: no spec file under %s", table.concat(paths, ", "))
  end
  local tally = require "marea.spec.tally".new()
  run_all(runs, tally, options)
  if #tally.order == 0 then
    fault.raise_at(2, "", "test: no spec matches '%s'", options.filter or "")
  end
  return report(tally)
end

local function world_list(text)
  local worlds = {}
  for word in text:gmatch("[^,]+") do
    local ranks = math.tointeger(tonumber(word))
    if not ranks or ranks < 1 then
      return nil, "--ranks must be whole numbers such as 1,2, not " .. text
    end
    worlds[#worlds + 1] = ranks
  end
  return worlds
end

---@type marea.Command
return {
  name = "test",
  summary = "Run the specs: spec/unit in one process, spec/world on several ranks, the others " ..
    "outside mpirun.",
  example = "marea test --filter \"12/36\" spec/world, or marea test --device cuda",
  define = function(parser)
    parser:argument("files", "Spec files and folders (default: all)."):args("*")
    parser:option("--filter", "Only tests whose full name has this text."):argname("TEXT")
    parser:option("--ranks", "Worlds of spec/world (default: 1,2,3,4)."):argname("LIST")
      :convert(world_list)
    parser:option("--time-limit", "Seconds for each start of workers.", "900"):argname("S")
      :convert(tonumber)
    parser:flag("--verbose", "Show what the specs print.")
    parser:option("--worker"):hidden(true)
  end,
  run = run,
}
