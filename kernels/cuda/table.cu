/* The tables, and the texts of errors. */
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/errors.h"
#include "kernels/cuda/table.h"

#define PROTOTYPE(file) void mr_cuda_rows_##file(mr_cuda_tables *tables);
MR_CUDA_FILES(PROTOTYPE)
#undef PROTOTYPE

namespace {

mr_cuda_tables make_tables() {
  mr_cuda_tables made = {};
  made.f32.name = "cuda f32";
  made.f64.name = "cuda f64";
  made.bf16.name = "cuda bf16";
#define FILL_IN(file) mr_cuda_rows_##file(&made);
  MR_CUDA_FILES(FILL_IN)
#undef FILL_IN
  return made;
}

const mr_cuda_tables &all() {
  static const mr_cuda_tables made = make_tables();
  return made;
}

}  // namespace

const mr_kernels *mr_cuda_kernels_f32(void) { return &all().f32; }

const mr_kernels *mr_cuda_kernels_f64(void) { return &all().f64; }

const mr_kernels *mr_cuda_kernels_bf16(void) { return &all().bf16; }

const char *mr_cuda_error_text(int error) {
  if (error >= MR_CUDA_ERRNO) return strerror(error - MR_CUDA_ERRNO);
  if (error >= MR_CUDA_BLAS_ERRORS) {
    return cublasGetStatusString((cublasStatus_t)(error - MR_CUDA_BLAS_ERRORS));
  }
  return cudaGetErrorString((cudaError_t)error);
}
