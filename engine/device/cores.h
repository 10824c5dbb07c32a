/* The CPU device's threads and the cores they run on. */
#ifndef MR_DEVICE_CORES_H
#define MR_DEVICE_CORES_H

#include "device/device.h"

/* Binds each of the device's threads to a core of its own, for as long as the process lives: two
 * that are left to the system may sit on one core for seconds. Does nothing, and says 0 in `bound`,
 * where OMP_PROC_BIND decides, where there is one thread, or where the process has not as many
 * cores to itself. Child processes inherit the binding of the thread that starts them. */
void mr_device_bind_cpu(const mr_device *device, int *bound);

/* Spins on all of the device's threads for so many seconds; returns the share of that time in
 * which a thread was not running, the mean over threads: how disturbed the machine is. */
double mr_device_spin_cpu(const mr_device *device, double seconds);

#endif
