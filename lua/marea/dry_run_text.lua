-- What a dry run found, as lines of text.

local wording = require "marea.wording"

local text = {}

local function plan_lines(result, add)
  local plan, sum, by_rank = result.plan, 0, {}
  for i, tokens in ipairs(result.tokens) do
    sum, by_rank[i] = sum + tokens, wording.whole(tokens)
  end
  add("plan        %d updates of up to %d microbatches of %d sequences a rank, %d rank%s",
      plan.updates, plan.accumulation, plan.batch_size_per_rank, plan.ranks,
      plan.ranks == 1 and "" or "s")
  add("tokens      %s in all (%s)", wording.whole(sum), table.concat(by_rank, " + "))
  if result.first > result.last then
    add("this start  is at update %d of %d already", result.last, plan.updates)
  else
    add("this start  updates %d to %d", result.first, result.last)
  end
end

local function parameter_lines(result, add)
  local width = 0
  for _, item in ipairs(result.parameters) do width = math.max(width, #item.name) end
  add("parameters  %s, %s", wording.whole(result.count), result.dtype)
  for _, item in ipairs(result.parameters) do
    local name = item.name .. (" "):rep(width - #item.name)
    add("            %s  %s", name, wording.shape(item.shape))
  end
end

local function memory_lines(memory, add)
  local held = memory.parameters + memory.gradients + memory.optimizer
  add("memory      %s bytes a rank at the peak", wording.whole(memory.peak))
  add("            parameters %s, gradients %s, optimizer %s, a window %s",
      wording.whole(memory.parameters), wording.whole(memory.gradients),
      wording.whole(memory.optimizer), wording.whole(memory.peak - held))
  if #memory.updates > 0 then
    add("            measured on the heaviest microbatches, of update%s %s",
        #memory.updates == 1 and "" or "s", table.concat(memory.updates, " and "))
  end
end

local function file_lines(result, add)
  add("writes      %s/", result.run)
  if result.moved_to then add("            (an older run there moves to %s)", result.moved_to) end
  if result.held_by then add("            (which is in use by %s)", result.held_by) end
  for i = 1, #result.files, 5 do
    add("            %s", table.concat(result.files, "  ", i, math.min(i + 4, #result.files)))
  end
  local updates = result.checkpoints.updates
  if #updates == 0 then return end
  local names = {}
  for i, update in ipairs(updates) do names[i] = ("step-%06d"):format(update) end
  if #names > 4 then names = { names[1], names[2], "...", names[#names] } end
  add("            checkpoints/%s", table.concat(names, "  "))
  add("            of %s bytes each; the newest %d stay", wording.whole(result.checkpoints.bytes),
      result.checkpoints.keep)
end

--- The result as text.
---@param result marea.DryRun
---@return string text without a newline at the end
function text.of(result)
  local lines = {}
  local function add(...) lines[#lines + 1] = string.format(...) end
  plan_lines(result, add)
  parameter_lines(result, add)
  memory_lines(result.memory, add)
  file_lines(result, add)
  lines[#lines + 1] = "nothing was trained, and nothing written"
  return table.concat(lines, "\n")
end

return text
