/* Functions of elements, sums, choices, dropout, embeddings and optimizers. */
#include "kernels/kernels.h"
#include "rows.h"

using rows::array;
using rows::bench;

template <typename T>
static void activations(bench<T> &b) {
  for (int64_t n : rows::extents) {
    array *x = &b.reals(n, 8), *up = &b.reals(n), *y = &b.unset(n), *dx = &b.reals(n);
    if (n > 2) ((T *)x->bytes.data())[1] = 0;
    const auto forward = [=](auto row, auto l, auto at) { return row(l, n, at(x), at(y)); };
    b.compare("relu", &mr_kernels::relu, 1, {y}, forward);
    b.compare("gelu", &mr_kernels::gelu, 4, {y}, forward);
    b.compare("silu", &mr_kernels::silu, 4, {y}, forward);
    for (int which = 0; which < 3; which++) {
      const int fresh = which > 0;
      array *to = which == 2 ? up : dx; /* with fresh they may be one */
      const auto backward = [=](auto row, auto l, auto at) {
        return row(l, fresh, n, at(x), at(up), at(to));
      };
      b.compare("relu_backward", &mr_kernels::relu_backward, 1, {to}, backward);
      b.compare("gelu_backward", &mr_kernels::gelu_backward, 16, {to}, backward);
      b.compare("silu_backward", &mr_kernels::silu_backward, 8, {to}, backward);
    }
    b.clear();
  }
}
ROWS(activations)

template <typename T>
static void not_finite(bench<T> &b) {
  const double values[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1e30, -1e30};
  array *x = &b.template make<T>(rows::kind::real, 7, [&](int64_t i) { return (T)values[i]; });
  array *y = &b.unset(7);
  const auto forward = [=](auto row, auto l, auto at) { return row(l, 7, at(x), at(y)); };
  b.compare("relu", &mr_kernels::relu, 1, {y}, forward);
  b.compare("gelu", &mr_kernels::gelu, 4, {y}, forward);
  b.compare("silu", &mr_kernels::silu, 4, {y}, forward);
  b.clear();
}
ROWS(not_finite)

template <typename T>
static void errors(bench<T> &b) {
  array *no = nullptr;
  for (int64_t n : rows::extents) {
    array *x = &b.reals(n), *z = &b.reals(n), *up = &b.wides(n), *y = &b.unset_wide(n);
    array *dx = &b.reals(n), *dz = &b.reals(n);
    b.compare("squared_error", &mr_kernels::squared_error, 2, {y},
              [=](auto row, auto l, auto at) { return row(l, n, at(x), at(z), at(y)); });
    for (int given = 1; given < 5; given++) {
      array *da = (given & 1) != 0 ? dx : no, *db = given == 4 ? dx : (given & 2) != 0 ? dz : no;
      b.compare("squared_error_backward", &mr_kernels::squared_error_backward, 4, {dx, dz},
                [=](auto row, auto l, auto at) {
                  return row(l, n, at(x), at(z), at(up), at(da), at(db));
                });
    }
    b.clear();
  }
}
ROWS(errors)

template <typename T>
static void sums(bench<T> &b) {
  std::vector<int64_t> lengths = rows::extents;
  lengths.insert(lengths.end(), {4095, 4097, 100003});
  for (int64_t n : lengths) {
    array *x = &b.reals(n), *w = &b.wides(n), *y = &b.unset_wide(1), *up = &b.wides(1);
    array *no = nullptr, *dx = &b.reals(n);
    array *wide = &b.template make<double>(rows::kind::f64, 1, [](int64_t) { return (double)NAN; });
    for (array *weights : {w, no}) {
      b.compare("weighted_sum", &mr_kernels::weighted_sum, 4, {y},
                [=](auto row, auto l, auto at) { return row(l, n, at(x), at(weights), at(y)); });
      b.compare("weighted_sum_backward", &mr_kernels::weighted_sum_backward, 2, {dx},
                [=](auto row, auto l, auto at) { return row(l, n, at(weights), at(up), at(dx)); });
    }
    const double scale = sizeof(T) < 8 ? 1e-4 : 50; /* sums are in double for both */
    b.compare("sum_f64", &mr_kernels::sum_f64, scale, {wide},
              [=](auto row, auto l, auto at) { return row(l, n, at(x), (double *)at(wide)); });
    b.compare("sum_squares", &mr_kernels::sum_squares, scale, {wide},
              [=](auto row, auto l, auto at) { return row(l, n, at(x), (double *)at(wide)); });
    b.clear();
  }
}
ROWS(sums)

template <typename T>
static void greatest(bench<T> &b) {
  for (int64_t rows : rows::few_extents) {
    for (int64_t cols : rows::few_extents) {
      array *x = &b.template make<T>(rows::kind::real, rows * cols, [&](int64_t) {
        const double v = rows::uniform(b.r);
        return (T)(v < -0.8 ? NAN : v < -0.7 ? -INFINITY : floor(8 * v)); /* many are equal */
      });
      array *y = &b.integers(rows, 9);
      b.compare("argmax", &mr_kernels::argmax, 0, {y}, [=](auto row, auto l, auto at) {
        return row(l, rows, cols, at(x), (int32_t *)at(y));
      });
      b.clear();
    }
  }
  array *x = &b.filled(100, NAN), *y = &b.integers(2, 9);
  b.compare("argmax", &mr_kernels::argmax, 0, {y},
            [=](auto row, auto l, auto at) { return row(l, 2, 50, at(x), (int32_t *)at(y)); });
  b.clear();
}
ROWS(greatest)

template <typename T>
static void dropout_case(bench<T> &b, int64_t rows, int64_t cols) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < rows; i++) numbers.push_back(i * i * INT64_C(7000000000));
  array *ids = &b.longs(numbers), *positions = &b.integers(rows, 1000);
  array *x = &b.reals(rows * cols), *y = &b.unset(rows * cols), *dx = &b.reals(rows * cols);
  for (double probability : {0.0, 0.1, 0.9}) {
    mr_dropout d = {probability, 20, INT64_C(1) << 40, 3, nullptr, nullptr};
    b.compare("dropout", &mr_kernels::dropout, 1, {y}, [=](auto row, auto l, auto at) {
      mr_dropout there = d;
      there.ids = (const int64_t *)at(ids);
      there.positions = (const int32_t *)at(positions);
      return row(l, rows, cols, &there, at(x), at(y));
    });
    for (int which = 0; which < 3; which++) {
      array *to = which == 2 ? x : dx;
      b.compare("dropout_backward", &mr_kernels::dropout_backward, 1, {to},
                [=](auto row, auto l, auto at) {
                  mr_dropout there = d;
                  there.ids = (const int64_t *)at(ids);
                  there.positions = (const int32_t *)at(positions);
                  return row(l, which > 0, rows, cols, &there, at(x), at(to));
                });
    }
  }
  b.clear();
}

template <typename T>
static void dropout(bench<T> &b) {
  for (int64_t rows : rows::few_extents) {
    for (int64_t cols : {0, 1, 3, 4, 67, 129}) dropout_case(b, rows, cols);
  }
}
ROWS(dropout)

template <typename T>
static void embedding_case(bench<T> &b, int64_t rows, int64_t cols, int64_t vocabulary) {
  array *ids = &b.integers(rows, vocabulary), *w = &b.reals(vocabulary * cols);
  array *y = &b.unset(rows * cols), *up = &b.reals(rows * cols), *dw = &b.wides(vocabulary * cols);
  b.compare("embedding", &mr_kernels::embedding, 0, {y}, [=](auto row, auto l, auto at) {
    return row(l, rows, cols, (const int32_t *)at(ids), at(w), at(y));
  });
  b.compare("embedding_backward", &mr_kernels::embedding_backward, 0, {dw},
            [=](auto row, auto l, auto at) {
              return row(l, rows, cols, vocabulary, (const int32_t *)at(ids), at(up), at(dw));
            });
  b.clear();
}

template <typename T>
static void embedding(bench<T> &b) {
  for (int64_t rows : rows::few_extents) {
    for (int64_t cols : {0, 1, 5, 129, 300}) {
      embedding_case(b, rows, cols, 1);
      embedding_case(b, rows, cols, 7);
      embedding_case(b, rows, cols, 301);
    }
  }
  embedding_case(b, 131077, 1, 1000); /* more rows than are linked at a time */
}
ROWS(embedding)

/* What parameters of bf16 are a copy of is moved in f32; the copy is rounded from it. The processor
 * writes none. */
template <typename T>
static void copy_there(const bench<T> &b, const mr_launch *l, int64_t n, const void *p,
                       void *copy) {
  typedef typename bench<T>::W W;
  if (copy == nullptr || l != &b.r.cpu_launch) return;
  for (int64_t i = 0; i < n; i++) ((W *)copy)[i] = (W)(T)((const W *)p)[i];
}

template <typename T>
static void optimizers(bench<T> &b) {
  for (int64_t n : rows::extents) {
    array *g = &b.wides(n), *p = &b.wides(n), *v = &b.wides(n), *no = nullptr;
    array *copy = sizeof(T) == 2 ? &b.unset(n) : no, *any = copy == nullptr ? p : copy;
    for (int which = 0; which < 6; which++) {
      mr_sgd o = {
          0.1, which < 2 ? 0 : 0.9, which % 2 == 0 ? 0 : 0.01, 0.3, which > 3, which == 3, nullptr};
      array *velocity = which < 2 ? no : v;
      b.compare("sgd", &mr_kernels::sgd, 2, {p, v, any}, [=, &b](auto row, auto l, auto at) {
        mr_sgd with = o;
        with.copy = at(copy);
        const int error = row(l, n, &with, at(g), at(p), at(velocity));
        copy_there(b, l, n, at(p), with.copy);
        return error;
      });
    }
    array *m = &b.wides(n);
    array *squares = &b.wides(n);
    for (int64_t i = 0; i < n; i++) {
      typename bench<T>::W *at = (typename bench<T>::W *)squares->bytes.data() + i;
      *at = *at < 0 ? -*at : *at;
    }
    for (int64_t step : {1, 2, 1000}) {
      const mr_adamw o = {1e-3, 0.9, 0.95, 1e-8, 0.1, 0.3, step, nullptr};
      b.compare("adamw", &mr_kernels::adamw, 4, {p, m, squares, any},
                [=, &b](auto row, auto l, auto at) {
                  mr_adamw with = o;
                  with.copy = at(copy);
                  const int error = row(l, n, &with, at(g), at(p), at(m), at(squares));
                  copy_there(b, l, n, at(p), with.copy);
                  return error;
                });
    }
    b.clear();
  }
}
ROWS(optimizers)
