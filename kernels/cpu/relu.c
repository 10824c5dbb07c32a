/* y = max(x, 0); NaN stays NaN. The gradient at 0 is 0. */
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"

static void forward(int64_t n, const real *restrict x, real *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
}

static void backward(int64_t n, const real *restrict x, const real *restrict dy,
                     real *restrict dx) {
  for (int64_t i = 0; i < n; i++) dx[i] += x[i] > 0 ? dy[i] : 0;
}

int MR_ROW(relu)(const mr_launch *l, int64_t n, const void *x, void *y) {
#pragma omp parallel for num_threads(mr_threads(l, n)) schedule(static)
  for (int64_t first = 0; first < n; first += MR_BLOCK) {
    forward(mr_min(MR_BLOCK, n - first), (const real *)x + first, (real *)y + first);
  }
  return 0;
}

int MR_ROW(relu_backward)(const mr_launch *l, int64_t n, const void *x, const void *dy, void *dx) {
#pragma omp parallel for num_threads(mr_threads(l, n)) schedule(static)
  for (int64_t first = 0; first < n; first += MR_BLOCK) {
    backward(mr_min(MR_BLOCK, n - first), (const real *)x + first, (const real *)dy + first,
             (real *)dx + first);
  }
  return 0;
}
