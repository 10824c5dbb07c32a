/* The rows of this directory: their list, and a prototype for each, taken from mr_kernels. */
#ifndef MR_CPU_ROWS_H
#define MR_CPU_ROWS_H

#include "kernels/cpu/real.h"
#include "kernels/kernels.h"

/* EACH(row) for every row of mr_kernels */
/* clang-format off */
#define MR_CPU_ROWS(EACH)                                                                      \
  EACH(fill) EACH(add_scaled) EACH(scale) EACH(sum_parts) EACH(from_f32) EACH(from_f64)        \
  EACH(add) EACH(add_backward) EACH(multiply) EACH(multiply_backward)                          \
  EACH(gemm) EACH(gemms) EACH(linear) EACH(linear_backward)                                    \
  EACH(linear_gelu) EACH(gelu_linear_backward)                                                 \
  EACH(relu) EACH(relu_backward) EACH(gelu) EACH(gelu_backward) EACH(silu) EACH(silu_backward) \
  EACH(layer_norm) EACH(add_layer_norm) EACH(layer_norm_backward)                              \
  EACH(rms_norm) EACH(rms_norm_backward)                                                       \
  EACH(softmax) EACH(softmax_backward) EACH(attention) EACH(attention_backward)                \
  EACH(dropout) EACH(dropout_backward) EACH(embedding) EACH(embedding_backward)                \
  EACH(cross_entropy) EACH(cross_entropy_backward)                                             \
  EACH(squared_error) EACH(squared_error_backward)                                             \
  EACH(weighted_sum) EACH(weighted_sum_backward) EACH(sum_f64) EACH(sum_squares)               \
  EACH(argmax) EACH(sgd) EACH(adamw)
/* clang-format on */

#define MR_CPU_PROTOTYPE(row) __typeof__(*((mr_kernels *)0)->row) MR_ROW(row);
MR_CPU_ROWS(MR_CPU_PROTOTYPE)
#undef MR_CPU_PROTOTYPE

#endif
