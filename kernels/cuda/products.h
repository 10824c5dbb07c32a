/* Products of matrices by cuBLAS. */
#ifndef MR_CUDA_PRODUCTS_H
#define MR_CUDA_PRODUCTS_H

#include "kernels/cuda/each.h"
#include "kernels/cuda/real.h"
#include "kernels/cuda/stream.h"

/* c[m, n] = alpha op(a) op(b) + beta c by rows, `count` of them one behind the other. */
typedef struct mr_cuda_product {
  int transpose_a, transpose_b;
  int64_t m, n, k, count;
  double alpha, beta;
  const void *a, *b;
  void *c;
} mr_cuda_product;

/* T's type in cuBLAS. */
template <typename T>
struct mr_cuda_blas_type;
template <>
struct mr_cuda_blas_type<float> {
  static const cudaDataType value = CUDA_R_32F;
};
template <>
struct mr_cuda_blas_type<double> {
  static const cudaDataType value = CUDA_R_64F;
};
template <>
struct mr_cuda_blas_type<__nv_bfloat16> {
  static const cudaDataType value = CUDA_R_16BF;
};

/* For k > 0, a and b of elements of `type`, c of `c_type`: the same, or float where they are bf16.
 */
int mr_cuda_multiply_type(const mr_launch *l, cudaDataType type, cudaDataType c_type,
                          const mr_cuda_product *product);

/* c = op(a) op(b) + bias[n] on each row, in one launch, with *fused = 1; or nothing, and 0, where
 * cuBLASLt does not offer that. alpha, beta and count of the product are not looked at. */
int mr_cuda_multiply_biased(const mr_launch *l, cudaDataType type, const mr_cuda_product *product,
                            const void *bias, int *fused);

/* c = beta c; whatever c held is forgotten when beta is 0. */
template <typename T>
struct mr_cuda_kept {
  typename mr_cuda_sum<T>::type beta;
  T *c;
  __device__ void operator()(int64_t i) const {
    c[i] = mr_down<T>(beta == 0 ? 0 : beta * mr_up(c[i]));
  }
};

/* Works it out in T's own precision, in float for bf16; products of f32 in TF32 only where the
 * stream says so. c is of type C: T, or mr_cuda_sum<T>::type. Extents of more than 2^31 - 1 are
 * mr_cuda_errno(EOVERFLOW). */
template <typename T, typename C = T>
inline int mr_cuda_multiply(const mr_launch *l, const mr_cuda_product *p) {
  typedef typename mr_cuda_sum<T>::type A;
  if (p->k > 0) {
    return mr_cuda_multiply_type(l, mr_cuda_blas_type<T>::value, mr_cuda_blas_type<C>::value, p);
  }
  return mr_cuda_each(l, p->count * p->m * p->n, mr_cuda_kept<C>{(A)p->beta, (C *)p->c});
}

#endif
