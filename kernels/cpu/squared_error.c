/* y = (a - b)^2, element by element. */
#include <stddef.h>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"

static void forward(int64_t n, const real *restrict a, const real *restrict b, real *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = (a[i] - b[i]) * (a[i] - b[i]);
}

/* dx += sign 2 (a - b) dy */
static void backward(int64_t n, real sign, const real *restrict a, const real *restrict b,
                     const real *restrict dy, real *restrict dx) {
  for (int64_t i = 0; i < n; i++) dx[i] += sign * 2 * (a[i] - b[i]) * dy[i];
}

int MR_ROW(squared_error)(const mr_launch *l, int64_t n, const void *a, const void *b, void *y) {
  MR_EACH_PIECE(l, n, first, n, MR_BLOCK, {
    forward(mr_min(MR_BLOCK, n - first), (const real *)a + first, (const real *)b + first,
            (real *)y + first);
  });
  return 0;
}

int MR_ROW(squared_error_backward)(const mr_launch *l, int64_t n, const void *a, const void *b,
                                   const void *dy, void *da, void *db) {
  const real *left = a, *right = b, *up = dy;
  real *to_left = da, *to_right = db;
  MR_EACH_PIECE(l, n, first, n, MR_BLOCK, {
    const int64_t count = mr_min(MR_BLOCK, n - first);
    if (to_left != NULL) {
      backward(count, 1, left + first, right + first, up + first, to_left + first);
    }
    if (to_right != NULL) {
      backward(count, -1, left + first, right + first, up + first, to_right + first);
    }
  });
  return 0;
}
