#include "device/device.h"

#include <stddef.h>

void mr_device_release(mr_device *device) {
  if (device) device->close(device);
}

mr_status mr_device_check(mr_device *device, const char *operation, int kernel_result) {
  device->kernel_calls++;
  if (kernel_result == 0) return MR_OK;
  if (device->error_text)
    return mr_fail(MR_ERROR_ENVIRONMENT, "%s failed on %s: %s", operation, device->name,
                   device->error_text(kernel_result));
  return mr_fail(MR_ERROR_ENVIRONMENT, "%s failed on %s with error %d", operation, device->name,
                 kernel_result);
}
