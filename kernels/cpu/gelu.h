/* GELU in its tanh form: y = x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3). Since
 * (1 + tanh u) / 2 = sigmoid(2 u), one exponential does. */
#ifndef MR_CPU_GELU_H
#define MR_CPU_GELU_H

#include "kernels/cpu/real.h"
#include "kernels/cpu/vector_math.h"

#define MR_GELU_TWICE_ROOT ((real)1.5957691216057307118) /* 2 sqrt(2 / pi) */
#define MR_GELU_CUBIC ((real)0.044715)

static inline real mr_gelu(real x) {
  return x * mr_sigmoid(MR_GELU_TWICE_ROOT * x * (1 + MR_GELU_CUBIC * (x * x)));
}

/* dy times the derivative at x */
static inline real mr_gelu_gradient(real x, real dy) {
  const real square = x * x;
  const real s = mr_sigmoid(MR_GELU_TWICE_ROOT * x * (1 + MR_GELU_CUBIC * square));
  const real slope = MR_GELU_TWICE_ROOT * (1 + 3 * MR_GELU_CUBIC * square); /* of 2 u */
  return dy * (s + x * (s * (1 - s)) * slope);
}

#endif
