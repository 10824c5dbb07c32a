/* A function of each line of a matrix, its last axis: by a warp, or by a block where lines are
 * long. */
#ifndef MR_CUDA_LINES_H
#define MR_CUDA_LINES_H

#include <stdint.h>

#include "kernels/cuda/each.h"
#include "kernels/cuda/real.h"
#include "kernels/cuda/sums.h"

enum { MR_CUDA_WARP_COLS = 1024 /* of the longest line that a warp works on */ };

/* The threads that share a line, of which this is number `thread`. All of them come to each sum
 * and maximum. */
template <int threads>
struct mr_cuda_line {
  static const int width = threads;
  int thread;

  template <typename A>
  __device__ A sum(A value) const {
    if constexpr (width == 32) return mr_warp_sum(value);
    return mr_block_sum<width>(value);
  }
  template <typename A>
  __device__ A greatest(A value) const {
    if constexpr (width == 32) return mr_warp_max(value);
    return mr_block_max<width>(value);
  }
};

/* f(line, row) for each row: by `width` threads, of which MR_CUDA_THREADS are a block. */
template <int width, typename F>
__global__ void __launch_bounds__(MR_CUDA_THREADS) mr_cuda_lines_kernel(int64_t rows, F f) {
  const int64_t row = (int64_t)blockIdx.x * (MR_CUDA_THREADS / width) + threadIdx.x / width;
  if (row >= rows) return; /* a whole warp; blocks that share a line all have one */
  f(mr_cuda_line<width>{(int)(threadIdx.x % width)}, row);
}

/* Runs f(line, row), a __device__ operator() of a struct, a template over the type of `line`, for
 * rows of `cols` columns. Calls must not depend on each other. */
template <typename F>
inline int mr_cuda_lines(const mr_launch *l, int64_t rows, int64_t cols, F f) {
  const cudaStream_t stream = mr_cuda_of(l)->stream;
  if (cols <= MR_CUDA_WARP_COLS) {
    const unsigned blocks = (unsigned)mr_cuda_pieces(rows, MR_CUDA_THREADS / 32);
    return MR_CUDA_LAUNCH((mr_cuda_lines_kernel<32, F>), blocks, MR_CUDA_THREADS, 0, stream, rows,
                          f);
  }
  return MR_CUDA_LAUNCH((mr_cuda_lines_kernel<MR_CUDA_THREADS, F>), (unsigned)rows, MR_CUDA_THREADS,
                        0, stream, rows, f);
}

/* The greatest of some values, and the sum of e^(value - greatest), found in one pass: the sum is
 * scaled anew whenever the greatest changes. Values of -inf add nothing, NaN makes the sum NaN. */
template <typename A>
struct mr_cuda_exponentials {
  static const int together = 4;
  A greatest = (A)-INFINITY, sum = 0;

  __device__ void take(const A (&value)[together]) {
    A top = greatest;
    MR_CUDA_UNROLL
    for (int i = 0; i < together; i++) top = max(top, value[i]);
    if (top > greatest) sum *= exp(greatest - top);
    greatest = top;
    MR_CUDA_UNROLL
    for (int i = 0; i < together; i++) {
      if (value[i] != (A)-INFINITY) sum += exp(value[i] - greatest);
    }
  }

  /* Those of all threads of the line together, for each of them. */
  template <typename Line>
  __device__ mr_cuda_exponentials over(const Line &line) const {
    mr_cuda_exponentials all;
    all.greatest = line.greatest(greatest);
    all.sum = line.sum(greatest == all.greatest ? sum : sum * exp(greatest - all.greatest));
    return all;
  }
};

/* Of x[cols], for the threads of a line, each of which gets them. */
template <typename T, typename Line>
__device__ inline mr_cuda_exponentials<typename mr_cuda_sum<T>::type> mr_line_exponentials(
    const Line &line, int64_t cols, const T *x) {
  typedef typename mr_cuda_sum<T>::type A;
  const int together = mr_cuda_exponentials<A>::together;
  mr_cuda_exponentials<A> own;
  for (int64_t first = line.thread; first < cols; first += together * Line::width) {
    A value[together];
    MR_CUDA_UNROLL
    for (int i = 0; i < together; i++) {
      const int64_t col = first + i * Line::width;
      value[i] = col < cols ? mr_up(x[col]) : (A)-INFINITY;
    }
    own.take(value);
  }
  return own.over(line);
}

#endif
