/* The real types of kernels, and what they are summed in. */
#ifndef MR_CUDA_REAL_H
#define MR_CUDA_REAL_H

#include "kernels/cuda/cuda.h"

/* The type that elements of type T are worked with and summed in. */
template <typename T>
struct mr_cuda_sum {
  typedef T type;
};
template <>
struct mr_cuda_sum<__nv_bfloat16> {
  typedef float type;
};

/* An element for arithmetic, and back, rounded. */
template <typename T>
__device__ inline typename mr_cuda_sum<T>::type mr_up(T x) {
  return (typename mr_cuda_sum<T>::type)x;
}

template <typename T>
__device__ inline T mr_down(typename mr_cuda_sum<T>::type x) {
  return (T)x;
}

/* 1 / (1 + e^-x): 0 and 1 at the far ends */
template <typename A>
__device__ inline A mr_sigmoid(A x) {
  return 1 / (1 + exp(-x));
}

#endif
