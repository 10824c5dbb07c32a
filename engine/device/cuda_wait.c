#define _GNU_SOURCE 1
#include "device/cuda_wait.h"

#include <sched.h>

#include "base/clock.h"

static const double LOOK_SECONDS = 0.002;

mr_status mr_cuda_wait(const mr_cuda_library *library, mr_cuda *cuda, mr_device *device,
                       mr_cuda_mark *mark, int *error) {
  const mr_device_watch *watch = &device->watch;
  device->waits++;
  if (!watch->look) {
    *error = library->mark_wait_sync(cuda, mark);
    return MR_OK;
  }
  double next_look = mr_clock_seconds() + LOOK_SECONDS;
  for (;;) {
    *error = library->mark_passed(cuda, mark);
    if (*error != MR_CUDA_NOT_READY) return MR_OK;
    (void)sched_yield();
    if (mr_clock_seconds() < next_look) continue;
    MR_TRY(watch->look(watch->owner));
    next_look = mr_clock_seconds() + LOOK_SECONDS;
  }
}
