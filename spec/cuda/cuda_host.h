/* CUDA on the host: what kernels/cuda and the engine's CUDA device use of NVIDIA's headers, done
 * by the processor, so that kernels are tested on machines without a GPU or a toolkit.
 *
 *   host_runtime.h   devices, memory, streams, events      C and C++
 *   host_blas.h      cuBLAS and cuBLASLt, by OpenBLAS      C and C++
 *   host_types.h     vector types, bf16, intrinsics        C++
 *   host_threads.h   indices, barriers, shuffles, launch   C++
 *   host_wmma.h      nvcuda::wmma                          C++
 *
 * It is meaner than a GPU: fresh memory holds NaNs; blocks, threads between barriers, and streams
 * between events run in an order drawn from a seed; a wait that a thread of the block or lane of
 * the warp never joins is an error that names both; so is a host pointer handed to a kernel; and
 * under AddressSanitizer so is a device pointer that the host reads.
 *
 * Environment: MAREA_CUDA_SEED (default 1), MAREA_CUDA_DEVICES (number of devices, default 4),
 * MAREA_CUDA_MEMORY (bytes of each, default 8 GiB), MAREA_CUDA_FAULT (`driver`: the driver is too
 * old for the runtime). */
#ifndef MR_SPEC_CUDA_HOST_H
#define MR_SPEC_CUDA_HOST_H

#include "host_blas.h"
#include "host_runtime.h"

#ifdef __cplusplus
#include "host_threads.h"
#include "host_types.h"
#include "host_wmma.h"
#endif

#endif
