/* Matrix products: one, or many small ones beside each other. */
#include <errno.h>
#include <limits.h>
#include <stddef.h>

#include "kernels/cpu/parallel.h"
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

int MR_ROW(gemms)(const mr_launch *l, int64_t count, int transpose_a, int transpose_b, int64_t m,
                  int64_t n, int64_t k, double alpha, const void *a, const void *b, double beta,
                  void *c) {
  if (m > INT_MAX || n > INT_MAX || k > INT_MAX) return EOVERFLOW;
#pragma omp parallel for num_threads(mr_threads(l, count *m *n *k)) schedule(dynamic)
  for (int64_t i = 0; i < count; i++) {
    const mr_product product = {.transpose_a = transpose_a,
                                .transpose_b = transpose_b,
                                .m = m,
                                .n = n,
                                .k = k,
                                .alpha = (real)alpha,
                                .a = (const real *)a + i * m * k,
                                .b = (const real *)b + i * k * n,
                                .beta = (real)beta,
                                .c = (real *)c + i * m * n,
                                .bias = NULL};
    MR_ROW(whole_product)(&product);
  }
  return 0;
}
