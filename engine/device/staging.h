/* Page-locked memory of the host through which values go to a GPU: a copy from it runs while the
 * host goes on, so each piece waits until the device has passed the mark behind its copy. */
#ifndef MR_DEVICE_STAGING_H
#define MR_DEVICE_STAGING_H

#include <stdint.h>

#include "base/status.h"
#include "device/cuda_library.h"
#include "device/device.h"

typedef struct mr_staging mr_staging;

/* `record` is the device's, in which waits are counted. */
mr_status mr_staging_new(const mr_cuda_library *library, mr_cuda *device, mr_device *record,
                         mr_staging **staging);
/* Waits for the copies under way. NULL does nothing. */
void mr_staging_release(mr_staging *staging);

/* Enqueues the copy of `bytes` from host memory, which is the caller's again at return, and sets
 * *error to CUDA's number, 0 when all is well. Pieces are added as long as all are under way, up
 * to 256 MiB; beyond that it waits for the oldest. Errors: MR_ERROR_MEMORY. */
mr_status mr_staging_write(mr_staging *staging, void *to, const void *from, int64_t bytes,
                           int *error);

#endif
