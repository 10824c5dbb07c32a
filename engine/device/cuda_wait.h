/* How the host waits for a GPU. */
#ifndef MR_DEVICE_CUDA_WAIT_H
#define MR_DEVICE_CUDA_WAIT_H

#include "device/cuda_library.h"
#include "device/device.h"

/* Returns once `cuda`, whose record is `device`, has passed the mark, and counts the wait; *error
 * is CUDA's number, 0 when all is well. Where somebody watches the device, they are asked every
 * few milliseconds, and their error is the status. */
mr_status mr_cuda_wait(const mr_cuda_library *library, mr_cuda *cuda, mr_device *device,
                       mr_cuda_mark *mark, int *error);

#endif
