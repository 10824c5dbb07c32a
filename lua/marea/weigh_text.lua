-- Tables of weights for people.

local weigh_text = {}

local function percent(share) return ("%.2f %%"):format(100 * share) end

--- The weight of a token of each rank against the lightest.
---@param ranks marea.RankShare[] rank 0 first
---@return string text "3 : 1", with "-" for a rank without tokens
local function ratio(ranks)
  local least
  for _, rank in ipairs(ranks) do
    if rank.per_token and rank.per_token > 0 then
      least = math.min(least or rank.per_token, rank.per_token)
    end
  end
  local parts = {}
  for i, rank in ipairs(ranks) do
    parts[i] = rank.per_token and least and ("%.4g"):format(rank.per_token / least) or "-"
  end
  return table.concat(parts, " : ")
end
weigh_text.ratio = ratio

-- Rows of cells with equal column widths; the first column is left-aligned.
local function aligned(rows)
  local widths = {}
  for _, row in ipairs(rows) do
    for c, cell in ipairs(row) do widths[c] = math.max(widths[c] or 0, #cell) end
  end
  local lines = {}
  for i, row in ipairs(rows) do
    local cells = {}
    for c, cell in ipairs(row) do
      cells[c] = c == 1 and cell .. (" "):rep(widths[c] - #cell) or
                 (" "):rep(widths[c] - #cell) .. cell
    end
    lines[i] = table.concat(cells, "   "):gsub("%s+$", "")
  end
  return lines
end

local function header(report, first)
  local row = { first, "tokens" }
  for _, entry in ipairs(report.objectives) do
    row[#row + 1] = entry.name .. (entry.declared and "*" or "")
  end
  return row
end

local function rank_rows(report)
  local rows = { header(report, "") }
  for r, tokens in ipairs(report.rank_tokens) do
    local row = { "rank " .. r - 1, tostring(tokens) }
    for _, entry in ipairs(report.objectives) do row[#row + 1] = percent(entry.ranks[r].share) end
    rows[#rows + 1] = row
  end
  local row = { "a token of each", "" }
  for _, entry in ipairs(report.objectives) do row[#row + 1] = ratio(entry.ranks) end
  rows[#rows + 1] = row
  return rows
end

local function sequence_rows(report)
  local rows = { header(report, "sequence") }
  for s, sequence in ipairs(report.objectives[1].sequences) do
    local row = { ("%s (rank %d, microbatch %d)"):format(sequence.id, sequence.rank,
                                                         sequence.microbatch),
                  tostring(sequence.tokens) }
    for _, entry in ipairs(report.objectives) do
      row[#row + 1] = percent(entry.sequences[s].share)
    end
    rows[#rows + 1] = row
  end
  return rows
end

local function weight_at(sequence, j)
  return ("%.6g"):format(sequence.weights and sequence.weights[j] or sequence.weight)
end

local function position_rows(report)
  local rows = { header(report, "position") }
  rows[1][2] = "sequence"
  for s, sequence in ipairs(report.objectives[1].sequences) do
    for j = 1, sequence.tokens do
      local row = { tostring(j), tostring(sequence.id) }
      for _, entry in ipairs(report.objectives) do
        row[#row + 1] = weight_at(entry.sequences[s], j)
      end
      rows[#rows + 1] = row
    end
  end
  return rows
end

-- What the loop weighs with, beside what was declared.
local function measured_lines(verdict)
  local lines = { "" }
  local function add(format, ...) lines[#lines + 1] = format:format(...) end
  if not verdict.measurable then
    add("measured: %s", verdict.cause)
    return lines
  end
  add("measured: a token of each rank weighs %s; %s", ratio(verdict.ranks),
      verdict.pass and "as declared" or "NOT as declared")
  if verdict.pass then return lines end
  local worst = verdict.worst
  add("  worst at sequence %s, position %d (rank %d, microbatch %d): declared %.6g, measured %.6g",
      worst.sequence, worst.position, worst.rank, worst.microbatch, worst.declared, worst.measured)
  if verdict.ratio then
    add("  every position has %.6g times its declared weight", verdict.ratio)
  elseif worst.ratio then
    add("  there %.6g times the declared weight; the ratio differs among positions", worst.ratio)
  end
  add("  likely cause: %s", verdict.cause or "none of those that marea knows")
  return lines
end

--- The tables of a report of weigh.recipe.
---@param report marea.WeighReport
---@param positions boolean whether every position gets its line
---@return string text
function weigh_text.of(report, positions)
  local lines = { ("weights of %s, update %d: %d rank%s, %d tokens; * is the declared objective")
    :format(report.recipe, report.step, report.world, report.world == 1 and "" or "s",
            report.tokens), "" }
  local function add(rows)
    table.move(aligned(rows), 1, #rows, #lines + 1, lines)
    lines[#lines + 1] = ""
  end
  add(rank_rows(report))
  add(sequence_rows(report))
  if positions then add(position_rows(report)) end
  lines[#lines] = nil
  if report.measured then
    local measured = measured_lines(report.measured)
    table.move(measured, 1, #measured, #lines + 1, lines)
  end
  return table.concat(lines, "\n")
end

return weigh_text
