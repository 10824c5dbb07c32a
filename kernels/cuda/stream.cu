/* The handles of cuBLAS. */
#include "kernels/cuda/errors.h"
#include "kernels/cuda/plans.h"
#include "kernels/cuda/stream.h"

/* Products without atomics, and in a workspace of one size, have the same bits each time. */
static cublasStatus_t prepare(mr_cuda_stream *s) {
  cublasStatus_t status = cublasSetStream(s->blas, s->stream);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  status = cublasSetWorkspace(s->blas, s->workspace, MR_CUDA_WORKSPACE);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return cublasSetAtomicsMode(s->blas, CUBLAS_ATOMICS_NOT_ALLOWED);
}

int mr_cuda_stream_prepare(mr_cuda_stream *s) {
  s->blas = NULL;
  s->blas_lt = NULL;
  s->plans = new mr_cuda_plans;
  cublasStatus_t status = cublasCreate(&s->blas);
  if (status == CUBLAS_STATUS_SUCCESS) status = cublasLtCreate(&s->blas_lt);
  if (status == CUBLAS_STATUS_SUCCESS) status = prepare(s);
  if (status != CUBLAS_STATUS_SUCCESS) mr_cuda_stream_finish(s);
  return mr_cuda_blas_error((int)status);
}

void mr_cuda_stream_finish(mr_cuda_stream *s) {
  delete s->plans;
  s->plans = NULL;
  if (s->blas_lt != NULL) (void)cublasLtDestroy(s->blas_lt);
  if (s->blas != NULL) (void)cublasDestroy(s->blas);
  s->blas = NULL;
  s->blas_lt = NULL;
}
