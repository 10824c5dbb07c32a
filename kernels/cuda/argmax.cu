/* The position of each row's greatest value. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/real.h"
#include "kernels/cuda/table.h"

namespace {

enum { NOWHERE = 0x7fffffff };

/* The greater of two values; of equals the first. */
template <typename A>
struct candidate {
  A value;
  int at;
  __device__ void meet(A other, int other_at) {
    if (other > value || (other == value && other_at < at)) {
      value = other;
      at = other_at;
    }
  }
};

/* A warp per row: lane i looks at columns i, i + 32, ... NaN compares as neither greater nor
 * equal; a row of nothing else gives 0. */
template <typename T>
__global__ void __launch_bounds__(MR_CUDA_THREADS)
    first_greatest(int64_t rows, int64_t cols, const T *x, int32_t *y) {
  typedef typename mr_cuda_sum<T>::type A;
  const int64_t row = (int64_t)blockIdx.x * (MR_CUDA_THREADS / 32) + threadIdx.x / 32;
  if (row >= rows) return; /* the whole warp */
  candidate<A> best = {(A)-INFINITY, NOWHERE};
  for (int64_t col = threadIdx.x % 32; col < cols; col += 32) {
    best.meet(mr_up(x[row * cols + col]), (int)col);
  }
  MR_CUDA_UNROLL
  for (int bits = 16; bits > 0; bits /= 2) {
    const A other = __shfl_xor_sync(0xffffffffU, best.value, bits);
    const int other_at = __shfl_xor_sync(0xffffffffU, best.at, bits);
    best.meet(other, other_at);
  }
  if (threadIdx.x % 32 == 0) y[row] = best.at == NOWHERE ? 0 : best.at;
}

template <typename T>
int argmax(const mr_launch *l, int64_t rows, int64_t cols, const void *x, int32_t *y) {
  const unsigned blocks = (unsigned)mr_cuda_pieces(rows, MR_CUDA_THREADS / 32);
  return MR_CUDA_LAUNCH(first_greatest<T>, blocks, MR_CUDA_THREADS, 0, mr_cuda_of(l)->stream, rows,
                        cols, (const T *)x, y);
}

template <typename T>
void rows(mr_kernels *k) {
  k->argmax = argmax<T>;
}

}  // namespace

MR_CUDA_ROWS(argmax)
