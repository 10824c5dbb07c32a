/* y = (x - mean) rstd w + b over the last axis, rstd = 1 / sqrt(variance + epsilon). */
#include <math.h>
#include <stddef.h>
#include <tgmath.h>

#include "kernels/cpu/columns.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"

static void statistics(int64_t n, real epsilon, const real *restrict x, real *mean, real *rstd) {
  const real share = 1 / (real)mr_max(1, n);
  real sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += x[i];
  const real middle = sum * share;
  real squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < n; i++) squares += (x[i] - middle) * (x[i] - middle);
  *mean = middle;
  *rstd = 1 / sqrt(squares * share + epsilon);
}

static void forward(int64_t n, real mean, real rstd, const real *restrict x, const real *restrict w,
                    const real *restrict b, real *restrict y) {
  if (b == NULL) {
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd * w[i];
  } else {
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd * w[i] + b[i];
  }
}

int MR_ROW(layer_norm)(const mr_launch *l, int64_t rows, int64_t cols, double epsilon,
                       const void *x, const void *w, const void *b, void *y, void *mean,
                       void *rstd) {
  real *means = mean, *rstds = rstd;
#pragma omp parallel for num_threads(mr_threads(l, 2 * rows * cols)) schedule(static)
  for (int64_t row = 0; row < rows; row++) {
    const real *line = (const real *)x + row * cols;
    statistics(cols, (real)epsilon, line, &means[row], &rstds[row]);
    forward(cols, means[row], rstds[row], line, w, b, (real *)y + row * cols);
  }
  return 0;
}

static void add(int64_t n, const real *restrict a, const real *restrict b, real *restrict sum) {
  for (int64_t i = 0; i < n; i++) sum[i] = a[i] + b[i];
}

int MR_ROW(add_layer_norm)(const mr_launch *l, int64_t rows, int64_t cols, double epsilon,
                           const void *a, const void *b, const void *w, const void *bias, void *sum,
                           void *y, void *mean, void *rstd) {
  real *means = mean, *rstds = rstd;
#pragma omp parallel for num_threads(mr_threads(l, 3 * rows * cols)) schedule(static)
  for (int64_t row = 0; row < rows; row++) {
    real *line = (real *)sum + row * cols;
    add(cols, (const real *)a + row * cols, (const real *)b + row * cols, line);
    statistics(cols, (real)epsilon, line, &means[row], &rstds[row]);
    forward(cols, means[row], rstds[row], line, w, bias, (real *)y + row * cols);
  }
  return 0;
}

/* With g = dy w and h = (x - mean) rstd: dx += rstd (g - mean of g - h (mean of g h)). */
static inline void backward(int64_t n, int fresh, real mean, real rstd, const real *restrict x,
                            const real *restrict w, const real *dy, real *dx) {
  const real share = 1 / (real)mr_max(1, n);
  real plain = 0, along = 0;
#pragma omp simd reduction(+ : plain, along)
  for (int64_t i = 0; i < n; i++) {
    const real g = dy[i] * w[i];
    plain += g;
    along += g * ((x[i] - mean) * rstd);
  }
  plain *= share;
  along *= share;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const real h = (x[i] - mean) * rstd;
    const real d = rstd * (dy[i] * w[i] - plain - h * along);
    dx[i] = fresh ? d : dx[i] + d;
  }
}

/* group[j] += sum of dy h over rows first .. end - 1, for `count` columns */
static void weight_group(int64_t first, int64_t end, int64_t cols, int64_t count,
                         const real *restrict x, const real *restrict mean,
                         const real *restrict rstd, const real *restrict dy, real *restrict group) {
  for (int64_t row = first; row < end; row++) {
    const real *line = x + row * cols, *up = dy + row * cols;
    const real middle = mean[row], factor = rstd[row];
    for (int64_t j = 0; j < count; j++) group[j] += up[j] * ((line[j] - middle) * factor);
  }
}

static void weight_gradient(const mr_launch *l, int64_t rows, int64_t cols, const real *x,
                            const real *mean, const real *rstd, const real *dy, real *dw) {
#pragma omp parallel for num_threads(mr_threads(l, rows *cols)) schedule(static)
  for (int64_t first = 0; first < cols; first += MR_COLUMNS) {
    const int64_t count = mr_min(MR_COLUMNS, cols - first);
    for (int64_t top = 0; top < rows; top += MR_ROW_GROUP) {
      real group[MR_COLUMNS] = {0};
      weight_group(top, mr_min(top + MR_ROW_GROUP, rows), cols, count, x + first, mean, rstd,
                   dy + first, group);
      for (int64_t j = 0; j < count; j++) dw[first + j] += group[j];
    }
  }
}

int MR_ROW(layer_norm_backward)(const mr_launch *l, int fresh, int64_t rows, int64_t cols,
                                const void *x, const void *w, const void *mean, const void *rstd,
                                const void *dy, void *dx, void *dw, void *db) {
  const real *means = mean, *rstds = rstd;
  if (dw != NULL) weight_gradient(l, rows, cols, x, mean, rstd, dy, dw);
  if (db != NULL) mr_column_sums(l, rows, cols, dy, db);
  if (dx != NULL) { /* last, since dx may be dy */
#pragma omp parallel for num_threads(mr_threads(l, 2 * rows * cols)) schedule(static)
    for (int64_t row = 0; row < rows; row++) {
      const int64_t at = row * cols;
      const real *line = (const real *)x + at, *up = (const real *)dy + at;
      if (fresh) {
        backward(cols, 1, means[row], rstds[row], line, w, up, (real *)dx + at);
      } else {
        backward(cols, 0, means[row], rstds[row], line, w, up, (real *)dx + at);
      }
    }
  }
  return 0;
}
