-- Devices of CUDA for specs: NVIDIA's own library where it was built, and the one that does the
-- same on the processor (-DMAREA_CUDA_HOST=ON), so that programs compute on `cuda` without a GPU.

local core = require "marea.core"
local launch = require "marea.launch"

local cuda = {}

local folder = (launch.program():match("^(.*)/[^/]*$") or ".") .. "/../lib/marea/"

local function built(name)
  local path = folder .. name
  return core.file.exists(path) and path or nil
end

--- The library that stands in for CUDA on the processor; nil where it was not built.
---@type string?
cuda.host = built "libmarea_cuda_host.so"

--- NVIDIA's; nil where there was no toolkit.
---@type string?
cuda.real = built "libmarea_cuda.so"

--- NCCL's; nil where there was no toolkit with it.
---@type string?
cuda.nccl = built "libmarea_nccl.so"

--- The variables under which a program finds `devices` GPUs of the processor.
---@param more? table<string, string> further ones
---@return table<string, string> variables
function cuda.variables(more)
  local set = { MAREA_CUDA_LIBRARY = cuda.host, MAREA_NCCL_LIBRARY = cuda.host,
                MAREA_CUDA_DEVICES = "2" }
  for name, value in pairs(more or {}) do set[name] = value end
  return set
end

return cuda
