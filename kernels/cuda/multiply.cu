/* y = a b, element by element, b repeated over the rows of a. */
#include "kernels/cuda/columns.h"
#include "kernels/cuda/each.h"
#include "kernels/cuda/real.h"
#include "kernels/cuda/table.h"

namespace {

template <typename T>
struct products {
  int64_t cols;
  const T *a, *b;
  T *y;
  __device__ void operator()(int64_t i) const {
    y[i] = mr_down<T>(mr_up(a[i]) * mr_up(b[mr_place(i, cols).col]));
  }
};

template <typename T>
int multiply(const mr_launch *l, int64_t rows, int64_t cols, const void *a, const void *b,
             void *y) {
  return mr_cuda_each(l, rows * cols, products<T>{cols, (const T *)a, (const T *)b, (T *)y});
}

/* dx += x dy, x repeated over the rows of dy */
template <typename T>
struct accumulated {
  int64_t cols;
  const T *x, *dy;
  T *dx;
  __device__ void operator()(int64_t i) const {
    dx[i] = mr_down<T>(mr_up(dx[i]) + mr_up(x[mr_place(i, cols).col]) * mr_up(dy[i]));
  }
};

/* x[rows, cols] dy[rows, cols] */
template <typename T>
struct product {
  int64_t cols;
  const T *x, *dy;
  __device__ typename mr_cuda_sum<T>::type operator()(int64_t row, int64_t col) const {
    return mr_up(x[row * cols + col]) * mr_up(dy[row * cols + col]);
  }
};

template <typename T>
int multiply_backward(const mr_launch *l, int64_t rows, int64_t cols, const void *a, const void *b,
                      const void *dy, void *da, void *db) {
  const T *left = (const T *)a, *right = (const T *)b, *up = (const T *)dy;
  int error = 0;
  if (da != NULL) {
    error = mr_cuda_each(l, rows * cols, accumulated<T>{cols, right, up, (T *)da});
  }
  if (error != 0 || db == NULL) return error;
  if (rows == 1) return mr_cuda_each(l, cols, accumulated<T>{cols, left, up, (T *)db});
  return mr_cuda_column_sums<T>(l, rows, cols, product<T>{cols, left, up}, (T *)db);
}

template <typename T>
void rows(mr_kernels *k) {
  k->multiply = multiply<T>;
  k->multiply_backward = multiply_backward<T>;
}

}  // namespace

MR_CUDA_ROWS(multiply)
