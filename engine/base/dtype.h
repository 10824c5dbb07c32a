/* Element types: f32 to train, bf16 to train faster on GPUs, f64 to prove, i32 and i64 for ids and
 * counts. */
#ifndef MR_BASE_DTYPE_H
#define MR_BASE_DTYPE_H

#include <stdint.h>

typedef enum mr_dtype { MR_F32, MR_F64, MR_I32, MR_I64, MR_BF16, MR_DTYPE_COUNT } mr_dtype;

/* Bytes of one element. */
int64_t mr_dtype_size(mr_dtype dtype);

/* "f32", "f64", "i32", "i64", "bf16"; static. */
const char *mr_dtype_name(mr_dtype dtype);

/* The dtype of that name, or -1. */
int mr_dtype_find(const char *name);

/* 1 for f32, f64 and bf16. */
int mr_dtype_is_real(mr_dtype dtype);

/* The dtype of what is summed over many values of a real one: losses, statistics, gradients of
 * weights. f32 for bf16, the dtype itself for others. */
mr_dtype mr_dtype_wide(mr_dtype dtype);

#endif
