-- Series of points {x, y}: thinned for figures, sampled for tables.

local series = {}

local most_points = 400

local ways = {}

function ways.mean(points, first, last)
  local sum = 0
  for i = first, last do sum = sum + points[i][2] end
  return sum / (last - first + 1)
end

function ways.largest(points, first, last)
  local found = points[first][2]
  for i = first + 1, last do found = math.max(found, points[i][2]) end
  return found
end

--- As many points as a figure can show: of more, each stands for several neighbours, at the last
--- one's x.
---@param points number[][]
---@param way "mean"|"largest" what becomes of the neighbours
---@return number[][] thinned
---@return integer each how many points one stands for
function series.thin(points, way)
  local each = (#points + most_points - 1) // most_points
  if each <= 1 then return points, 1 end
  local thinned = {}
  for first = 1, #points, each do
    local last = math.min(first + each - 1, #points)
    thinned[#thinned + 1] = { points[last][1], ways[way](points, first, last) }
  end
  return thinned, each
end

--- The points that carry a marker: about eight, and not the same ones as those of other series.
---@param points number[][]
---@param offset integer number of the series, from 0
---@return number[][] marked
function series.marked(points, offset)
  if #points <= 12 then return points end
  local stride, marked = #points // 8, {}
  for i = 1 + offset * stride // 4 % stride, #points, stride do
    marked[#marked + 1] = points[i]
  end
  return marked
end

--- Some of the x of several series, evenly spaced, with the first and the last.
---@param lists number[][][]
---@param count integer how many at the most
---@return number[] chosen in rising order
function series.sample(lists, count)
  local seen, all = {}, {}
  for _, points in ipairs(lists) do
    for _, point in ipairs(points) do
      if not seen[point[1]] then all[#all + 1] = point[1] end
      seen[point[1]] = true
    end
  end
  table.sort(all)
  if #all <= count then return all end
  local chosen = {}
  for i = 0, count - 1 do chosen[i + 1] = all[1 + i * (#all - 1) // (count - 1)] end
  return chosen
end

--- y by x.
---@param points number[][]
---@return table<number, number> values
function series.by_x(points)
  local values = {}
  for _, point in ipairs(points) do values[point[1]] = point[2] end
  return values
end

---@class marea.Extent
---@field first number[] point
---@field last number[] point
---@field least number[] the first of the points with the least y
---@field most number[] the first of the points with the largest y

--- What a sentence says about a series.
---@param points number[][] at least one
---@return marea.Extent extent
function series.extent(points)
  local extent = { first = points[1], last = points[#points], least = points[1], most = points[1] }
  for _, point in ipairs(points) do
    if point[2] < extent.least[2] then extent.least = point end
    if point[2] > extent.most[2] then extent.most = point end
  end
  return extent
end

return series
