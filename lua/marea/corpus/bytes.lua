-- Texts as symbols: one per byte, then a mark that begins every sequence, and padding.

local bytes = {
  vocabulary = 258, begin = 256, pad = 257,
  description = "bytes 0 to 255, 256 begins a sequence, 257 pads",
}

--- The sequence of a text of n bytes: inputs are the mark and all bytes but the last, targets are
--- the bytes; all n positions are supervised.
---@param text string
---@return integer[] inputs n ids, 0 to 256
---@return integer[] targets n ids, 0 to 255
function bytes.encode(text)
  local inputs, targets = { bytes.begin }, {}
  for i = 1, #text do
    local byte = text:byte(i)
    targets[i] = byte
    if i < #text then inputs[i + 1] = byte end
  end
  return inputs, targets
end

--- The text of a list of ids; marks and padding are left out.
---@param ids integer[]
---@return string text
function bytes.decode(ids)
  local parts = {}
  for _, id in ipairs(ids) do
    if id < bytes.begin then parts[#parts + 1] = string.char(id) end
  end
  return table.concat(parts)
end

return bytes
