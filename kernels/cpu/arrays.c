/* Plain arrays: fill, add_scaled, scale, sums of several and conversions. */
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/vector.h"

int MR_ROW(fill)(const mr_launch *l, int64_t n, double value, void *y) {
  real *out = y;
  MR_EACH_PIECE(l, n, first, n, MR_BLOCK, {
    const int64_t end = mr_min(first + MR_BLOCK, n);
    for (int64_t i = first; i < end; i++) out[i] = (real)value;
  });
  return 0;
}

static void add_scaled(int64_t n, real alpha, const real *restrict x, real *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] += alpha * x[i];
}

int MR_ROW(add_scaled)(const mr_launch *l, int64_t n, double alpha, const void *x, void *y) {
  MR_EACH_PIECE(l, n, first, n, MR_BLOCK, {
    add_scaled(mr_min(MR_BLOCK, n - first), (real)alpha, (const real *)x + first,
               (real *)y + first);
  });
  return 0;
}

/* y may be x, so nothing is promised about them but that elements do not depend on others. */
static void scale(int64_t n, real alpha, const real *x, real *y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = alpha * x[i];
}

int MR_ROW(scale)(const mr_launch *l, int64_t n, double alpha, const void *x, void *y) {
  MR_EACH_PIECE(l, n, first, n, MR_BLOCK, {
    scale(mr_min(MR_BLOCK, n - first), (real)alpha, (const real *)x + first, (real *)y + first);
  });
  return 0;
}

/* Elements first .. past - 1. A line is read from all parts and stored in all outputs at once:
 * where these lie in other processors' caches, that is what each line costs once. */
__attribute__((always_inline)) static inline void sum_lines(int64_t first, int64_t past, real alpha,
                                                            int parts, const void *const *x,
                                                            int outputs, void *const *y) {
  int64_t i = first;
  for (; i + MR_VECTOR_REALS <= past; i += MR_VECTOR_REALS) {
    vector sum = *(const vector *)((const real *)x[0] + i);
    for (int part = 1; part < parts; part++) sum += *(const vector *)((const real *)x[part] + i);
    sum *= alpha;
    for (int j = 0; j < outputs; j++) *(vector *)((real *)y[j] + i) = sum;
  }
  for (; i < past; i++) {
    real sum = ((const real *)x[0])[i];
    for (int part = 1; part < parts; part++) sum += ((const real *)x[part])[i];
    sum *= alpha;
    for (int j = 0; j < outputs; j++) ((real *)y[j])[i] = sum;
  }
}

/* Two of two, the usual case, with their addresses in registers. */
static void sum_pair(int64_t first, int64_t past, real alpha, const void *const *x,
                     void *const *y) {
  const void *const from[2] = {x[0], x[1]};
  void *const to[2] = {y[0], y[1]};
  sum_lines(first, past, alpha, 2, from, 2, to);
}

int MR_ROW(sum_parts)(const mr_launch *l, int64_t n, double alpha, int parts, const void *const *x,
                      int outputs, void *const *y) {
  MR_EACH_PIECE(l, n, first, n, MR_BLOCK, {
    const int64_t past = mr_min(first + MR_BLOCK, n);
    if (parts == 2 && outputs == 2) {
      sum_pair(first, past, (real)alpha, x, y);
    } else {
      sum_lines(first, past, (real)alpha, parts, x, outputs, y);
    }
  });
  return 0;
}

static void from_f32(int64_t n, const float *restrict x, real *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = (real)x[i];
}

int MR_ROW(from_f32)(const mr_launch *l, int64_t n, const float *x, void *y) {
  MR_EACH_PIECE(l, n, first, n, MR_BLOCK,
                { from_f32(mr_min(MR_BLOCK, n - first), x + first, (real *)y + first); });
  return 0;
}

static void from_f64(int64_t n, const double *restrict x, real *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = (real)x[i];
}

int MR_ROW(from_f64)(const mr_launch *l, int64_t n, const double *x, void *y) {
  MR_EACH_PIECE(l, n, first, n, MR_BLOCK,
                { from_f64(mr_min(MR_BLOCK, n - first), x + first, (real *)y + first); });
  return 0;
}
