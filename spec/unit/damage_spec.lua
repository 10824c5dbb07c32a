-- Damage to checkpoints: every byte of a small one flipped, every file cut at every length; each
-- time the message names the file, and the tensor where it is a tensor file.

local checkpoint = require "marea.checkpoint"
local core = require "marea.core"
local fault = require "marea.fault"
local json = require "marea.json"
local manifest = require "marea.manifest"
local scratch = dofile "spec/support/scratch.lua"
local small = dofile "spec/support/small_checkpoint.lua"

local function put(path, text)
  local stream <close> = assert(io.open(path, "wb"))
  stream:write(text)
end

local function flip(text, position)
  return text:sub(1, position - 1) .. string.char(text:byte(position) ~ 0xFF) ..
    text:sub(position + 1)
end

-- {name, bytes} of the tensors of a file, in order, and the bytes before them.
local function layout(path)
  local file <close> = core.safetensors.open(path)
  local list = {}
  for i, name in ipairs(file:names()) do
    list[i] = { name = name, bytes = 4 * file:tensor(name):count() }
  end
  return list, 8 + string.unpack("<I8", scratch.read(path))
end

-- What holds the byte at `position` (from 1), as messages name it; "" where no tensor can be named.
local function place_of(path, position)
  if not path:find("safetensors$") then return "" end
  local tensors, at = layout(path)
  if position <= at then return "its header" end
  for _, tensor in ipairs(tensors) do
    at = at + tensor.bytes
    if position <= at then return "tensor " .. tensor.name end
  end
  error("behind the end")
end

-- The whole checkpoint is verified for its manifest, for every 40th time and where it is asked for;
-- in between the one file is checked, as verifying does after it has read the manifest.
local times = 0
local function expect_refusal(folder, path, place, entry)
  times = times + 1
  local good, raised
  if not entry or times % 40 == 0 then
    good, raised = pcall(checkpoint.verify, folder)
  else
    good, raised = pcall(manifest.check, path, entry)
  end
  assert(not good, path .. ": the damage was not seen")
  local message, code = fault.of(raised)
  assert.are.equal(3, code, message)
  assert(message:find(path, 1, true), message)
  assert(message:find(place, 1, true), ("expected %s: %s"):format(place, message))
end

describe("a checkpoint", function()
  local scratch_folder, folder

  before_each(function()
    scratch_folder = scratch.folder()
    folder = scratch_folder.path .. "/step-000002"
    small.write(folder)
  end)

  after_each(function() getmetatable(scratch_folder).__close(scratch_folder) end)

  for _, name in ipairs(small.files) do
    it("is refused with any byte flipped of " .. name, function()
      local path = folder .. "/" .. name
      local text, entry = scratch.read(path), checkpoint.manifest(folder).files[name]
      assert.is_true(#text > 100)
      local places = {}
      for position = 1, #text do places[position] = place_of(path, position) end
      for position = 1, #text do
        put(path, flip(text, position))
        expect_refusal(folder, path, places[position], entry)
      end
      put(path, text)
      assert.are.equal(2, checkpoint.verify(folder).update)
    end)

    it("is refused with any other length of " .. name, function()
      local path = folder .. "/" .. name
      local text, entry = scratch.read(path), checkpoint.manifest(folder).files[name]
      local places = {}
      for length = 0, #text - 1 do places[length] = place_of(path, length + 1) end
      for length = 0, #text - 1 do
        put(path, text:sub(1, length))
        expect_refusal(folder, path, places[length], entry)
      end
      for _, more in ipairs { "\0", "\n", text } do
        put(path, text .. more)
        expect_refusal(folder, path, "")
      end
      os.remove(path)
      expect_refusal(folder, name == "manifest.json" and folder or path, "")
    end)
  end

  it("names the first of several damaged tensors", function()
    local path = folder .. "/parameters.safetensors"
    local text = scratch.read(path)
    put(path, flip(flip(text, #text), #text - 20))
    expect_refusal(folder, path, "tensor weight")
  end)

  it("that was sealed without its tensors is still read, and names the file", function()
    local record = checkpoint.manifest(folder)
    for _, file in pairs(record.files) do file.tensors, file.header = nil, nil end
    record.sha256 = nil
    record.sha256 = core.file.sha256(json.encode(record))
    put(folder .. "/manifest.json", json.encode(record, { indent = true }) .. "\n")
    assert.are.equal(2, checkpoint.verify(folder).update)
    local path = folder .. "/parameters.safetensors"
    local text = scratch.read(path)
    put(path, flip(text, #text))
    local message = fault.of(select(2, pcall(checkpoint.verify, folder)))
    assert.is_truthy(message:find("found %x+$"), message)
    put(path, text:sub(1, -2))
    message = fault.of(select(2, pcall(checkpoint.verify, folder)))
    assert.is_truthy(message:find("found %d+$"), message)
  end)
end)

describe("a state that is sealed, but is none", function()
  it("is refused, naming what it lacks", function()
    for lacking, change in pairs {
      ["world: expected an integer of at least 1, got a string"] =
        function(state) state.world = "2" end,
      ["streams: expected one for each of 2 ranks, got 1"] =
        function(state) state.streams = { "one" } end,
      ["microbatches[2]: expected an integer, got a number"] =
        function(state) state.microbatches = { 1, 2.5 } end,
      ["sequences: expected a list, got nothing"] = function(state) state.sequences = nil end,
      ["lock.plan.chain: expected a string, got nothing"] =
        function(state) state.lock.plan.chain = nil end,
      ["expected update 2, found 3"] = function(state) state.update = 3 end,
    } do
      local place <close> = scratch.folder()
      local folder = place.path .. "/step-000002"
      small.write(folder)
      local state = json.decode(scratch.read(folder .. "/state.json"))
      change(state)
      put(folder .. "/state.json", json.encode(state))
      local record = checkpoint.manifest(folder)
      record.files["state.json"] = manifest.seal(folder .. "/state.json")
      record.sha256 = nil
      record.sha256 = core.file.sha256(json.encode(record))
      put(folder .. "/manifest.json", json.encode(record, { indent = true }) .. "\n")
      checkpoint.verify(folder)
      local good, raised = pcall(checkpoint.open, folder)
      assert.is_false(good)
      local message, code = fault.of(raised)
      assert.are.equal(3, code)
      assert.is_truthy(message:find("state.json is damaged: " .. lacking, 1, true), message)
    end
  end)
end)
