-- The kernels of GPUs, run on the host by fibers, beside the processor's: every row, extents 0, 1,
-- primes and both sides of warps and blocks, f32 and f64, in several orders of blocks and threads.

local built = dofile "spec/support/built.lua"
local rows = built.path "cuda_rows"

describe("the kernels of GPUs", function()
  it("compute what the processor's do, and the same bits in any order of threads", function()
    if not rows then return pending "built with MAREA_CUDA_HOST only" end
    local code, output = built.run(rows, "1 2 3")
    assert.are.equal(0, code, output)
    assert.is_nil(output:find "without a case", output)
    local compared, comparisons = output:match "(%d+) rows, (%d+) comparisons, 0 differences"
    assert.is_true(tonumber(compared) > 40 and tonumber(comparisons) > 7000, output)
  end)

  it("differ when any one of their barriers is taken away", function()
    if not rows then return pending "built with MAREA_CUDA_HOST only" end
    local code, output = built.run(rows, "--barriers 1 2 3")
    assert.are.equal(0, code, output)
    local barriers = tonumber(output:match "(%d+) barriers, 0 not missed")
    assert.is_true(barriers and barriers > 3, output)
  end)
end)
