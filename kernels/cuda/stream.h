/* What mr_launch's `stream` points to on a CUDA device. The device that owns it makes it, once
 * per stream of kernels; rows put work into it, in order. */
#ifndef MR_CUDA_STREAM_H
#define MR_CUDA_STREAM_H

#include <stddef.h>

#include "kernels/cuda/cuda.h"
#include "kernels/kernels.h"

enum {
  MR_CUDA_WORKSPACE = 32 << 20, /* bytes for cuBLAS: fixed, since what it chooses follows from it */
  MR_CUDA_SCRATCH = 16 << 20    /* bytes for partial results: fixed, since sums are cut by it */
};

typedef struct mr_cuda_stream {
  cudaStream_t stream;
  cublasHandle_t blas; /* this and the next two are made by mr_cuda_stream_prepare */
  cublasLtHandle_t blas_lt;
  struct mr_cuda_plans *plans; /* how cuBLASLt does the shapes seen so far */
  void *workspace;             /* MR_CUDA_WORKSPACE bytes of the device, aligned to 256 */
  void *scratch;               /* MR_CUDA_SCRATCH bytes of the device, aligned to 256 */
  int tf32; /* may products of f32 round their factors to TF32? 0 unless asked for */
} mr_cuda_stream;

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the handles of cuBLAS and cuBLASLt for `s`, whose stream, workspace, scratch and tf32 are
 * set: on its stream, with its workspace, without atomics. An error of errors.h; nothing is left
 * then. mr_cuda_stream_finish releases what was made, and nothing else. */
int mr_cuda_stream_prepare(mr_cuda_stream *s);
void mr_cuda_stream_finish(mr_cuda_stream *s);

static inline const mr_cuda_stream *mr_cuda_of(const mr_launch *l) {
  return (const mr_cuda_stream *)l->stream;
}

#ifdef __cplusplus
}
#endif

#endif
