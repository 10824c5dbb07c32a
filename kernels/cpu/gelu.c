/* y = gelu(x), element by element; see gelu.h. */
#include "kernels/cpu/gelu.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"

static void forward(int64_t n, const real *restrict x, real *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = mr_gelu(x[i]);
}

static inline void backward(int64_t n, int fresh, const real *restrict x, const real *dy,
                            real *dx) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const real d = mr_gelu_gradient(x[i], dy[i]);
    dx[i] = fresh ? d : dx[i] + d;
  }
}

int MR_ROW(gelu)(const mr_launch *l, int64_t n, const void *x, void *y) {
  MR_EACH_PIECE(l, 8 * n, first, n, MR_BLOCK, {
    forward(mr_min(MR_BLOCK, n - first), (const real *)x + first, (real *)y + first);
  });
  return 0;
}

int MR_ROW(gelu_backward)(const mr_launch *l, int fresh, int64_t n, const void *x, const void *dy,
                          void *dx) {
  MR_EACH_PIECE(l, 8 * n, first, n, MR_BLOCK, {
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
