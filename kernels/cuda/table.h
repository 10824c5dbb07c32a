/* The tables of kernels for CUDA devices, and how files of rows join them. */
#ifndef MR_CUDA_TABLE_H
#define MR_CUDA_TABLE_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table for float, double or bf16; they live as long as the library. A row that no file offers
 * is NULL. */
const mr_kernels *mr_cuda_kernels_f32(void);
const mr_kernels *mr_cuda_kernels_f64(void);
const mr_kernels *mr_cuda_kernels_bf16(void);

#ifdef __cplusplus
}
#endif

/* EACH(file) for every kernels/cuda/<file>.cu with rows */
/* clang-format off */
#define MR_CUDA_FILES(EACH)                                                                    \
  EACH(adamw) EACH(add) EACH(argmax) EACH(arrays) EACH(attention) EACH(attention_backward)     \
  EACH(cross_entropy) EACH(dropout) EACH(embedding) EACH(gelu) EACH(gemm) EACH(layer_norm)     \
  EACH(linear) EACH(multiply) EACH(relu) EACH(rms_norm) EACH(sgd) EACH(silu) EACH(softmax)     \
  EACH(squared_error) EACH(sum)
/* clang-format on */

/* The tables that a file puts its rows into. */
struct mr_cuda_tables {
  mr_kernels f32, f64, bf16;
};

/* At the end of a file of rows, whose `rows<T>` puts them into the table of T. */
#define MR_CUDA_ROWS(file)                           \
  void mr_cuda_rows_##file(mr_cuda_tables *tables);  \
  void mr_cuda_rows_##file(mr_cuda_tables *tables) { \
    rows<float>(&tables->f32);                       \
    rows<double>(&tables->f64);                      \
    rows<__nv_bfloat16>(&tables->bf16);              \
  }

#endif
