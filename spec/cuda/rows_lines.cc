/* Norms, softmax and cross-entropy: rows of a matrix, one by one. */
#include "rows.h"

using rows::array;
using rows::bench;

/* Rows by columns: extents of 0 and 1, both sides of a warp, several blocks; and lines for which a
 * block is needed, with and without an end that its threads share unevenly. */
static const std::vector<std::vector<int64_t>> shapes = {
    {0, 5},   {5, 0},    {1, 1},    {7, 1},    {3, 31},   {2, 32},   {9, 33},
    {67, 61}, {17, 129}, {5, 1024}, {3, 1025}, {2, 4099}, {0, 2000}, {1031, 3}};

template <typename T>
static void layer_norm_case(bench<T> &b, int64_t rows, int64_t cols) {
  array *x = &b.reals(rows * cols), *w = &b.reals(cols), *bias = &b.reals(cols), *no = nullptr;
  array *y = &b.unset(rows * cols), *mean = &b.unset_wide(rows), *rstd = &b.unset_wide(rows);
  for (array *added : {bias, no}) {
    b.compare("layer_norm", &mr_kernels::layer_norm, 30, {y, mean, rstd},
              [=](auto row, auto l, auto at) {
                return row(l, rows, cols, 1e-5, at(x), at(w), at(added), at(y), at(mean), at(rstd));
              });
  }
  const auto sixty_fourths =
      [&] { /* whose sums bf16 holds as they are: mean and rstd are of them */
            return &b.template make<T>(rows::kind::real, rows * cols, [&](int64_t) {
              return (T)(floor(64 * rows::uniform(b.r)) / 64);
            });
      };
  array *left = sixty_fourths(), *right = sixty_fourths(), *sum = &b.unset(rows * cols);
  b.compare("add_layer_norm", &mr_kernels::add_layer_norm, 30, {sum, y, mean, rstd},
            [=](auto row, auto l, auto at) {
              return row(l, rows, cols, 1e-5, at(left), at(right), at(w), at(bias), at(sum), at(y),
                         at(mean), at(rstd));
            });
  array *up = &b.reals(rows * cols), *dx = &b.reals(rows * cols);
  array *dw = &b.wides(cols), *db = &b.wides(cols);
  array *middle = &b.wides(rows), *factor = &b.wides(rows, 3);
  for (int given = 1; given < 8; given++) {
    array *to_x = (given & 1) != 0 ? dx : no, *to_w = (given & 2) != 0 ? dw : no,
          *to_b = (given & 4) != 0 ? db : no;
    b.compare("layer_norm_backward", &mr_kernels::layer_norm_backward, 60, {dx, dw, db},
              [=](auto row, auto l, auto at) {
                return row(l, given % 2, rows, cols, at(x), at(w), at(middle), at(factor), at(up),
                           at(to_x), at(to_w), at(to_b));
              });
  }
  b.compare("layer_norm_backward", &mr_kernels::layer_norm_backward, 60, {dx},
            [=](auto row, auto l, auto at) {
              return row(l, 0, rows, cols, at(x), at(w), at(middle), at(factor), at(up), at(dx),
                         at(no), at(no));
            });
  b.compare("layer_norm_backward", &mr_kernels::layer_norm_backward, 60, {up, dw, db},
            [=](auto row, auto l, auto at) {
              return row(l, 1, rows, cols, at(x), at(w), at(middle), at(factor), at(up), at(up),
                         at(dw), at(db));
            });
  b.clear();
}

template <typename T>
static void rms_norm_case(bench<T> &b, int64_t rows, int64_t cols) {
  array *x = &b.reals(rows * cols), *w = &b.reals(cols), *no = nullptr;
  array *y = &b.unset(rows * cols), *rstd = &b.unset_wide(rows);
  b.compare("rms_norm", &mr_kernels::rms_norm, 30, {y, rstd}, [=](auto row, auto l, auto at) {
    return row(l, rows, cols, 1e-5, at(x), at(w), at(y), at(rstd));
  });
  array *up = &b.reals(rows * cols), *dx = &b.reals(rows * cols), *dw = &b.wides(cols);
  array *factor = &b.wides(rows, 3);
  for (int given = 1; given < 4; given++) {
    array *to_x = (given & 1) != 0 ? dx : no, *to_w = (given & 2) != 0 ? dw : no;
    for (int fresh : {0, 1}) {
      b.compare("rms_norm_backward", &mr_kernels::rms_norm_backward, 60, {dx, dw},
                [=](auto row, auto l, auto at) {
                  return row(l, fresh, rows, cols, at(x), at(w), at(factor), at(up), at(to_x),
                             at(to_w));
                });
    }
  }
  b.compare("rms_norm_backward", &mr_kernels::rms_norm_backward, 60, {up, dw},
            [=](auto row, auto l, auto at) {
              return row(l, 1, rows, cols, at(x), at(w), at(factor), at(up), at(up), at(dw));
            });
  b.clear();
}

template <typename T>
static void norms(bench<T> &b) {
  for (const std::vector<int64_t> &shape : shapes) {
    layer_norm_case(b, shape[0], shape[1]);
    rms_norm_case(b, shape[0], shape[1]);
  }
}
ROWS(norms)

/* Logits as a trained model has them, far apart; whole stretches of a line may be -inf. */
template <typename T>
static array &logits(bench<T> &b, int64_t rows, int64_t cols, int64_t hidden) {
  array &x = b.reals(rows * cols, 30);
  T *at = (T *)x.bytes.data();
  for (int64_t i = 0; i < rows * cols; i++) {
    if (i % cols < hidden) at[i] = (T)-INFINITY;
  }
  return x;
}

template <typename T>
static void softmax_case(bench<T> &b, int64_t rows, int64_t cols) {
  for (int64_t hidden : {(int64_t)0, cols * 2 / 3}) {
    array *x = &logits(b, rows, cols, hidden), *y = &b.unset(rows * cols);
    b.compare("softmax", &mr_kernels::softmax, 20, {y},
              [=](auto row, auto l, auto at) { return row(l, rows, cols, at(x), at(y)); });
  }
  array *y = &b.reals(rows * cols), *up = &b.reals(rows * cols), *dx = &b.reals(rows * cols);
  b.compare("softmax_backward", &mr_kernels::softmax_backward, 40, {dx},
            [=](auto row, auto l, auto at) { return row(l, rows, cols, at(y), at(up), at(dx)); });
  b.clear();
}

/* The first target is ignored, the last one is the last column. */
template <typename T>
static array &targets(bench<T> &b, int64_t rows, int64_t cols) {
  array &all = b.integers(rows, cols);
  int32_t *at = (int32_t *)all.bytes.data();
  for (int64_t i = 0; i < rows; i++) {
    if (cols == 0 || i % 4 == 0) at[i] = -100;
  }
  if (rows > 1 && cols > 0) at[rows - 1] = (int32_t)(cols - 1);
  return all;
}

template <typename T>
static void cross_entropy_case(bench<T> &b, int64_t rows, int64_t cols) {
  for (int64_t hidden : {(int64_t)0, cols * 2 / 3}) {
    array *x = &logits(b, rows, cols, hidden), *target = &targets(b, rows, cols);
    array *loss = &b.unset_wide(rows), *lse = &b.unset_wide(rows);
    b.compare("cross_entropy", &mr_kernels::cross_entropy, 20, {loss, lse},
              [=](auto row, auto l, auto at) {
                return row(l, rows, cols, at(x), (const int32_t *)at(target), at(loss), at(lse));
              });
  }
  array *x = &b.reals(rows * cols, 30), *lse = &b.filled_wide(rows, 32),
        *target = &targets(b, rows, cols);
  array *up = &b.wides(rows), *dx = &b.reals(rows * cols);
  for (int way = 0; way < 3; way++) {
    array *to = way == 2 ? x : dx;
    b.compare("cross_entropy_backward", &mr_kernels::cross_entropy_backward, 20, {to},
              [=](auto row, auto l, auto at) {
                return row(l, way > 0, rows, cols, at(x), at(lse), (const int32_t *)at(target),
                           at(up), at(to));
              });
  }
  b.clear();
}

template <typename T>
static void probabilities(bench<T> &b) {
  for (const std::vector<int64_t> &shape : shapes) {
    softmax_case(b, shape[0], shape[1]);
    cross_entropy_case(b, shape[0], shape[1]);
  }
}
ROWS(probabilities)
