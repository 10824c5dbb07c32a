/* y = x w^T + b, with gelu behind or before it. */
#include "kernels/cuda/columns.h"
#include "kernels/cuda/gelu.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/table.h"

namespace {

/* y = b, repeated over the rows */
template <typename T>
struct repeated {
  int64_t cols;
  const T *b;
  T *y;
  __device__ void operator()(int64_t i) const { y[i] = b[mr_place(i, cols).col]; }
};

/* The bias is added by the product where cuBLASLt offers that; else it is there before, and the
 * product adds to it. */
template <typename T>
int linear(const mr_launch *l, int64_t rows, int64_t in, int64_t out, const void *x, const void *w,
           const void *b, void *y) {
  const double beta = b == NULL ? 0 : 1;
  const mr_cuda_product product = {0, 1, rows, out, in, 1, 1, beta, x, w, y};
  if (b == NULL) return mr_cuda_multiply<T>(l, &product);
  int fused = 0;
  int error = mr_cuda_multiply_biased(l, mr_cuda_blas_type<T>::value, &product, b, &fused);
  if (error != 0 || fused) return error;
  error = mr_cuda_each(l, rows * out, repeated<T>{out, (const T *)b, (T *)y});
  return error == 0 ? mr_cuda_multiply<T>(l, &product) : error;
}

template <typename T>
int linear_backward(const mr_launch *l, int fresh, int64_t rows, int64_t in, int64_t out,
                    const void *x, const void *w, const void *dy, void *dx, void *dw, void *db) {
  typedef typename mr_cuda_sum<T>::type A;
  int error = 0;
  if (dx != NULL) {
    const double beta = fresh ? 0 : 1;
    const mr_cuda_product product = {0, 0, rows, in, out, 1, 1, beta, dy, w, dx};
    error = mr_cuda_multiply<T>(l, &product);
  }
  if (error == 0 && dw != NULL) {
    const mr_cuda_product product = {1, 0, out, in, rows, 1, 1, 1, dy, x, dw};
    error = mr_cuda_multiply<T, A>(l, &product);
  }
  if (error != 0 || db == NULL) return error;
  return mr_cuda_column_sums<A>(l, rows, out, mr_cuda_element<T>{out, (const T *)dy}, (A *)db);
}

template <typename T>
int linear_gelu(const mr_launch *l, int64_t rows, int64_t in, int64_t out, const void *x,
                const void *w, const void *b, void *z, void *y) {
  const int error = linear<T>(l, rows, in, out, x, w, b, z);
  if (error != 0) return error;
  return mr_cuda_each(l, rows * out, mr_cuda_gelu<T>{(const T *)z, (T *)y});
}

/* dz holds the gradient of gelu's result first. */
template <typename T>
int gelu_linear_backward(const mr_launch *l, int64_t rows, int64_t in, int64_t out, const void *z,
                         const void *x, const void *w, const void *dy, void *dz, void *dw,
                         void *db) {
  const int error = linear_backward<T>(l, 1, rows, in, out, x, w, dy, dz, dw, db);
  if (error != 0 || dz == NULL) return error;
  return mr_cuda_each(l, rows * in,
                      mr_cuda_gelu_backward<T>{1, (const T *)z, (const T *)dz, (T *)dz});
}

template <typename T>
void rows(mr_kernels *k) {
  k->linear_gelu = linear_gelu<T>;
  k->gelu_linear_backward = gelu_linear_backward<T>;
  k->linear = linear<T>;
  k->linear_backward = linear_backward<T>;
}

}  // namespace

MR_CUDA_ROWS(linear)
