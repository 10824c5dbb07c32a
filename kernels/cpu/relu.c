/* y = max(x, 0); NaN stays NaN. The gradient at 0 is 0. */
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"

static void forward(int64_t n, const real *restrict x, real *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
}

static inline void backward(int64_t n, int fresh, const real *restrict x, const real *dy,
                            real *dx) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const real d = x[i] > 0 ? dy[i] : 0;
    dx[i] = fresh ? d : dx[i] + d;
  }
}

int MR_ROW(relu)(const mr_launch *l, int64_t n, const void *x, void *y) {
  MR_EACH_PIECE(l, n, first, n, MR_BLOCK, {
    forward(mr_min(MR_BLOCK, n - first), (const real *)x + first, (real *)y + first);
  });
  return 0;
}

int MR_ROW(relu_backward)(const mr_launch *l, int fresh, int64_t n, const void *x, const void *dy,
                          void *dx) {
  MR_EACH_PIECE(l, n, first, n, MR_BLOCK, {
    const int64_t count = mr_min(MR_BLOCK, n - first);
    const real *at = (const real *)x + first, *up = (const real *)dy + first;
    if (fresh) {
      backward(count, 1, at, up, (real *)dx + first);
    } else {
      backward(count, 0, at, up, (real *)dx + first);
    }
  });
  return 0;
}
