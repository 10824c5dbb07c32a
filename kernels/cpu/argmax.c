/* The position of each row's greatest value. */
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/vector.h"

/* The first of equals; NaN is passed over, and a row of nothing else gives 0. */
static int32_t first_greatest(int64_t n, const real *x) {
  const real highest = mr_greatest(n, x);
  for (int64_t i = 0; i < n; i++) {
    if (x[i] == highest) return (int32_t)i;
  }
  return 0;
}

int MR_ROW(argmax)(const mr_launch *l, int64_t rows, int64_t cols, const void *x, int32_t *y) {
#pragma omp parallel for num_threads(mr_threads(l, rows *cols)) schedule(static)
  for (int64_t row = 0; row < rows; row++) {
    y[row] = first_greatest(cols, (const real *)x + row * cols);
  }
  return 0;
}
