/* The negative log-probability of one target per row of logits; a negative target is ignored. */
#include <math.h>
#include <string.h>
#include <tgmath.h>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/vector.h"
#include "kernels/cpu/vector_math.h"

/* the sum of e^(x - highest) */
static real exponentials(int64_t n, real highest, const real *x) {
  real sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += mr_exp(x[i] - highest);
  return sum;
}

static real log_sum_exp(int64_t n, const real *x) {
  const real highest = mr_greatest(n, x);
  real sum = 0;
  for (int64_t first = 0; first < n; first += MR_RUN) {
    sum += exponentials(mr_min(MR_RUN, n - first), highest, x + first);
  }
  return highest + log(sum);
}

static inline void backward(int64_t n, int fresh, real lse, real dloss, const real *x, real *dx) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const real d = dloss * mr_exp(x[i] - lse);
    dx[i] = fresh ? d : dx[i] + d;
  }
}

int MR_ROW(cross_entropy)(const mr_launch *l, int64_t rows, int64_t cols, const void *x,
                          const int32_t *targets, void *loss, void *lse) {
  const real *logits = x;
  real *losses = loss, *lses = lse;
#pragma omp parallel for num_threads(mr_threads(l, 8 * rows * cols)) schedule(static)
  for (int64_t row = 0; row < rows; row++) {
    const real *line = logits + row * cols;
    lses[row] = log_sum_exp(cols, line);
    losses[row] = targets[row] < 0 ? 0 : lses[row] - line[targets[row]];
  }
  return 0;
}

int MR_ROW(cross_entropy_backward)(const mr_launch *l, int fresh, int64_t rows, int64_t cols,
                                   const void *x, const void *lse, const int32_t *targets,
                                   const void *dloss, void *dx) {
  const real *lses = lse, *dlosses = dloss;
#pragma omp parallel for num_threads(mr_threads(l, 8 * rows * cols)) schedule(static)
  for (int64_t row = 0; row < rows; row++) {
    real *gradient = (real *)dx + row * cols;
    const real *line = (const real *)x + row * cols;
    if (targets[row] < 0) {
      if (fresh) memset(gradient, 0, (size_t)cols * sizeof(real));
      continue;
    }
    if (fresh) {
      backward(cols, 1, lses[row], dlosses[row], line, gradient);
    } else {
      backward(cols, 0, lses[row], dlosses[row], line, gradient);
    }
    gradient[targets[row]] -= dlosses[row];
  }
  return 0;
}
