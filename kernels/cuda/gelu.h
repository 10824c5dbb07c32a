/* GELU in its tanh form: y = x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3). Since
 * (1 + tanh u) / 2 = sigmoid(2 u), one exponential does. */
#ifndef MR_CUDA_GELU_H
#define MR_CUDA_GELU_H

#include "kernels/cuda/each.h"
#include "kernels/cuda/real.h"

#define MR_GELU_TWICE_ROOT 1.5957691216057307118 /* 2 sqrt(2 / pi) */
#define MR_GELU_CUBIC 0.044715

/* 2 u */
template <typename A>
__device__ inline A mr_gelu_twice_u(A x) {
  return A(MR_GELU_TWICE_ROOT) * x * (1 + A(MR_GELU_CUBIC) * (x * x));
}

/* Element i of y = gelu(x). */
template <typename T>
struct mr_cuda_gelu {
  typedef typename mr_cuda_sum<T>::type A;
  const T *x;
  T *y;
  __device__ void operator()(int64_t i) const {
    const A v = mr_up(x[i]);
    y[i] = mr_down<T>(v * mr_sigmoid(mr_gelu_twice_u(v)));
  }
};

/* Element i of dx, written or added to; dy may be dx. */
template <typename T>
struct mr_cuda_gelu_backward {
  typedef typename mr_cuda_sum<T>::type A;
  int fresh;
  const T *x, *dy;
  T *dx;
  __device__ void operator()(int64_t i) const {
    const A v = mr_up(x[i]), up = mr_up(dy[i]);
    const A s = mr_sigmoid(mr_gelu_twice_u(v));
    const A slope = A(MR_GELU_TWICE_ROOT) * (1 + 3 * A(MR_GELU_CUBIC) * (v * v)); /* of 2 u */
    const A d = up * (s + v * (s * (1 - s)) * slope);
    dx[i] = mr_down<T>(fresh ? d : mr_up(dx[i]) + d);
  }
};

#endif
