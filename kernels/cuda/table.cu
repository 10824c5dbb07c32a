/* The tables, and the texts of errors. */
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/errors.h"
#include "kernels/cuda/table.h"

#define PROTOTYPE(file) void mr_cuda_rows_##file(mr_kernels *f32, mr_kernels *f64);
MR_CUDA_FILES(PROTOTYPE)
#undef PROTOTYPE

namespace {

struct tables {
  mr_kernels f32, f64;

  tables() : f32(), f64() {
    f32.name = "cuda f32";
    f64.name = "cuda f64";
#define FILL_IN(file) mr_cuda_rows_##file(&f32, &f64);
    MR_CUDA_FILES(FILL_IN)
#undef FILL_IN
  }
};

const tables &all() {
  static const tables made;
  return made;
}

}  // namespace

const mr_kernels *mr_cuda_kernels_f32(void) { return &all().f32; }

const mr_kernels *mr_cuda_kernels_f64(void) { return &all().f64; }

const char *mr_cuda_error_text(int error) {
  if (error >= MR_CUDA_ERRNO) return strerror(error - MR_CUDA_ERRNO);
  if (error >= MR_CUDA_BLAS_ERRORS) {
    return cublasGetStatusString((cublasStatus_t)(error - MR_CUDA_BLAS_ERRORS));
  }
  return cudaGetErrorString((cudaError_t)error);
}
