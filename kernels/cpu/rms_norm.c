/* y = x rstd w over the last axis, rstd = 1 / sqrt(mean of squares + epsilon). */
#include <math.h>
#include <stddef.h>
#include <tgmath.h>

#include "kernels/cpu/columns.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"

static real statistic(int64_t n, real epsilon, const real *restrict x) {
  real squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < n; i++) squares += x[i] * x[i];
  return 1 / sqrt(squares / (real)mr_max(1, n) + epsilon);
}

static void forward(int64_t n, real rstd, const real *restrict x, const real *restrict w,
                    real *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = x[i] * rstd * w[i];
}

int MR_ROW(rms_norm)(const mr_launch *l, int64_t rows, int64_t cols, double epsilon, const void *x,
                     const void *w, void *y, void *rstd) {
  real *rstds = rstd;
#pragma omp parallel for num_threads(mr_threads(l, 2 * rows * cols)) schedule(static)
  for (int64_t row = 0; row < rows; row++) {
    const real *line = (const real *)x + row * cols;
    rstds[row] = statistic(cols, (real)epsilon, line);
    forward(cols, rstds[row], line, w, (real *)y + row * cols);
  }
  return 0;
}

/* With g = dy w and h = x rstd: dx += rstd (g - h (mean of g h)). */
static inline void backward(int64_t n, int fresh, real rstd, const real *restrict x,
                            const real *restrict w, const real *dy, real *dx) {
  real along = 0;
#pragma omp simd reduction(+ : along)
  for (int64_t i = 0; i < n; i++) along += dy[i] * w[i] * (x[i] * rstd);
  along /= (real)mr_max(1, n);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const real d = rstd * (dy[i] * w[i] - x[i] * rstd * along);
    dx[i] = fresh ? d : dx[i] + d;
  }
}

/* group[j] += sum of dy h over rows first .. end - 1, for `count` columns */
static void weight_group(int64_t first, int64_t end, int64_t cols, int64_t count,
                         const real *restrict x, const real *restrict rstd, const real *restrict dy,
                         real *restrict group) {
  for (int64_t row = first; row < end; row++) {
    const real *line = x + row * cols, *up = dy + row * cols;
    const real factor = rstd[row];
    for (int64_t j = 0; j < count; j++) group[j] += up[j] * (line[j] * factor);
  }
}

static void weight_gradient(const mr_launch *l, int64_t rows, int64_t cols, const real *x,
                            const real *rstd, const real *dy, real *dw) {
#pragma omp parallel for num_threads(mr_threads(l, rows *cols)) schedule(static)
  for (int64_t first = 0; first < cols; first += MR_COLUMNS) {
    const int64_t count = mr_min(MR_COLUMNS, cols - first);
    for (int64_t top = 0; top < rows; top += MR_ROW_GROUP) {
      real group[MR_COLUMNS] = {0};
      weight_group(top, mr_min(top + MR_ROW_GROUP, rows), cols, count, x + first, rstd, dy + first,
                   group);
      for (int64_t j = 0; j < count; j++) dw[first + j] += group[j];
    }
  }
}

int MR_ROW(rms_norm_backward)(const mr_launch *l, int fresh, int64_t rows, int64_t cols,
                              const void *x, const void *w, const void *rstd, const void *dy,
                              void *dx, void *dw) {
  const real *rstds = rstd;
  if (dw != NULL) weight_gradient(l, rows, cols, x, rstd, dy, dw);
  if (dx != NULL) { /* last, since dx may be dy */
#pragma omp parallel for num_threads(mr_threads(l, 2 * rows * cols)) schedule(static)
    for (int64_t row = 0; row < rows; row++) {
      const int64_t at = row * cols;
      const real *line = (const real *)x + at, *up = (const real *)dy + at;
      if (fresh) {
        backward(cols, 1, rstds[row], line, w, up, (real *)dx + at);
      } else {
        backward(cols, 0, rstds[row], line, w, up, (real *)dx + at);
      }
    }
  }
  return 0;
}
