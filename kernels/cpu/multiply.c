/* y = a b, element by element, b repeated over the rows of a. */
#include <stddef.h>

#include "kernels/cpu/columns.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"

static void multiply(int64_t n, const real *restrict a, const real *restrict b, real *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = a[i] * b[i];
}

static void accumulate(int64_t n, const real *restrict x, const real *restrict dy,
                       real *restrict dx) {
  for (int64_t i = 0; i < n; i++) dx[i] += x[i] * dy[i];
}

int MR_ROW(multiply)(const mr_launch *l, int64_t rows, int64_t cols, const void *a, const void *b,
                     void *y) {
  const real *left = a, *right = b;
  real *out = y;
  const int threads = mr_threads(l, rows * cols);
  if (threads == 1) {
    for (int64_t at = 0; at < rows * cols; at += cols) multiply(cols, left + at, right, out + at);
    return 0;
  }
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t first = 0; first < cols; first += MR_BLOCK) {
      const int64_t at = row * cols + first;
      multiply(mr_min(MR_BLOCK, cols - first), left + at, right + first, out + at);
    }
  }
  return 0;
}

static void backward_left(const mr_launch *l, int64_t rows, int64_t cols, const real *b,
                          const real *dy, real *da) {
  const int threads = mr_threads(l, rows * cols);
  if (threads == 1) {
    for (int64_t at = 0; at < rows * cols; at += cols) accumulate(cols, b, dy + at, da + at);
    return;
  }
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t first = 0; first < cols; first += MR_BLOCK) {
      const int64_t at = row * cols + first;
      accumulate(mr_min(MR_BLOCK, cols - first), b + first, dy + at, da + at);
    }
  }
}

/* db += the sum of a dy over the rows, by columns */
static void backward_right(const mr_launch *l, int64_t rows, int64_t cols, const real *a,
                           const real *dy, real *db) {
  MR_EACH_PIECE(l, rows * cols, first, cols, MR_COLUMNS, {
    const int64_t count = mr_min(MR_COLUMNS, cols - first);
    for (int64_t top = 0; top < rows; top += MR_ROW_GROUP) {
      const int64_t end = mr_min(top + MR_ROW_GROUP, rows);
      real group[MR_COLUMNS] = {0};
      for (int64_t row = top; row < end; row++) {
        accumulate(count, a + row * cols + first, dy + row * cols + first, group);
      }
      for (int64_t j = 0; j < count; j++) db[first + j] += group[j];
    }
  });
}

int MR_ROW(multiply_backward)(const mr_launch *l, int64_t rows, int64_t cols, const void *a,
                              const void *b, const void *dy, void *da, void *db) {
  if (da != NULL) backward_left(l, rows, cols, b, dy, da);
  if (db != NULL && rows == 1) backward_left(l, 1, cols, a, dy, db);
  if (db != NULL && rows != 1) backward_right(l, rows, cols, a, dy, db);
  return 0;
}
