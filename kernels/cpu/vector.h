/* Vectors of reals, for the loops that compilers do not turn into vector code by themselves. */
#ifndef MR_CPU_VECTOR_H
#define MR_CPU_VECTOR_H

#include <math.h>
#include <stdint.h>

#include "kernels/cpu/real.h"

#if defined(__AVX512F__)
#define MR_VECTOR_BYTES 64
#elif defined(__AVX__)
#define MR_VECTOR_BYTES 32
#else
#define MR_VECTOR_BYTES 16
#endif

enum { MR_VECTOR_REALS = MR_VECTOR_BYTES / sizeof(real) };

/* A vector of reals, which may lie at the address of any real, and one of its bits. */
typedef real vector __attribute__((vector_size(MR_VECTOR_BYTES), aligned(sizeof(real)), may_alias));
#if MR_REAL_BITS == 64
typedef int64_t vector_bits __attribute__((vector_size(MR_VECTOR_BYTES)));
#else
typedef int32_t vector_bits __attribute__((vector_size(MR_VECTOR_BYTES)));
#endif

/* The greatest of n reals, -inf for none; NaN is passed over. */
static inline real mr_greatest(int64_t n, const real *x) {
  vector best = (vector){0} - (real)INFINITY;
  int64_t i = 0;
  for (; i + MR_VECTOR_REALS <= n; i += MR_VECTOR_REALS) {
    const vector next = *(const vector *)(x + i);
    const vector_bits greater = next > best;
    best = (vector)(((vector_bits)next & greater) | ((vector_bits)best & ~greater));
  }
  real greatest = -(real)INFINITY;
  for (int j = 0; j < MR_VECTOR_REALS; j++) greatest = best[j] > greatest ? best[j] : greatest;
  for (; i < n; i++) greatest = x[i] > greatest ? x[i] : greatest;
  return greatest;
}

#endif
