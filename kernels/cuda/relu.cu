/* y = max(x, 0); NaN stays NaN. The gradient at 0 is 0. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/real.h"
#include "kernels/cuda/table.h"

namespace {

template <typename T>
struct forward {
  typedef typename mr_cuda_sum<T>::type A;
  const T *x;
  T *y;
  __device__ void operator()(int64_t i) const {
    const A v = mr_up(x[i]);
    y[i] = mr_down<T>(v < 0 ? A(0) : v);
  }
};

template <typename T>
int relu(const mr_launch *l, int64_t n, const void *x, void *y) {
  return mr_cuda_each(l, n, forward<T>{(const T *)x, (T *)y});
}

template <typename T>
struct backward {
  typedef typename mr_cuda_sum<T>::type A;
  int fresh;
  const T *x, *dy; /* dy may be dx */
  T *dx;
  __device__ void operator()(int64_t i) const {
    const A v = mr_up(x[i]), up = mr_up(dy[i]);
    const A d = v > 0 ? up : A(0);
    dx[i] = mr_down<T>(fresh ? d : mr_up(dx[i]) + d);
  }
};

template <typename T>
int relu_backward(const mr_launch *l, int fresh, int64_t n, const void *x, const void *dy,
                  void *dx) {
  return mr_cuda_each(l, n, backward<T>{fresh, (const T *)x, (const T *)dy, (T *)dx});
}

template <typename T>
void rows(mr_kernels *k) {
  k->relu = relu<T>;
  k->relu_backward = relu_backward<T>;
}

}  // namespace

MR_CUDA_ROWS(relu)
