/* How cuBLASLt does products of the shapes seen so far: asking it takes longer than a small
 * product. */
#ifndef MR_CUDA_PLANS_H
#define MR_CUDA_PLANS_H

#include <vector>

#include "kernels/cuda/products.h"

/* One shape, with a bias. Invariant: what cuBLASLt chose follows from these members alone. */
typedef struct mr_cuda_plan {
  cudaDataType type;
  int transpose_a, transpose_b, tf32;
  int64_t m, n, k;
  uint32_t alignment; /* of all arrays, in bytes: a power of two, 256 at most */

  int offered; /* 0: cuBLASLt has no way to do it, and the rest is NULL */
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t a, b, c; /* ours: a and b change places for cuBLASLt */
  cublasLtMatmulAlgo_t algorithm;
} mr_cuda_plan;

struct mr_cuda_plans {
  std::vector<mr_cuda_plan> plans;

  mr_cuda_plans() = default;
  mr_cuda_plans(const mr_cuda_plans &) = delete;
  mr_cuda_plans &operator=(const mr_cuda_plans &) = delete;
  ~mr_cuda_plans();

  /* The plan whose first members are those of `wanted`, made when it is new; NULL and *status
   * where that fails. Valid until the next call. */
  const mr_cuda_plan *find(const mr_cuda_stream *s, const mr_cuda_plan &wanted,
                           cublasStatus_t *status);
};

#endif
