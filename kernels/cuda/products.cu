/* cuBLAS's matrices are column-major: the rows of ours are its columns, so it works out
 * c^T = op(b)^T op(a)^T. */
#include <errno.h>
#include <limits.h>

#include "kernels/cuda/errors.h"
#include "kernels/cuda/plans.h"
#include "kernels/cuda/products.h"

static cublasComputeType_t compute_type(const mr_cuda_stream *s, cudaDataType type) {
  if (type == CUDA_R_64F) return CUBLAS_COMPUTE_64F;
  if (type == CUDA_R_32F && s->tf32) return CUBLAS_COMPUTE_32F_FAST_TF32;
  return CUBLAS_COMPUTE_32F;
}

int mr_cuda_multiply_type(const mr_launch *l, cudaDataType type, cudaDataType c_type,
                          const mr_cuda_product *p) {
  if (p->m > INT_MAX || p->n > INT_MAX || p->k > INT_MAX || p->count > INT_MAX) {
    return mr_cuda_errno(EOVERFLOW);
  }
  if (p->m == 0 || p->n == 0 || p->count == 0) return 0;
  const mr_cuda_stream *s = mr_cuda_of(l);
  const float alpha32 = (float)p->alpha, beta32 = (float)p->beta;
  const bool wide = type == CUDA_R_64F;
  const void *alpha = wide ? (const void *)&p->alpha : (const void *)&alpha32;
  const void *beta = wide ? (const void *)&p->beta : (const void *)&beta32;
  const cublasOperation_t op_a = p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t op_b = p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasStatus_t status = cublasGemmStridedBatchedEx(
      s->blas, op_b, op_a, (int)p->n, (int)p->m, (int)p->k, alpha, p->b, type,
      (int)(p->transpose_b ? p->k : p->n), p->k * p->n, p->a, type,
      (int)(p->transpose_a ? p->m : p->k), p->m * p->k, beta, p->c, c_type, (int)p->n, p->m * p->n,
      (int)p->count, compute_type(s, type), CUBLAS_GEMM_DEFAULT);
  return mr_cuda_blas_error((int)status);
}

/* The largest power of two that divides the addresses, 256 at most. */
static uint32_t alignment_of(const mr_cuda_product *p, const void *bias) {
  const uintptr_t all = (uintptr_t)p->a | (uintptr_t)p->b | (uintptr_t)p->c | (uintptr_t)bias | 256;
  return (uint32_t)(all & (~all + 1));
}

int mr_cuda_multiply_biased(const mr_launch *l, cudaDataType type, const mr_cuda_product *p,
                            const void *bias, int *fused) {
  *fused = 0;
  if (type == CUDA_R_64F || p->k == 0) return 0;
  if (p->m > INT_MAX || p->n > INT_MAX || p->k > INT_MAX) return mr_cuda_errno(EOVERFLOW);
  *fused = 1;
  if (p->m == 0 || p->n == 0) return 0;
  const mr_cuda_stream *s = mr_cuda_of(l);
  mr_cuda_plan wanted = {};
  wanted.type = type;
  wanted.transpose_a = p->transpose_a;
  wanted.transpose_b = p->transpose_b;
  wanted.tf32 = type == CUDA_R_32F && s->tf32;
  wanted.m = p->m;
  wanted.n = p->n;
  wanted.k = p->k;
  wanted.alignment = alignment_of(p, bias);
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  const mr_cuda_plan *plan = s->plans->find(s, wanted, &status);
  *fused = plan != NULL && plan->offered;
  if (!*fused) return mr_cuda_blas_error((int)status);
  const float one = 1, zero = 0;
  status = cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                          sizeof bias);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = cublasLtMatmul(s->blas_lt, plan->product, &one, p->b, plan->b, p->a, plan->a, &zero,
                            p->c, plan->c, p->c, plan->c, &plan->algorithm, s->workspace,
                            MR_CUDA_WORKSPACE, s->stream);
  }
  return mr_cuda_blas_error((int)status);
}
