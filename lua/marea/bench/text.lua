-- What `marea bench` found, for readers.

local table_text = require "marea.cli.table_text"

local text = {}

local function spread(values, digits)
  local form = "%." .. digits .. "f"
  return (form .. " (" .. form .. " to " .. form .. ")"):format(values.median, values.low,
                                                                values.high)
end

local function head(record)
  return ("%s: %d parameters, %d tokens a step, %d rank%s of %d thread%s, %d turns of %d steps")
    :format(record.recipe, record.parameters, record.tokens, record.ranks,
            record.ranks == 1 and "" or "s", record.threads, record.threads == 1 and "" or "s",
            record.turns, record.steps_a_turn)
end

local function memory_text(record)
  local form = record.device and "%s of the GPU's at the peak; of the host's %s" or
    "%s at the peak; resident %s"
  local parts = { form:format(table_text.bytes(record.memory_peak),
                              table_text.bytes(record.resident_peak)) }
  for _, peer in ipairs(record.torch and record.torch.variants or {}) do
    local which = record.device and peer.variant or ("%d x %d"):format(peer.ranks, peer.threads)
    parts[#parts + 1] = ("PyTorch %s %s"):format(which, table_text.bytes(peer.resident_peak))
  end
  if record.torch then
    parts[#parts + 1] = ("%.2f of its least"):format(record.torch.resident_ratio)
  end
  return table.concat(parts, "; ")
end

local function main_rows(record)
  local rows = {
    { "step", spread(record.ms, 2) .. " ms" },
    { "tokens a second", ("%.0f"):format(record.tokens_per_second) },
    { "products of a step", ("%.3f GFLOP"):format(record.gflop_per_step.total) },
    { "speed", ("%.1f GFLOP/s, %.0f %% of a large product's %.1f"):format(
        record.gflops, 100 * record.ceiling_share, record.ceiling_gflops) },
    { "products alone", spread(record.floor_ms, 2) .. " ms" },
    { "step / products", spread(record.step_to_floor, 2) },
  }
  local function add(...) rows[#rows + 1] = { ... } end
  for i, peer in ipairs(record.torch and record.torch.variants or {}) do
    local better = #record.torch.variants > 1 and i == record.torch.better
    local which = record.device and peer.variant or ("%d x %d"):format(peer.ranks, peer.threads)
    add(("PyTorch %s, %s"):format(peer.version, which),
        ("%s ms, %s of a step%s"):format(spread(peer.ms, 2), spread(peer.ratio, 2),
                                         better and "; its better one" or ""))
  end
  if record.copy_share then
    add("parameters' traffic", ("at least %s, %.0f %% of a step at a copy's %s/s"):format(
      table_text.bytes(record.least_bytes), 100 * record.copy_share,
      table_text.bytes(record.copy_bytes_per_second)))
  end
  add("memory", memory_text(record))
  add("sent", table_text.bytes(record.bytes_sent) .. " a step")
  add("disturbed", ("%.1f %% of the time, %.1f %% in the worst turn"):format(
    100 * record.disturbed.share, 100 * record.disturbed.most))
  return rows
end

local function profile_text(profile)
  local rows = { { "operation", "calls", "forward ms", "backward ms", "share" } }
  local function share(ms) return ("%.1f %%"):format(100 * ms / profile.total) end
  for _, row in ipairs(profile.operations) do
    rows[#rows + 1] = { row.name, ("%g"):format(row.calls), ("%.3f"):format(row.forward),
                        ("%.3f"):format(row.backward), share(row.forward + row.backward) }
  end
  for _, name in ipairs { "window", "zero_grad", "norm", "optimizer", "reduction", "waiting",
                         "rest" } do
    local ms = profile.parts[name]
    if ms then rows[#rows + 1] = { name, "", ("%.3f"):format(ms), "", share(ms) } end
  end
  rows[#rows + 1] = { "total", "", ("%.3f"):format(profile.total), "", "" }
  return table_text.of(rows, { false, true, true, true, true })
end

local function collectives_text(record)
  local function number(form, value) return value and form:format(value) or "-" end
  local rows = { { "all-reduce", "window us", "to MPI", "us", "to MPI", "MPI us",
                   "mean / sum, divide" } }
  for _, row in ipairs(record.sizes) do
    rows[#rows + 1] = {
      table_text.bytes(row.bytes), number("%.1f", row.window_microseconds),
      number("%.2f", row.window_to_mpi), ("%.1f"):format(row.microseconds),
      ("%.2f"):format(row.to_mpi), ("%.1f"):format(row.mpi_microseconds),
      ("%.2f"):format(row.mean_to_sum) }
  end
  local overlap = record.overlap and
    ("\nan update: %.2f ms with overlap, %.2f ms without"):format(record.overlap.with_ms,
                                                                  record.overlap.without_ms) or ""
  return table_text.of(rows, { true, true, true, true, true, true, true }) .. overlap
end

--- The table of growth as text.
---@param record table growth of bench.json
---@return string
function text.growth(record)
  local rows = { { "growth", "tokens", "ms a token", "GFLOP a token", "GFLOP/s",
                   "step / products", "uneven / equal" } }
  for _, row in ipairs(record.rows) do
    local name = ("%s %d"):format(row.family, row.value)
    if row.shortest < row.longest or row.uneven_to_equal then
      name = ("%s of %d to %d"):format(name, row.shortest, row.longest)
    elseif row.family == "sequences" then
      name = ("%s of %d"):format(name, row.longest)
    end
    rows[#rows + 1] = {
      name, ("%d"):format(row.tokens), ("%.5f"):format(row.ms_per_token.median),
      ("%.5f"):format(row.gflop_per_token), ("%.1f"):format(row.gflops),
      spread(row.step_to_floor, 2), row.uneven_to_equal and spread(row.uneven_to_equal, 2) or "" }
  end
  return table_text.of(rows, { false, true, true, true, true, true, true })
end

local function scaling_text(record)
  local function row(name, alone, together, share)
    return { name, ("%.2f"):format(alone), ("%.2f"):format(together), spread(share, 3) }
  end
  return table_text.of({
    { "a rank's share", "alone ms", "together ms", "alone / together" },
    row("step", record.step_alone_ms, record.step_together_ms, record.step),
    row("products", record.products_alone_ms, record.products_together_ms, record.products),
    { "step to products", "", "", spread(record.ratio, 3) },
  }, { false, true, true, true })
end

local function operations_text(record)
  local rows = { { ("recorded, %d x %d"):format(record.side, record.side), "ns",
                   record.torch and "PyTorch " .. record.torch, record.torch and "ratio" } }
  for _, row in ipairs(record.rows) do
    rows[#rows + 1] = { row.name, spread(row.ns, 0), row.ratio and spread(row.torch_ns, 0),
                        row.ratio and spread(row.ratio, 2) }
  end
  return table_text.of(rows, { false, true, true, true })
end

local function instructions_text(record)
  local rows = { { "instructions of an update", "millions", "share" } }
  for _, part in ipairs(require("marea.bench.instructions").parts) do
    local count = record.parts[part]
    rows[#rows + 1] = { part, ("%.2f"):format(count / 1e6),
                        ("%.1f %%"):format(100 * count / record.total) }
  end
  rows[#rows + 1] = { "total", ("%.2f"):format(record.total / 1e6), "" }
  return table_text.of(rows, { false, true, true })
end

local function whole_text(record)
  local whole = record.whole_run
  local rows = { { ("%s, %d updates on %d rank%s"):format(record.recipe, whole.updates, whole.ranks,
                                                           whole.ranks == 1 and "" or "s"),
                   "updates s", "with start-up s" },
                 { "marea", spread(whole.loop_seconds, 2), spread(whole.seconds, 2) } }
  if whole.torch then
    rows[3] = { "PyTorch " .. whole.torch.version, spread(whole.torch.loop_seconds, 2),
                spread(whole.torch.seconds, 2) }
    rows[4] = { "ratio", spread(whole.loop_ratio, 2), spread(whole.ratio, 2) }
  end
  return table_text.of(rows, { false, true, true })
end

local function device_text(record)
  local parts = {}
  for i, subject in ipairs(record.subjects) do
    local title = table.concat(subject.settings, " ")
    parts[i] = subject.problem and ("%s %s: %s"):format(subject.recipe, title, subject.problem) or
      ("%s; on %s\n%s"):format(title, subject.device, text.of(subject))
  end
  parts[#parts + 1] = ("%.0f seconds in all"):format(record.seconds)
  return table.concat(parts, "\n\n")
end

--- The record as text.
---@param record table bench.json
---@return string
function text.of(record)
  if record.subjects then return device_text(record) end
  if record.whole_run then return whole_text(record) end
  local parts = { head(record), table_text.of(main_rows(record), { false, false }) }
  if record.profile then parts[#parts + 1] = "\n" .. profile_text(record.profile) end
  if record.growth then parts[#parts + 1] = "\n" .. text.growth(record.growth) end
  if record.scaling then parts[#parts + 1] = "\n" .. scaling_text(record.scaling) end
  if record.collectives then parts[#parts + 1] = "\n" .. collectives_text(record.collectives) end
  if record.operations then parts[#parts + 1] = "\n" .. operations_text(record.operations) end
  if record.instructions then
    parts[#parts + 1] = "\n" .. instructions_text(record.instructions)
  end
  return table.concat(parts, "\n")
end

return text
