/* NVIDIA GPUs. What needs CUDA lies in libmarea_cuda.so, which is opened when a GPU is asked for
 * and not before: the program starts, and says what is missing, where there is none. */
#ifndef MR_DEVICE_CUDA_H
#define MR_DEVICE_CUDA_H

#include "device/device.h"

/* Sets *count to the number of GPUs that the driver shows. Errors: MR_ERROR_ENVIRONMENT with what
 * is missing: the library, a part of CUDA that it needs, a driver, a newer one, a GPU. */
mr_status mr_device_count_cuda(int *count);

/* Opens GPU `ordinal`, from 0; loops that stay on the host run on `threads` threads. Release with
 * mr_device_release. Errors: MR_ERROR_ENVIRONMENT as above, and for a number that there is not;
 * MR_ERROR_MEMORY. Where the GPU has no memory left, `allocate` is MR_ERROR_ENVIRONMENT. */
mr_status mr_device_open_cuda(int ordinal, int threads, mr_device **device);

#endif
