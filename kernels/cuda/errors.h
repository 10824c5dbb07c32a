/* The errors that rows return: a cudaError_t as it is, others moved to numbers of their own. */
#ifndef MR_CUDA_ERRORS_H
#define MR_CUDA_ERRORS_H

#ifdef __cplusplus
extern "C" {
#endif

enum { MR_CUDA_BLAS_ERRORS = 100000, MR_CUDA_ERRNO = 200000 };

/* Of a cublasStatus_t; 0 of success. */
static inline int mr_cuda_blas_error(int status) {
  return status == 0 ? 0 : MR_CUDA_BLAS_ERRORS + status;
}

/* Of an errno, such as ERANGE and EOVERFLOW for extents that a row does not take. */
static inline int mr_cuda_errno(int number) { return MR_CUDA_ERRNO + number; }

/* "out of memory", "CUBLAS_STATUS_NOT_SUPPORTED", ...; valid until the next call. */
const char *mr_cuda_error_text(int error);

#ifdef __cplusplus
}
#endif

#endif
