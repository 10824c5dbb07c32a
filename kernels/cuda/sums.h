/* Sums and greatest values over a warp and a block, in an order that follows from the shape. */
#ifndef MR_CUDA_SUMS_H
#define MR_CUDA_SUMS_H

#include "kernels/cuda/cuda.h"

/* The sum of the 32 lanes' values, for each of them. */
template <typename A>
__device__ inline A mr_warp_sum(A value) {
  MR_CUDA_UNROLL
  for (int bits = 16; bits > 0; bits /= 2) value += __shfl_xor_sync(0xffffffffU, value, bits);
  return value;
}

/* The greatest of the 32 lanes' values, NaNs passed over. */
template <typename A>
__device__ inline A mr_warp_max(A value) {
  MR_CUDA_UNROLL
  for (int bits = 16; bits > 0; bits /= 2) {
    value = max(value, __shfl_xor_sync(0xffffffffU, value, bits));
  }
  return value;
}

/* The sum over a block of `threads` threads in one dimension, for each of them. All of them come
 * here; it ends in a barrier, so that it can be called again. */
template <int threads, typename A>
__device__ inline A mr_block_sum(A value) {
  MR_CUDA_SHARED(A, partial, [threads / 32]);
  value = mr_warp_sum(value);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  A sum = partial[0];
  MR_CUDA_UNROLL
  for (int i = 1; i < threads / 32; i++) sum += partial[i];
  __syncthreads();
  return sum;
}

/* Likewise the greatest value, NaNs passed over; but a barrier must lie between two calls. */
template <int threads, typename A>
__device__ inline A mr_block_max(A value) {
  MR_CUDA_SHARED(A, partial, [threads / 32]);
  value = mr_warp_max(value);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  A greatest = partial[0];
  MR_CUDA_UNROLL
  for (int i = 1; i < threads / 32; i++) greatest = max(greatest, partial[i]);
  return greatest;
}

#endif
