/* Finding libmarea_cuda.so and opening it. */
#ifndef MR_DEVICE_CUDA_FIND_H
#define MR_DEVICE_CUDA_FIND_H

#include "base/status.h"
#include "device/cuda_library.h"

/* The library, opened once; it stays for the life of the process. It is the file that
 * MAREA_CUDA_LIBRARY names, else libmarea_cuda.so beside the module marea/core.so, or in
 * ../lib/marea seen from the program. Errors: MR_ERROR_ENVIRONMENT. */
mr_status mr_cuda_find(const mr_cuda_library **library);

#endif
