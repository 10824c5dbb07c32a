/* The CPU device: host memory from the accounted allocator, kernels chosen for this processor. */
#define _GNU_SOURCE
#include "kernels/cpu/cpu.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"

static mr_status allocate(mr_device *device, int64_t bytes, int zero, void **memory) {
  (void)device;
  return zero ? mr_memory_allocate(bytes, memory) : mr_memory_allocate_raw(bytes, memory);
}

static void release(mr_device *device, void *memory) {
  (void)device;
  mr_memory_release(memory);
}

static mr_status copy(mr_device *device, void *to, const void *from, int64_t bytes) {
  (void)device;
  if (bytes > 0) memcpy(to, from, (size_t)bytes);
  return MR_OK;
}

static mr_status finish_sync(mr_device *device) {
  (void)device;
  return MR_OK;
}

static mr_memory_use memory_used(mr_device *device) {
  (void)device;
  return mr_memory_used();
}

static void reset_peak(mr_device *device) {
  (void)device;
  mr_memory_reset_peak();
}

static void close_cpu(mr_device *device) { mr_memory_release(device); }

static int positive_variable(const char *name) {
  const char *text = getenv(name);
  if (!text) return 0;
  long value = strtol(text, NULL, 10);
  return value > 0 && value < 4096 ? (int)value : 0;
}

typedef struct cpu_device {
  mr_device device; /* first */
  double number;
} cpu_device;

/* OMP_NUM_THREADS wins; else the cores that this process may use, as OpenMP counted them before it
 * bound any thread. Unbound ranks of one host see all cores, so they share them. */
static int default_threads(void) {
  int threads = positive_variable("OMP_NUM_THREADS");
  if (threads > 0) return threads;
  int cores = omp_get_num_procs();
  int bound = cores < (int)sysconf(_SC_NPROCESSORS_ONLN);
  int ranks = positive_variable("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (!bound && ranks > 1) cores /= ranks;
  return cores > 0 ? cores : 1;
}

mr_status mr_device_open_cpu(int threads, mr_device **device) {
  void *block = NULL;
  *device = NULL;
  MR_TRY(mr_memory_allocate(sizeof(cpu_device), &block));
  mr_cpu_prepare();
  cpu_device *cpu = block;
  cpu->device = (mr_device){
      .name = "cpu",
      .instruction_set = mr_cpu_instruction_set(),
      .blas = mr_cpu_blas(),
      .model = "",
      .place = "",
      .host_memory = 1,
      .launch = {.threads = threads > 0 ? threads : default_threads(), .stream = NULL},
      .kernels = {[MR_F32] = mr_cpu_kernels_f32(),
                  [MR_F64] = mr_cpu_kernels_f64(),
                  [MR_BF16] = mr_cpu_kernels_bf16()},
      .number = &cpu->number,
      .allocate = allocate,
      .release = release,
      .write = copy,
      .read_sync = copy,
      .copy = copy,
      .finish_sync = finish_sync,
      .memory_used = memory_used,
      .reset_peak = reset_peak,
      .close = close_cpu,
  };
  *device = &cpu->device;
  return MR_OK;
}
