-- The CUDA of the host, on which kernels of GPUs are tested: what it computes, and that it finds
-- what a GPU would let pass or hang on.

local built = dofile "spec/support/built.lua"
local program = built.path "cuda_host_test"

-- name, what it prints
local works = {
  { "indices", "^0 wrong of 1152\ngood\n$" },
  { "shuffles", "^0 wrong of 256\ngood\n$" },
  { "bf16", "^0 wrong\ngood\n$" },
  { "matrices", "^0 wrong of 256\ngood\n$" },
  { "events", "^with an event 0 of 20 seeds wrong\nwithout one some\ngood\n$" },
  { "copies", "^pinned memory read late; other memory wrong 0 times\ngood\n$" },
  { "fresh", "^device memory %-?nan\nshared memory %-?nan\ngood\n$" },
}

local found = {
  { "half_leaves", "waits in __syncthreads at spec/cuda/.*thread 64,0,0 has ended" },
  { "two_barriers", "different barriers: thread %d+,0,0 waits .*, thread %d+,0,0 waits " },
  { "half_warp", "waits in a shuffle of lanes ffffffff at .*, thread 16,0,0 has ended" },
  { "two_masks", "waits in a shuffle of lanes ffffffff at " },
  { "not_in_mask", "block %d,0,0: a lane that is not in its mask 0000ffff at " },
  { "shuffle_and_barrier", "waits in __syncthreads at .*, thread %d+,0,0 has ended" },
  { "much_shared", "more than 48 KiB of static shared memory at " },
  { "host_pointer", "argument 1 has 0x%x+, which is no memory of the device" },
  { "host_pointer_in_struct", "argument 1 has 0x%x+, which is no memory of the device" },
  { "freed", "argument 1 has 0x%x+, which is no memory of the device" },
  { "wrong_grid", "grid 1,1,1 of blocks 2048,1,1 with 0 bytes of shared memory" },
  { "wrong_copy", "a copy of 8 bytes of kind 1 from 0x%x+ %(host%) to 0x%x+ " },
}

-- Under the sanitizers only.
local sanitized = {
  { "host_reads", "AddressSanitizer: use%-after%-poison" },
  { "past_the_end", "AddressSanitizer: heap%-buffer%-overflow" },
  { "past_shared", "index 128 out of bounds for type 'float %[128%]'" },
}

local function is_sanitized()
  local file <close> = assert(io.open(program, "rb"))
  return file:read("a"):find("__asan_init", 1, true) ~= nil
end

describe("CUDA on the host", function()
  for _, case in ipairs(works) do
    it("does right: " .. case[1], function()
      if not program then return pending "built with MAREA_CUDA_HOST only" end
      local code, output = built.run(program, case[1])
      assert.are.equal(0, code, output)
      assert.is_truthy(output:find(case[2]), output)
    end)
  end

  for _, case in ipairs(found) do
    it("finds: " .. case[1], function()
      if not program then return pending "built with MAREA_CUDA_HOST only" end
      local _, output = built.run(program, case[1])
      assert.is_truthy(output:find(case[2]), output)
    end)
  end

  it("finds reads and writes that are out of place", function()
    if not program or not is_sanitized() then return pending "under the sanitizers only" end
    for _, case in ipairs(sanitized) do
      local code, output = built.run(program, case[1])
      assert.are_not.equal(0, code, output)
      assert.is_truthy(output:find(case[2]), output)
    end
  end)
end)
