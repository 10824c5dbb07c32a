-- A script for specs that trains in any Lua: a line through random points, each rank with its own.
-- With a word it makes a mistake at the end, on the line that says so.

local marea = require "marea"
local nn, tensor, world = marea.nn, marea.tensor, marea.world()

local model = nn.Linear { input = 3, output = 1 }
model:materialize { seed = 20, dtype = "f32" }
local sgd = marea.optim.SGD(model, { lr = 0.1 })
local replica = marea.replicate(model, {
  loss = function(m, batch) return nn.squared_error(m(batch.x), batch.y):reshape { batch.rows } end,
})

local wanted, rows = tensor.from { { 1 }, { 2 }, { 3 } }, 8
for update = 1, 60 do
  local x = tensor.normal({ rows, 3 }, { seed = update, stream = world:rank() })
  replica:zero_grad()
  local batch = { x = x, y = x:matmul(wanted), rows = rows }
  replica:loss(batch, tensor.full({ rows }, 1 / rows)):backward()
  sgd:step()
end

local found = {}
for i, value in ipairs(model.weight:values()) do found[i] = ("%.3f"):format(value) end
if world:rank() == 0 then print(world:size(), table.concat(found, " ")) end
if ... then wanted:matmul(wanted) end -- the mistake
