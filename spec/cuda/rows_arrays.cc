/* Plain arrays, sums and products of elements. */
#include "rows.h"

using rows::array;
using rows::bench;

template <typename T>
static void plain(bench<T> &b) {
  for (int64_t n : rows::extents) {
    array *x = &b.reals(n), *y = &b.reals(n), *z = &b.reals(n),
          *f = &b.template make<float>(rows::kind::f32, n,
                                       [](int64_t i) { return 0.3F * (float)i; });
    array *d =
        &b.template make<double>(rows::kind::f64, n, [](int64_t i) { return 0.3 * (double)i; });
    b.compare("fill", &mr_kernels::fill, 1, {y},
              [=](auto row, auto l, auto at) { return row(l, n, 0.1, at(y)); });
    b.compare("add_scaled", &mr_kernels::add_scaled, 1, {y},
              [=](auto row, auto l, auto at) { return row(l, n, 0.1, at(x), at(y)); });
    b.compare("scale", &mr_kernels::scale, 1, {y},
              [=](auto row, auto l, auto at) { return row(l, n, 0.1, at(x), at(y)); });
    b.compare("scale", &mr_kernels::scale, 1, {y},
              [=](auto row, auto l, auto at) { return row(l, n, 0.1, at(y), at(y)); });
    b.compare("sum_parts", &mr_kernels::sum_parts, 2, {x, y}, [=](auto row, auto l, auto at) {
      const void *const from[] = {at(x), at(y), at(z)};
      void *const to[] = {at(y), at(x)};
      return row(l, n, 0.1, 3, from, 2, to);
    });
    b.compare("from_f32", &mr_kernels::from_f32, 1, {y},
              [=](auto row, auto l, auto at) { return row(l, n, (const float *)at(f), at(y)); });
    b.compare("from_f64", &mr_kernels::from_f64, 1, {y},
              [=](auto row, auto l, auto at) { return row(l, n, (const double *)at(d), at(y)); });
    b.clear();
  }
}
ROWS(plain)

template <typename T>
static void broadcast_case(bench<T> &b, int64_t rows, int64_t cols) {
  array *x = &b.reals(rows * cols), *y = &b.reals(cols), *up = &b.reals(rows * cols);
  array *z = &b.unset(rows * cols), *dx = &b.reals(rows * cols), *dy = &b.reals(cols);
  array *no = nullptr;
  b.compare("add", &mr_kernels::add, 1, {z},
            [=](auto row, auto l, auto at) { return row(l, rows, cols, at(x), at(y), at(z)); });
  b.compare("multiply", &mr_kernels::multiply, 1, {z},
            [=](auto row, auto l, auto at) { return row(l, rows, cols, at(x), at(y), at(z)); });
  const double scale = 4 + sqrt((double)rows);
  for (int given = 1; given < 4; given++) {
    array *da = (given & 1) != 0 ? dx : no, *db = (given & 2) != 0 ? dy : no;
    b.compare(
        "add_backward", &mr_kernels::add_backward, scale, {dx, dy},
        [=](auto row, auto l, auto at) { return row(l, rows, cols, at(up), at(da), at(db)); });
    b.compare("multiply_backward", &mr_kernels::multiply_backward, scale, {dx, dy},
              [=](auto row, auto l, auto at) {
                return row(l, rows, cols, at(x), at(y), at(up), at(da), at(db));
              });
  }
  b.clear();
}

/* Equal shapes, and a row repeated; both gradients may be one array where both inputs were. */
template <typename T>
static void broadcast(bench<T> &b) {
  for (int64_t rows : rows::few_extents) {
    for (int64_t cols : rows::few_extents) broadcast_case(b, rows, cols);
  }
  broadcast_case(b, 1031, 3);
  broadcast_case(b, 20011, 2);
  array *x = &b.reals(100), *up = &b.reals(100), *dx = &b.reals(100);
  b.compare("multiply_backward", &mr_kernels::multiply_backward, 4, {dx},
            [=](auto row, auto l, auto at) {
              return row(l, 1, 100, at(x), at(x), at(up), at(dx), at(dx));
            });
  b.compare("add_backward", &mr_kernels::add_backward, 4, {dx},
            [=](auto row, auto l, auto at) { return row(l, 1, 100, at(up), at(dx), at(dx)); });
  b.clear();
}
ROWS(broadcast)
