/* A device: its memory, its kernels, and how wide they run. Everything that differs between
 * kinds of processors stands in this record; the floors above call through it.
 *
 * Invariants
 *   - memory of a device is read and written by that device's kernels and by its copy functions
 *     only; on the CPU it is also host memory (`host_memory` is 1);
 *   - a device works off kernels and copies in the order in which they were called, on the CPU
 *     before the call returns; only functions named _sync wait for it. */
#ifndef MR_DEVICE_DEVICE_H
#define MR_DEVICE_DEVICE_H

#include <stdint.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/kernels.h"

typedef struct mr_device mr_device;
typedef struct mr_mark mr_mark;

/* Asked every few milliseconds while the host waits for the device, whose work may wait for other
 * processes: an error ends the wait, and the call that waits fails with it. */
typedef struct mr_device_watch {
  void *owner;
  mr_status (*look)(void *owner); /* NULL: the wait ends with the device's work */
} mr_device_watch;

struct mr_device {
  const char *name;            /* "cpu" */
  const char *instruction_set; /* "v3", "v4", ...: for run.json */
  const char *blas;            /* the BLAS library's name of its core */
  const char *model;           /* "NVIDIA H200"; "" on the CPU */
  const char *place; /* the same for two devices only if they are one; "" for host memory */
  int ordinal;       /* of a GPU: the number in its name */
  int host_memory;
  mr_device_watch watch;
  int64_t kernel_calls;                      /* so far */
  int64_t waits;                             /* of the host for the device, so far */
  mr_launch launch;                          /* handed to every kernel */
  const mr_kernels *kernels[MR_DTYPE_COUNT]; /* NULL for dtypes without arithmetic */
  double *number; /* device memory of one double, for a kernel's result that the host reads next */

  /* `bytes` of memory, zeroed when `zero`; MR_ERROR_MEMORY. Release with `release`. */
  mr_status (*allocate)(mr_device *device, int64_t bytes, int zero, void **memory);
  /* What was called before may still use the memory: it is reused in the device's order only. */
  void (*release)(mr_device *device, void *memory);
  /* Copies host memory, which is the caller's again at return, into the device's. */
  mr_status (*write)(mr_device *device, void *to, const void *from_host, int64_t bytes);
  /* Copies to host memory, complete at return. */
  mr_status (*read_sync)(mr_device *device, void *to_host, const void *from, int64_t bytes);
  /* Copies within the device's memory; ranges do not overlap. */
  mr_status (*copy)(mr_device *device, void *to, const void *from, int64_t bytes);
  /* Returns once everything called so far is done; its failures show here at the latest. */
  mr_status (*finish_sync)(mr_device *device);

  /* Reads that do not wait, for devices without host memory; NULL on others. A mark is a place in
   * the device's order, behind everything called before it was set. */
  mr_status (*allocate_host)(mr_device *device, int64_t bytes, void **memory);
  void (*release_host)(mr_device *device, void *memory); /* once no read into it is under way */
  /* `to` is from allocate_host; it holds the values once a mark set afterwards is passed. */
  mr_status (*read)(mr_device *device, void *to, const void *from, int64_t bytes);
  mr_status (*set_mark)(mr_device *device, mr_mark **mark);
  mr_status (*test_mark)(mr_device *device, mr_mark *mark, int *passed);
  void (*release_mark)(mr_device *device, mr_mark *mark); /* NULL does nothing */

  mr_memory_use (*memory_used)(mr_device *device);
  void (*reset_peak)(mr_device *device);
  /* The text of a kernel's or copy's error number, static; NULL where numbers have none. */
  const char *(*error_text)(int error);
  void (*close)(mr_device *device); /* gives everything back, the record too */
};

/* Opens the CPU device with `threads` threads (0: one per core that this process may use, shared
 * fairly with the other ranks of the host when processes are not bound). Release with
 * mr_device_release. Errors: MR_ERROR_MEMORY. */
mr_status mr_device_open_cpu(int threads, mr_device **device);

/* NULL does nothing. No memory of the device may be in use any more. */
void mr_device_release(mr_device *device);

/* Counts a kernel's call and turns its return value into a status; `operation` names it in the
 * message. */
mr_status mr_device_check(mr_device *device, const char *operation, int kernel_result);

/* Runs row `row` of the kernel table for `dtype` with the device's launch as first argument;
 * a missing row is MR_ERROR_ARGUMENT. */
#define MR_KERNEL(device, dtype, row, ...)                                                         \
  (((device)->kernels[dtype] && (device)->kernels[dtype]->row)                                     \
       ? mr_device_check((device), #row,                                                           \
                         (device)->kernels[dtype]->row(&(device)->launch, __VA_ARGS__))            \
       : mr_fail(MR_ERROR_ARGUMENT, "%s of %s is not supported on %s", #row, mr_dtype_name(dtype), \
                 (device)->name))

#endif
