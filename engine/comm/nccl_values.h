/* Values of a channel's data, changed in its stream. */
#ifndef MR_COMM_NCCL_VALUES_H
#define MR_COMM_NCCL_VALUES_H

#include <stdint.h>

#include "base/dtype.h"
#include "kernels/cuda/cuda.h"

/* x[i] *= 1/size, for i in 0 .. n - 1; dtype is f32 or f64. */
int mr_nccl_divide(cudaStream_t stream, mr_dtype dtype, int64_t n, int size, void *x);

/* keys[i] = the integer that stands for real x[i]: in the order of reals, -0 before +0, and NaN
 * behind all others (`nan_last`) or before them. i32 for f32, i64 for f64. keys may be x. */
int mr_nccl_to_keys(cudaStream_t stream, mr_dtype dtype, int nan_last, int64_t n, const void *x,
                    void *keys);
/* Back, in place; what stood for NaN becomes one. */
int mr_nccl_from_keys(cudaStream_t stream, mr_dtype dtype, int64_t n, void *keys);

#endif
