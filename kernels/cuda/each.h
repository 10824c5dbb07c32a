/* A function of each element of an array, or of a matrix. */
#ifndef MR_CUDA_EACH_H
#define MR_CUDA_EACH_H

#include <stdint.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/stream.h"

enum { MR_CUDA_THREADS = 256, MR_CUDA_MOST_BLOCKS = 1 << 16 };

inline int64_t mr_cuda_min(int64_t a, int64_t b) { return a < b ? a : b; }

inline int64_t mr_cuda_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* How many pieces of `length` cover n. */
inline int64_t mr_cuda_pieces(int64_t n, int64_t length) { return (n + length - 1) / length; }

/* The row and column of element i of a matrix of `cols` columns, in 32 bits where they do: a
 * division of 64 bits takes a hundred instructions. */
struct mr_cuda_place {
  int64_t row, col;
};

__device__ inline mr_cuda_place mr_place(int64_t i, int64_t cols) {
  if ((((uint64_t)i | (uint64_t)cols) >> 32) == 0) {
    const uint32_t row = (uint32_t)i / (uint32_t)cols;
    return {row, (uint32_t)i - row * (uint32_t)cols};
  }
  const int64_t row = i / cols;
  return {row, i - row * cols};
}

/* f(i) for i in 0 .. n - 1. Thread i of the grid takes i, i + threads of the grid, ... */
template <typename F>
__global__ void __launch_bounds__(MR_CUDA_THREADS) mr_cuda_each_kernel(int64_t n, F f) {
  const int64_t step = (int64_t)gridDim.x * MR_CUDA_THREADS;
  for (int64_t i = (int64_t)blockIdx.x * MR_CUDA_THREADS + threadIdx.x; i < n; i += step) f(i);
}

/* Runs f(i), a __device__ operator() of a struct, for i in 0 .. n - 1. Calls must not depend on
 * each other. */
template <typename F>
inline int mr_cuda_each(const mr_launch *l, int64_t n, F f) {
  const int64_t wanted = mr_cuda_pieces(n, MR_CUDA_THREADS);
  const unsigned blocks = (unsigned)mr_cuda_min(wanted, MR_CUDA_MOST_BLOCKS);
  return MR_CUDA_LAUNCH(mr_cuda_each_kernel<F>, blocks, MR_CUDA_THREADS, 0, mr_cuda_of(l)->stream,
                        n, f);
}

#endif
