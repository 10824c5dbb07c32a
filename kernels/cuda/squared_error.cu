/* y = (a - b)^2, element by element. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/real.h"
#include "kernels/cuda/table.h"

namespace {

template <typename T>
struct forward {
  typedef typename mr_cuda_sum<T>::type A;
  const T *a, *b;
  A *y;
  __device__ void operator()(int64_t i) const {
    const A difference = mr_up(a[i]) - mr_up(b[i]);
    y[i] = difference * difference;
  }
};

template <typename T>
int squared_error(const mr_launch *l, int64_t n, const void *a, const void *b, void *y) {
  typedef typename mr_cuda_sum<T>::type A;
  return mr_cuda_each(l, n, forward<T>{(const T *)a, (const T *)b, (A *)y});
}

/* da and db may be one array, or NULL. */
template <typename T>
struct backward {
  typedef typename mr_cuda_sum<T>::type A;
  const T *a, *b;
  const A *dy;
  T *da, *db;
  __device__ void operator()(int64_t i) const {
    const A d = 2 * (mr_up(a[i]) - mr_up(b[i])) * dy[i];
    if (da != NULL) da[i] = mr_down<T>(mr_up(da[i]) + d);
    if (db != NULL) db[i] = mr_down<T>(mr_up(db[i]) - d);
  }
};

template <typename T>
int squared_error_backward(const mr_launch *l, int64_t n, const void *a, const void *b,
                           const void *dy, void *da, void *db) {
  typedef typename mr_cuda_sum<T>::type A;
  return mr_cuda_each(l, n,
                      backward<T>{(const T *)a, (const T *)b, (const A *)dy, (T *)da, (T *)db});
}

template <typename T>
void rows(mr_kernels *k) {
  k->squared_error = squared_error<T>;
  k->squared_error_backward = squared_error_backward<T>;
}

}  // namespace

MR_CUDA_ROWS(squared_error)
