/* Products of matrices. */
#include "rows.h"

using rows::array;
using rows::bench;

template <typename T>
static void product_case(bench<T> &b, int64_t m, int64_t n, int64_t k) {
  const int64_t count = 3;
  array *x = &b.reals(count * m * k), *y = &b.reals(count * k * n), *z = &b.reals(count * m * n);
  for (int transposed = 0; transposed < 4; transposed++) {
    const int ta = transposed & 1, tb = transposed >> 1;
    for (double beta : {0.0, 1.0}) {
      b.compare("gemm", &mr_kernels::gemm, 10, {z}, [=](auto row, auto l, auto at) {
        return row(l, ta, tb, m, n, k, 0.7, at(x), at(y), beta, at(z));
      });
      b.compare("gemms", &mr_kernels::gemms, 10, {z}, [=](auto row, auto l, auto at) {
        return row(l, count, ta, tb, m, n, k, 0.7, at(x), at(y), beta, at(z));
      });
    }
  }
  b.clear();
}

template <typename T>
static void products(bench<T> &b) {
  for (int64_t m : {0, 1, 5, 33}) {
    for (int64_t n : {0, 1, 7, 65}) {
      for (int64_t k : {0, 1, 3, 67}) product_case(b, m, n, k);
    }
  }
}
ROWS(products)
