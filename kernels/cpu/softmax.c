/* Softmax over the last axis. */
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/vector.h"
#include "kernels/cpu/vector_math.h"

/* y = e^(x - highest); their sum */
static real exponentials(int64_t n, real highest, const real *restrict x, real *restrict y) {
  real sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) {
    y[i] = mr_exp(x[i] - highest);
    sum += y[i];
  }
  return sum;
}

static void forward(int64_t n, const real *restrict x, real *restrict y) {
  const real highest = mr_greatest(n, x);
  real sum = 0;
  for (int64_t first = 0; first < n; first += MR_RUN) {
    sum += exponentials(mr_min(MR_RUN, n - first), highest, x + first, y + first);
  }
  const real share = 1 / sum;
  for (int64_t i = 0; i < n; i++) y[i] *= share;
}

static void backward(int64_t n, const real *restrict y, const real *restrict dy,
                     real *restrict dx) {
  real sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += y[i] * dy[i];
  for (int64_t i = 0; i < n; i++) dx[i] += y[i] * (dy[i] - sum);
}

int MR_ROW(softmax)(const mr_launch *l, int64_t rows, int64_t cols, const void *x, void *y) {
#pragma omp parallel for num_threads(mr_threads(l, 8 * rows * cols)) schedule(static)
  for (int64_t row = 0; row < rows; row++) {
    forward(cols, (const real *)x + row * cols, (real *)y + row * cols);
  }
  return 0;
}

int MR_ROW(softmax_backward)(const mr_launch *l, int64_t rows, int64_t cols, const void *y,
                             const void *dy, void *dx) {
#pragma omp parallel for num_threads(mr_threads(l, 2 * rows * cols)) schedule(static)
  for (int64_t row = 0; row < rows; row++) {
    const int64_t at = row * cols;
    backward(cols, (const real *)y + at, (const real *)dy + at, (real *)dx + at);
  }
  return 0;
}
