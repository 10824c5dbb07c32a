/* How many tiles lie before each sequence. */
#include "kernels/cuda/attention.h"
#include "kernels/cuda/stream.h"

namespace {

/* The sum of the values of this lane and those before it. */
__device__ inline int64_t warp_prefix(int64_t value) {
  const unsigned lane = threadIdx.x % 32;
  MR_CUDA_UNROLL
  for (unsigned delta = 1; delta < 32; delta *= 2) {
    const int64_t other = __shfl_up_sync(0xffffffffU, value, delta);
    if (lane >= delta) value += other;
  }
  return value;
}

/* One block; each round takes as many sequences as there are threads. */
__global__ void __launch_bounds__(MR_CUDA_THREADS)
    count_tiles(int64_t sequences, int64_t tile, const int64_t *lengths, int64_t *before) {
  const int warps = MR_CUDA_THREADS / 32;
  MR_CUDA_SHARED(int64_t, of_warp, [2][warps]);
  int64_t carried = 0;
  if (threadIdx.x == 0) before[0] = 0;
  for (int64_t first = 0, round = 0; first < sequences; first += MR_CUDA_THREADS, round++) {
    const int64_t s = first + threadIdx.x;
    const int64_t through = warp_prefix(s < sequences ? (lengths[s] + tile - 1) / tile : 0);
    int64_t *mine = of_warp[round % 2]; /* the other half may still be read */
    if (threadIdx.x % 32 == 31) mine[threadIdx.x / 32] = through;
    __syncthreads();
    int64_t sum = carried;
    for (int i = 0; i < warps; i++) {
      if (i == (int)threadIdx.x / 32 && s < sequences) before[s + 1] = sum + through;
      sum += mine[i];
    }
    carried = sum;
  }
}

}  // namespace

int mr_attention_count_tiles(const mr_launch *l, int64_t sequences, int64_t tile,
                             const int64_t *lengths, int64_t *before) {
  return MR_CUDA_LAUNCH(count_tiles, 1, MR_CUDA_THREADS, 0, mr_cuda_of(l)->stream, sequences, tile,
                        lengths, before);
}
