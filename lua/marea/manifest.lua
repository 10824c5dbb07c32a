-- What a manifest says of one file, and whether the file is still so. Of a tensor file it also has
-- the sha-256 of each tensor's bytes, in their order, so that damage can be told to lie in one.

local core = require "marea.core"
local fault = require "marea.fault"
local form = require "marea.form"

local manifest = {}

local length_bytes = 8 -- before the header of a tensor file, little endian
local element_bytes = { f32 = 4, f64 = 8, bf16 = 2, i32 = 4, i64 = 8 }

---@class marea.SealedTensor
---@field name string
---@field bytes integer
---@field sha256 string of the bytes of its elements

---@class marea.SealedFile
---@field bytes integer
---@field sha256 string
---@field header? integer of a tensor file: bytes before the first tensor
---@field tensors? marea.SealedTensor[] of a tensor file: in the order of the file

local function header_bytes(path)
  local stream <close> = assert(io.open(path, "rb"))
  return length_bytes + string.unpack("<I8", stream:read(length_bytes))
end

local function tensors_of(path)
  local file <close> = core.safetensors.open(path)
  local at, list = header_bytes(path), {}
  for i, name in ipairs(file:names()) do
    local bytes = element_bytes[file:dtype(name)]
    for _, extent in ipairs(file:shape(name)) do bytes = bytes * extent end
    list[i] = { name = name, bytes = bytes, sha256 = core.file.sha256_of(path, at, bytes) }
    at = at + bytes
  end
  return list
end

--- Describes a file that was just written. Errors, code 1: it cannot be read.
---@param path string
---@return marea.SealedFile entry
function manifest.seal(path)
  local entry = { bytes = core.file.bytes(path), sha256 = core.file.sha256_of(path) }
  if path:find("%.safetensors$") then
    entry.header, entry.tensors = header_bytes(path), tensors_of(path)
  end
  return entry
end

--- The form of an entry.
---@type marea.Form
manifest.form = form.record {
  bytes = form.at_least(0), sha256 = form.text, header = form.optional(form.at_least(0)),
  tensors = form.optional(form.list(form.record {
    name = form.text, bytes = form.at_least(0), sha256 = form.text })),
}

-- Calls visit(tensor, first byte, bytes) for each tensor of an entry; a result ends the walk.
local function walk(entry, visit)
  local at = entry.header
  for _, tensor in ipairs(entry.tensors) do
    local found = visit(tensor, at)
    if found then return found end
    at = at + tensor.bytes
  end
end

-- The tensor, or "its header", in which a file of another length stops being whole; nil where that
-- is not known.
local function cut_place(entry, bytes)
  if not (entry.tensors and entry.header) or bytes > entry.bytes then return nil end
  if bytes < entry.header then return nil, "its header" end
  return walk(entry, function(tensor, at) return bytes < at + tensor.bytes and tensor.name end)
end

-- The same for a file of the right length that differs.
local function changed_place(path, entry)
  if not (entry.tensors and entry.header) then return nil end
  local name = walk(entry, function(tensor, at)
    return core.file.sha256_of(path, at, tensor.bytes) ~= tensor.sha256 and tensor.name
  end)
  return name, not name and "its header" or nil
end

-- Raises a fault that also names file and tensor as fields.
local function refuse(path, message, relation, tensor, other)
  local place = tensor and "tensor " .. tensor or other
  local where = place and (", %s %s"):format(relation, place) or ""
  local raised = fault.new(3, ("%s is damaged: %s%s"):format(path, message, where))
  raised.file, raised.tensor = path, tensor
  error(raised, 0)
end

--- Refuses a file that is not as it was sealed, with code 3: it says what was expected, what was
--- found, and the tensor in which the damage begins. The fault also has them as `file`, `tensor`.
---@param path string
---@param entry? marea.SealedFile what the manifest has for the file
function manifest.check(path, entry)
  if not entry then refuse(path, "the manifest does not list it") end
  local bytes = core.file.bytes(path)
  if not bytes and core.file.exists(path) then
    refuse(path, ("expected %d bytes, it is no regular file"):format(entry.bytes))
  elseif not bytes then
    refuse(path, ("expected %d bytes, there is no such file"):format(entry.bytes))
  elseif bytes ~= entry.bytes then
    refuse(path, ("expected %d bytes, found %d"):format(entry.bytes, bytes), "within",
           cut_place(entry, bytes))
  end
  local hash = core.file.sha256_of(path)
  if hash ~= entry.sha256 then
    refuse(path, ("expected sha-256 %s, found %s"):format(entry.sha256, hash), "in",
           changed_place(path, entry))
  end
end

return manifest
