/* Sums over the rows of a matrix, for gradients of what was repeated over them. */
#ifndef MR_CPU_COLUMNS_H
#define MR_CPU_COLUMNS_H

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/real.h"

enum { MR_ROW_GROUP = 64 }; /* rows that are summed together before they join the total */

/* total[j] += sum of the first `count` columns of x over `rows` rows, which are `cols` apart;
 * count is at most MR_COLUMNS. */
static inline void mr_column_block(int64_t rows, int64_t cols, int64_t count,
                                   const real *restrict x, real *restrict total) {
  for (int64_t first = 0; first < rows; first += MR_ROW_GROUP) {
    const int64_t end = mr_min(first + MR_ROW_GROUP, rows);
    real group[MR_COLUMNS] = {0};
    for (int64_t row = first; row < end; row++) {
      for (int64_t j = 0; j < count; j++) group[j] += x[row * cols + j];
    }
    for (int64_t j = 0; j < count; j++) total[j] += group[j];
  }
}

/* The same, and the same bits, for any count, on the thread that calls. */
static inline void mr_column_range(int64_t rows, int64_t cols, int64_t count, const real *x,
                                   real *total) {
  for (int64_t top = 0; top < rows; top += MR_ROW_GROUP) {
    const int64_t group = mr_min(MR_ROW_GROUP, rows - top);
    for (int64_t first = 0; first < count; first += MR_COLUMNS) {
      mr_column_block(group, cols, mr_min(MR_COLUMNS, count - first), x + top * cols + first,
                      total + first);
    }
  }
}

/* total[cols] += sum of x[rows, cols] over the rows */
static inline void mr_column_sums(const mr_launch *l, int64_t rows, int64_t cols, const real *x,
                                  real *total) {
  MR_EACH_PIECE(l, rows * cols, first, cols, MR_COLUMNS, {
    mr_column_block(rows, cols, mr_min(MR_COLUMNS, cols - first), x + first, total + first);
  });
}

#endif
