/* One matrix product. */
#include <stddef.h>

#include "kernels/cpu/products.h"
#include "kernels/cpu/rows.h"

int MR_ROW(gemm)(const mr_launch *l, int transpose_a, int transpose_b, int64_t m, int64_t n,
                 int64_t k, double alpha, const void *a, const void *b, double beta, void *c) {
  const mr_product product = {.transpose_a = transpose_a,
                              .transpose_b = transpose_b,
                              .m = m,
                              .n = n,
                              .k = k,
                              .alpha = (real)alpha,
                              .a = a,
                              .b = b,
                              .beta = (real)beta,
                              .c = c,
                              .bias = NULL};
  return MR_ROW(products)(l, 1, &product);
}
