-- The nearest of several names, for messages that refuse an unknown one.

local nearest = {}

--- How many letters have to be inserted, removed, replaced, or swapped with their neighbour to
--- make one name of another (the optimal string alignment distance).
---@param a string
---@param b string
---@return integer distance 0 for equal names
function nearest.distance(a, b)
  local before, last, row = {}, {}, {}
  for j = 0, #b do last[j] = j end
  for i = 1, #a do
    row[0] = i
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j)
      local best = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (same and 0 or 1))
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        best = math.min(best, before[j - 2] + 1)
      end
      row[j] = best
    end
    before, last, row = last, row, before
  end
  return last[#b]
end

--- The nearest candidate, whatever the case of its letters; nil when none is near: more than a
--- third of the letters (and more than one) would have to change. Of equally near ones the first
--- in alphabetical order. A candidate that the name begins is near as well ("check" of
--- "check-loss").
---@param name string
---@param candidates string[]
---@return string? found
function nearest.find(name, candidates)
  local found, least
  local wanted = name:lower()
  for _, candidate in ipairs(candidates) do
    local other = candidate:lower()
    local distance = nearest.distance(wanted, other)
    if #wanted >= 3 and other:sub(1, #wanted) == wanted then distance = math.min(distance, 1) end
    local near = distance <= math.max(1, math.max(#wanted, #other) // 3)
    if near and (not least or distance < least or (distance == least and candidate < found)) then
      found, least = candidate, distance
    end
  end
  return found
end

--- What to put behind "unknown ... 'name'": "; did you mean 'other'?", or "".
---@param name string
---@param candidates string[]
---@return string hint
function nearest.hint(name, candidates)
  local found = nearest.find(name, candidates)
  return found and ("; did you mean '%s'?"):format(found) or ""
end

return nearest
