/* y = a + b, b repeated over the rows of a. */
#include <stddef.h>

#include "kernels/cpu/columns.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"

static void add(int64_t n, const real *restrict a, const real *restrict b, real *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void accumulate(int64_t n, const real *restrict dy, real *restrict dx) {
  for (int64_t i = 0; i < n; i++) dx[i] += dy[i];
}

static void accumulate_all(const mr_launch *l, int64_t n, const real *dy, real *dx) {
  MR_EACH_PIECE(l, n, first, n, MR_BLOCK,
                { accumulate(mr_min(MR_BLOCK, n - first), dy + first, dx + first); });
}

/* Pieces of one row of long rows, so that a single row is shared among threads too. */
int MR_ROW(add)(const mr_launch *l, int64_t rows, int64_t cols, const void *a, const void *b,
                void *y) {
  const real *left = a, *right = b;
  real *out = y;
  const int threads = mr_threads(l, rows * cols);
  if (threads == 1) {
    for (int64_t at = 0; at < rows * cols; at += cols) add(cols, left + at, right, out + at);
    return 0;
  }
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t first = 0; first < cols; first += MR_BLOCK) {
      const int64_t at = row * cols + first;
      add(mr_min(MR_BLOCK, cols - first), left + at, right + first, out + at);
    }
  }
  return 0;
}

int MR_ROW(add_backward)(const mr_launch *l, int64_t rows, int64_t cols, const void *dy, void *da,
                         void *db) {
  if (da != NULL) accumulate_all(l, rows * cols, dy, da);
  if (db != NULL && rows == 1) accumulate_all(l, cols, dy, db);
  if (db != NULL && rows != 1) mr_column_sums(l, rows, cols, dy, db);
  return 0;
}
