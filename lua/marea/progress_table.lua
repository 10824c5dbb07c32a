-- The table of a run's updates: columns with their units in a header row, as narrow as 80 columns
-- for two ranks, with more room and each rank's tokens where the terminal is wide.

local table_of = {}

--- A span of time, in at most six letters: "12s", "3m05s", "2h10m", "4d06h".
---@param seconds number
---@return string
function table_of.span(seconds)
  local whole = math.floor(seconds + 0.5)
  if whole < 60 then return ("%ds"):format(whole) end
  if whole < 3600 then return ("%dm%02ds"):format(whole // 60, whole % 60) end
  if whole < 86400 then return ("%dh%02dm"):format(whole // 3600, whole % 3600 // 60) end
  return ("%dd%02dh"):format(whole // 86400, whole % 86400 // 3600)
end

-- Three or four digits that matter, in at most seven letters for what is common.
local function short(number)
  if number ~= number then return "nan" end
  local text = ("%.4g"):format(number)
  return #text > 7 and ("%.2g"):format(number) or text
end

local function loss(number)
  if not number then return "-" end
  if number ~= number then return "nan" end
  return math.abs(number) < 1e5 and ("%.4f"):format(number) or short(number)
end

local function milliseconds(number) return (number < 10 and "%.1f" or "%.0f"):format(number) end

local function thousands(count) return count < 1000 and count or ("%.0fk"):format(count / 1000) end

-- Every rank's tokens where there is room for them, else the fewest and the most.
local function per_rank(tokens, room)
  local text = table.concat(tokens, "+")
  if #text <= room then return text end
  local least, most = math.min(table.unpack(tokens)), math.max(table.unpack(tokens))
  text = ("%d..%d"):format(least, most)
  return #text <= room and text or thousands(least) .. ".." .. thousands(most)
end

---@class marea.ProgressMoment
---@field last integer the update that this start goes to
---@field elapsed number seconds since the start
---@field left number seconds that are likely to be left

local function update_alone(r) return tostring(r.update) end

-- {title, width at the least, text(result, moment, room)}; `short`: the title where room is scarce
local columns = {
  { "update", 7, function(r, moment) return ("%d/%d"):format(r.update, moment.last) end },
  { "loss/token", 10, function(r) return loss(r.loss_per_token) end, short = "loss/tok" },
  { "tokens", 6, function(r) return tostring(r.tokens) end },
  { "per rank", 8, function(r, _, room) return per_rank(r.rank_tokens, room) end, several = true },
  { "|grad|", 7, function(r) return short(r.grad_norm) end },
  { "lr", 7, function(r) return short(r.lr) end },
  { "ms", 4, function(r) return milliseconds(r.ms) end },
  { "tokens/s", 8, function(r) return ("%.0f"):format(r.tokens_per_second) end },
  { "elapsed", 7, function(_, moment) return table_of.span(moment.elapsed) end },
  { "left", 6, function(_, moment) return table_of.span(moment.left) end },
}

---@class marea.ProgressTable
---@field columns {title: string, text: function}[]
---@field widths integer[]
---@field gap string
---@field room integer letters for the tokens of each rank
local Table = {}
Table.__index = Table

--- Lays the table out.
---@param width integer of the terminal
---@param ranks integer
---@param last integer update
---@return marea.ProgressTable
function table_of.new(width, ranks, last)
  local chosen, widths, sum = {}, {}, 0
  local function add(column, title, least)
    chosen[#chosen + 1] = { title = title, text = column[3] }
    widths[#widths + 1] = least
    sum = sum + least
  end
  for i, column in ipairs(columns) do
    local scarce = column.short and width < 100
    if i == 1 then
      add(column, column[1], math.max(column[2], 2 * #tostring(last) + 1))
    elseif ranks > 1 or not column.several then
      add(column, scarce and column.short or column[1], scarce and #column.short or column[2])
    end
  end
  if width < 100 and widths[1] > 9 then -- the start has said how many there are
    chosen[1].text, sum, widths[1] = update_alone, sum - widths[1] + 7, 7
  end
  local gap = math.max(1, math.min(3, (width - sum - 8) // #chosen))
  local rest = width - sum - gap * (#chosen - 1)
  return setmetatable({ columns = chosen, widths = widths, gap = (" "):rep(gap),
                        room = 8 + math.max(0, rest) }, Table)
end

--- The row of titles.
---@return string line
function Table:header()
  local cells = {}
  for i, column in ipairs(self.columns) do
    cells[i] = (" "):rep(self.widths[i] - #column.title) .. column.title
  end
  return table.concat(cells, self.gap)
end

--- The row of an update; of one that was skipped, the reason. What needs more room than its column
--- has widens it from then on.
---@param result marea.Metrics
---@param moment marea.ProgressMoment
---@return string line
---@return boolean widened whether the titles stand elsewhere now
function Table:row(result, moment)
  local cells, widened = {}, false
  for i, column in ipairs(self.columns) do
    if i == 2 and result.skipped then
      cells[i] = "skipped: " .. result.skipped
      break
    end
    local text = column.text(result, moment, self.room)
    if #text > self.widths[i] then self.widths[i], widened = #text, true end
    cells[i] = (" "):rep(self.widths[i] - #text) .. text
  end
  return table.concat(cells, self.gap), widened
end

return table_of
