/* Plain arrays: fill, add_scaled, scale and conversions. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/real.h"
#include "kernels/cuda/table.h"

namespace {

template <typename T>
struct filled {
  T value, *y;
  __device__ void operator()(int64_t i) const { y[i] = value; }
};

template <typename T>
int fill(const mr_launch *l, int64_t n, double value, void *y) {
  return mr_cuda_each(l, n, filled<T>{(T)value, (T *)y});
}

template <typename T>
struct added {
  typename mr_cuda_sum<T>::type alpha;
  const T *x;
  T *y;
  __device__ void operator()(int64_t i) const {
    y[i] = mr_down<T>(mr_up(y[i]) + alpha * mr_up(x[i]));
  }
};

template <typename T>
int add_scaled(const mr_launch *l, int64_t n, double alpha, const void *x, void *y) {
  typedef typename mr_cuda_sum<T>::type A;
  return mr_cuda_each(l, n, added<T>{(A)alpha, (const T *)x, (T *)y});
}

template <typename T>
struct scaled {
  typename mr_cuda_sum<T>::type alpha;
  const T *x;
  T *y;
  __device__ void operator()(int64_t i) const { y[i] = mr_down<T>(alpha * mr_up(x[i])); }
};

template <typename T>
int scale(const mr_launch *l, int64_t n, double alpha, const void *x, void *y) {
  typedef typename mr_cuda_sum<T>::type A;
  return mr_cuda_each(l, n, scaled<T>{(A)alpha, (const T *)x, (T *)y});
}

template <typename From, typename T>
struct converted {
  const From *x;
  T *y;
  __device__ void operator()(int64_t i) const { y[i] = (T)x[i]; }
};

template <typename T>
int from_f32(const mr_launch *l, int64_t n, const float *x, void *y) {
  return mr_cuda_each(l, n, converted<float, T>{x, (T *)y});
}

template <typename T>
int from_f64(const mr_launch *l, int64_t n, const double *x, void *y) {
  return mr_cuda_each(l, n, converted<double, T>{x, (T *)y});
}

template <typename T>
void rows(mr_kernels *k) {
  k->fill = fill<T>;
  k->add_scaled = add_scaled<T>;
  k->scale = scale<T>;
  k->from_f32 = from_f32<T>;
  k->from_f64 = from_f64<T>;
}

}  // namespace

MR_CUDA_ROWS(arrays)
