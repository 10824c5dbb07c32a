/* Products of matrices, one and many. */
#include "kernels/cuda/products.h"
#include "kernels/cuda/table.h"

namespace {

template <typename T>
int gemms(const mr_launch *l, int64_t count, int transpose_a, int transpose_b, int64_t m, int64_t n,
          int64_t k, double alpha, const void *a, const void *b, double beta, void *c) {
  const mr_cuda_product product = {transpose_a, transpose_b, m, n, k, count, alpha, beta, a, b, c};
  return mr_cuda_multiply<T>(l, &product);
}

template <typename T>
int gemm(const mr_launch *l, int transpose_a, int transpose_b, int64_t m, int64_t n, int64_t k,
         double alpha, const void *a, const void *b, double beta, void *c) {
  return gemms<T>(l, 1, transpose_a, transpose_b, m, n, k, alpha, a, b, beta, c);
}

template <typename T>
void rows(mr_kernels *k) {
  k->gemm = gemm<T>;
  k->gemms = gemms<T>;
}

}  // namespace

MR_CUDA_ROWS(gemm)
