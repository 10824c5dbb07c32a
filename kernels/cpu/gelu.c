/* GELU in its tanh form: y = x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3). Since
 * (1 + tanh u) / 2 = sigmoid(2 u), one exponential does. */
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/vector_math.h"

#define TWICE_ROOT ((real)1.5957691216057307118) /* 2 sqrt(2 / pi) */
#define CUBIC ((real)0.044715)

static void forward(int64_t n, const real *restrict x, real *restrict y) {
  for (int64_t i = 0; i < n; i++) {
    y[i] = x[i] * mr_sigmoid(TWICE_ROOT * x[i] * (1 + CUBIC * (x[i] * x[i])));
  }
}

static inline void backward(int64_t n, int fresh, const real *restrict x, const real *dy,
                            real *dx) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const real square = x[i] * x[i];
    const real s = mr_sigmoid(TWICE_ROOT * x[i] * (1 + CUBIC * square));
    const real slope = TWICE_ROOT * (1 + 3 * CUBIC * square); /* of 2 u */
    const real d = dy[i] * (s + x[i] * (s * (1 - s)) * slope);
    dx[i] = fresh ? d : dx[i] + d;
  }
}

int MR_ROW(gelu)(const mr_launch *l, int64_t n, const void *x, void *y) {
#pragma omp parallel for num_threads(mr_threads(l, 8 * n)) schedule(static)
  for (int64_t first = 0; first < n; first += MR_BLOCK) {
    forward(mr_min(MR_BLOCK, n - first), (const real *)x + first, (real *)y + first);
  }
  return 0;
}

int MR_ROW(gelu_backward)(const mr_launch *l, int fresh, int64_t n, const void *x, const void *dy,
                          void *dx) {
#pragma omp parallel for num_threads(mr_threads(l, 8 * n)) schedule(static)
  for (int64_t first = 0; first < n; first += MR_BLOCK) {
    const int64_t count = mr_min(MR_BLOCK, n - first);
    const real *at = (const real *)x + first, *up = (const real *)dy + first;
    if (fresh) {
      backward(count, 1, at, up, (real *)dx + first);
    } else {
      backward(count, 0, at, up, (real *)dx + first);
    }
  }
  return 0;
}
