/* Threads and cores: binding, and how much of them others take. */
#define _GNU_SOURCE
#include "device/cores.h"

#include <omp.h>
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"

static const double LEAST_GAP = 5e-4; /* seconds; shorter ones are the clock's and the kernel's */

#ifdef __linux__

/* Ranks of one host that were not given cores of their own share them all. */
static int has_cores_to_itself(const cpu_set_t *allowed, int threads) {
  const char *ranks = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (ranks && atoi(ranks) > 1) return 0;
  return threads > 1 && CPU_COUNT(allowed) == threads;
}

static void bind_this_thread(const cpu_set_t *allowed, int number) {
  unsigned cpu = 0;
  for (; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, allowed) && number-- == 0) break;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(cpu, &own);
  (void)sched_setaffinity(0, sizeof own, &own);
}

void mr_device_bind_cpu(const mr_device *device, int *bound) {
  cpu_set_t allowed;
  const int threads = device->launch.threads;
  *bound = 0;
  if (getenv("OMP_PROC_BIND") || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  if (!has_cores_to_itself(&allowed, threads)) return;
#pragma omp parallel num_threads(threads)
  bind_this_thread(&allowed, omp_get_thread_num());
  *bound = 1;
}

#else

void mr_device_bind_cpu(const mr_device *device, int *bound) {
  (void)device;
  *bound = 0;
}

#endif

/* Seconds that are missing in a row of readings of the clock. */
static double spin(double seconds) {
  const double began = mr_clock_seconds();
  double last = began, lost = 0;
  while (last - began < seconds) {
    const double now = mr_clock_seconds();
    if (now - last > LEAST_GAP) lost += now - last;
    last = now;
  }
  return lost / (last - began);
}

double mr_device_spin_cpu(const mr_device *device, double seconds) {
  const int threads = device->launch.threads;
  double sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  sum += spin(seconds);
  return sum / threads;
}
