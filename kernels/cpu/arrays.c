/* Plain arrays: fill, add_scaled, scale, sums of several and conversions. */
#include <string.h>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"

int MR_ROW(fill)(const mr_launch *l, int64_t n, double value, void *y) {
  real *out = y;
#pragma omp parallel for num_threads(mr_threads(l, n)) schedule(static)
  for (int64_t first = 0; first < n; first += MR_BLOCK) {
    const int64_t end = mr_min(first + MR_BLOCK, n);
    for (int64_t i = first; i < end; i++) out[i] = (real)value;
  }
  return 0;
}

static void add_scaled(int64_t n, real alpha, const real *restrict x, real *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] += alpha * x[i];
}

int MR_ROW(add_scaled)(const mr_launch *l, int64_t n, double alpha, const void *x, void *y) {
#pragma omp parallel for num_threads(mr_threads(l, n)) schedule(static)
  for (int64_t first = 0; first < n; first += MR_BLOCK) {
    add_scaled(mr_min(MR_BLOCK, n - first), (real)alpha, (const real *)x + first,
               (real *)y + first);
  }
  return 0;
}

/* y may be x, so nothing is promised about them but that elements do not depend on others. */
static void scale(int64_t n, real alpha, const real *x, real *y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = alpha * x[i];
}

int MR_ROW(scale)(const mr_launch *l, int64_t n, double alpha, const void *x, void *y) {
#pragma omp parallel for num_threads(mr_threads(l, n)) schedule(static)
  for (int64_t first = 0; first < n; first += MR_BLOCK) {
    scale(mr_min(MR_BLOCK, n - first), (real)alpha, (const real *)x + first, (real *)y + first);
  }
  return 0;
}

enum { SUMMED = 1024 }; /* elements whose sums lie in the first cache until all are stored */

static void sum_piece(int64_t n, int64_t first, real alpha, int parts, const void *const *x,
                      real *restrict sum) {
  const real *own = (const real *)x[0] + first;
  for (int64_t i = 0; i < n; i++) sum[i] = own[i];
  for (int part = 1; part < parts; part++) {
    own = (const real *)x[part] + first;
    for (int64_t i = 0; i < n; i++) sum[i] += own[i];
  }
  for (int64_t i = 0; i < n; i++) sum[i] *= alpha;
}

int MR_ROW(sum_parts)(const mr_launch *l, int64_t n, double alpha, int parts, const void *const *x,
                      int outputs, void *const *y) {
#pragma omp parallel for num_threads(mr_threads(l, n)) schedule(static)
  for (int64_t first = 0; first < n; first += SUMMED) {
    real sum[SUMMED];
    const int64_t count = mr_min(SUMMED, n - first);
    sum_piece(count, first, (real)alpha, parts, x, sum);
    for (int j = 0; j < outputs; j++)
      memcpy((real *)y[j] + first, sum, (size_t)count * sizeof(real));
  }
  return 0;
}

static void from_f32(int64_t n, const float *restrict x, real *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = (real)x[i];
}

int MR_ROW(from_f32)(const mr_launch *l, int64_t n, const float *x, void *y) {
#pragma omp parallel for num_threads(mr_threads(l, n)) schedule(static)
  for (int64_t first = 0; first < n; first += MR_BLOCK) {
    from_f32(mr_min(MR_BLOCK, n - first), x + first, (real *)y + first);
  }
  return 0;
}

static void from_f64(int64_t n, const double *restrict x, real *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = (real)x[i];
}

int MR_ROW(from_f64)(const mr_launch *l, int64_t n, const double *x, void *y) {
#pragma omp parallel for num_threads(mr_threads(l, n)) schedule(static)
  for (int64_t first = 0; first < n; first += MR_BLOCK) {
    from_f64(mr_min(MR_BLOCK, n - first), x + first, (real *)y + first);
  }
  return 0;
}
