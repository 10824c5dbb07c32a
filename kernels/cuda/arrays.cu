/* Plain arrays: fill, add_scaled, scale and conversions. */
#include <errno.h>

#include <type_traits>

#include "kernels/cuda/each.h"
#include "kernels/cuda/errors.h"
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

enum { MOST_PARTS = 128 }; /* and outputs: what a launch's arguments have room for */

template <typename T>
struct parts_summed {
  typename mr_cuda_sum<T>::type alpha;
  int parts, outputs;
  const T *x[MOST_PARTS];
  T *y[MOST_PARTS];
  __device__ void operator()(int64_t i) const {
    typename mr_cuda_sum<T>::type sum = 0;
    for (int j = 0; j < parts; j++) sum += mr_up(x[j][i]);
    for (int j = 0; j < outputs; j++) y[j][i] = mr_down<T>(alpha * sum);
  }
};

/* Of at most MOST_PARTS arrays, else ERANGE. The lists of arrays are the host's. */
template <typename T>
int sum_parts(const mr_launch *l, int64_t n, double alpha, int parts, const void *const *x,
              int outputs, void *const *y) {
  if (parts > MOST_PARTS || outputs > MOST_PARTS) return mr_cuda_errno(ERANGE);
  parts_summed<T> f = {};
  f.alpha = (typename mr_cuda_sum<T>::type)alpha;
  f.parts = parts;
  f.outputs = outputs;
  for (int j = 0; j < parts; j++) f.x[j] = (const T *)x[j];
  for (int j = 0; j < outputs; j++) f.y[j] = (T *)y[j];
  return mr_cuda_each(l, n, f);
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

template <typename T, typename To>
int to(const mr_launch *l, int64_t n, const void *x, To *y) {
  return mr_cuda_each(l, n, converted<T, To>{(const T *)x, y});
}

template <typename T>
void rows(mr_kernels *k) {
  k->fill = fill<T>;
  k->add_scaled = add_scaled<T>;
  k->scale = scale<T>;
  k->sum_parts = sum_parts<T>;
  k->from_f32 = from_f32<T>;
  k->from_f64 = from_f64<T>;
  if constexpr (std::is_same<T, __nv_bfloat16>::value) {
    k->to_f32 = to<T, float>;
    k->to_f64 = to<T, double>;
  }
}

}  // namespace

MR_CUDA_ROWS(arrays)
