/* y = a + b, b repeated over the rows of a. */
#include "kernels/cuda/columns.h"
#include "kernels/cuda/each.h"
#include "kernels/cuda/real.h"
#include "kernels/cuda/table.h"

namespace {

template <typename T>
struct sums {
  int64_t cols;
  const T *a, *b;
  T *y;
  __device__ void operator()(int64_t i) const {
    y[i] = mr_down<T>(mr_up(a[i]) + mr_up(b[mr_place(i, cols).col]));
  }
};

template <typename T>
int add(const mr_launch *l, int64_t rows, int64_t cols, const void *a, const void *b, void *y) {
  return mr_cuda_each(l, rows * cols, sums<T>{cols, (const T *)a, (const T *)b, (T *)y});
}

/* dx += dy */
template <typename T>
struct accumulated {
  const T *dy;
  T *dx;
  __device__ void operator()(int64_t i) const { dx[i] = mr_down<T>(mr_up(dx[i]) + mr_up(dy[i])); }
};

template <typename T>
int add_backward(const mr_launch *l, int64_t rows, int64_t cols, const void *dy, void *da,
                 void *db) {
  const T *up = (const T *)dy;
  int error = 0;
  if (da != NULL) error = mr_cuda_each(l, rows * cols, accumulated<T>{up, (T *)da});
  if (error != 0 || db == NULL) return error;
  if (rows == 1) return mr_cuda_each(l, cols, accumulated<T>{up, (T *)db});
  return mr_cuda_column_sums<T>(l, rows, cols, mr_cuda_element<T>{cols, up}, (T *)db);
}

template <typename T>
void rows(mr_kernels *k) {
  k->add = add<T>;
  k->add_backward = add_backward<T>;
}

}  // namespace

MR_CUDA_ROWS(add)
