/* Rows of a table, chosen by id. */
#include <string.h>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"

int MR_ROW(embedding)(const mr_launch *l, int64_t rows, int64_t cols, const int32_t *ids,
                      const void *w, void *y) {
  if (cols == 0) return 0;
#pragma omp parallel for num_threads(mr_threads(l, rows *cols)) schedule(static)
  for (int64_t row = 0; row < rows; row++) {
    memcpy((real *)y + row * cols, (const real *)w + ids[row] * cols, (size_t)cols * sizeof(real));
  }
  return 0;
}

/* Columns first .. end - 1 of every row, in row order: ids may repeat. */
static void backward(int64_t rows, int64_t cols, int64_t first, int64_t end, const int32_t *ids,
                     const real *restrict dy, real *restrict dw) {
  for (int64_t row = 0; row < rows; row++) {
    const real *from = dy + row * cols;
    real *to = dw + ids[row] * cols;
    for (int64_t j = first; j < end; j++) to[j] += from[j];
  }
}

int MR_ROW(embedding_backward)(const mr_launch *l, int64_t rows, int64_t cols, int64_t vocabulary,
                               const int32_t *ids, const void *dy, void *dw) {
  (void)vocabulary;
#pragma omp parallel for num_threads(mr_threads(l, rows *cols)) schedule(static)
  for (int64_t first = 0; first < cols; first += MR_COLUMNS) {
    backward(rows, cols, first, mr_min(first + MR_COLUMNS, cols), ids, dy, dw);
  }
  return 0;
}
