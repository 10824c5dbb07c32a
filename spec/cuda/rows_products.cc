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

template <typename T>
static void linear_case(bench<T> &b, int64_t rows, int64_t in, int64_t out) {
  array *x = &b.reals(rows * in), *w = &b.reals(out * in), *bias = &b.reals(out);
  array *y = &b.unset(rows * out), *up = &b.reals(rows * out), *no = nullptr;
  array *dx = &b.reals(rows * in), *dw = &b.wides(out * in), *db = &b.wides(out);
  for (array *added : {bias, no}) {
    b.compare("linear", &mr_kernels::linear, 10, {y}, [=](auto row, auto l, auto at) {
      return row(l, rows, in, out, at(x), at(w), at(added), at(y));
    });
  }
  array *z = &b.reals(rows * in), *wide = &b.unset(rows * out);
  b.compare("linear_gelu", &mr_kernels::linear_gelu, 20, {y, wide}, [=](auto row, auto l, auto at) {
    return row(l, rows, in, out, at(x), at(w), at(bias), at(wide), at(y));
  });
  b.compare("gelu_linear_backward", &mr_kernels::gelu_linear_backward, 40, {dx, dw, db},
            [=](auto row, auto l, auto at) {
              return row(l, rows, in, out, at(z), at(x), at(w), at(up), at(dx), at(dw), at(db));
            });
  for (int given = 1; given < 8; given++) {
    array *to_x = (given & 1) != 0 ? dx : no, *to_w = (given & 2) != 0 ? dw : no,
          *to_b = (given & 4) != 0 ? db : no;
    for (int fresh : {0, 1}) {
      b.compare("linear_backward", &mr_kernels::linear_backward, 20, {dx, dw, db},
                [=](auto row, auto l, auto at) {
                  return row(l, fresh, rows, in, out, at(x), at(w), at(up), at(to_x), at(to_w),
                             at(to_b));
                });
    }
  }
  b.clear();
}

template <typename T>
static void linear(bench<T> &b) {
  for (int64_t rows : {0, 1, 5, 67}) {
    for (int64_t in : {0, 1, 33}) {
      for (int64_t out : {0, 1, 7, 65}) linear_case(b, rows, in, out);
    }
  }
}
ROWS(linear)
