/* What libmarea_cuda.so offers: CUDA's calls as far as a device record needs them, and the table
 * of kernels. The library knows nothing of the program that opens it; this header is all that
 * they share, and MR_CUDA_VERSION grows with every change of it or of kernels/kernels.h.
 *
 * Every function returns 0 or an error number of CUDA's. Copies, zeroing and kernels are enqueued
 * on the device's stream and run in the order of their calls; only functions named _sync wait.
 * All calls come from one thread. */
#ifndef MR_DEVICE_CUDA_LIBRARY_H
#define MR_DEVICE_CUDA_LIBRARY_H

#include <stdint.h>

#include "base/dtype.h"
#include "kernels/kernels.h"

enum { MR_CUDA_VERSION = 2 };

/* The error numbers that the program tells apart. */
enum {
  MR_CUDA_NO_MEMORY = 2,   /* cudaErrorMemoryAllocation */
  MR_CUDA_OLD_DRIVER = 35, /* cudaErrorInsufficientDriver: too old, or none at all */
  MR_CUDA_NO_DEVICE = 100, /* cudaErrorNoDevice */
  MR_CUDA_NOT_READY = 600  /* cudaErrorNotReady */
};

typedef struct mr_cuda mr_cuda;           /* one device, open */
typedef struct mr_cuda_mark mr_cuda_mark; /* a place in the order of a device's work */

typedef struct mr_cuda_facts {
  char name[256];   /* "NVIDIA H200" */
  char place[32];   /* its PCI bus id, by which two ranks see that they share it */
  int major, minor; /* of its compute capability */
  int64_t memory;   /* bytes */
} mr_cuda_facts;

typedef struct mr_cuda_library {
  int version;      /* MR_CUDA_VERSION when it was built */
  const char *blas; /* "cuBLAS 13.0" */
  /* Versions as CUDA writes them, 13000 for 13.0; the driver's is 0 where there is none. */
  int (*versions)(int *runtime, int *driver);
  const char *(*error_text)(int error); /* static */
  int (*count)(int *devices);
  int (*facts)(int ordinal, mr_cuda_facts *facts);

  /* Opens a device: a stream and a cuBLAS handle of its own. *stream gets what kernels are
   * handed as that of mr_launch; NULL tables of dtypes are not supported. */
  int (*open)(int ordinal, mr_cuda **device, void **stream,
              const mr_kernels *kernels[MR_DTYPE_COUNT]);
  void (*close)(mr_cuda *device);

  int (*allocate)(mr_cuda *device, int64_t bytes, void **memory);
  void (*release)(mr_cuda *device, void *memory); /* waits for what may still use it */
  int (*free_bytes)(mr_cuda *device, int64_t *free, int64_t *total);
  /* Page-locked memory of the host, which the copies below take. */
  int (*allocate_host)(mr_cuda *device, int64_t bytes, void **memory);
  void (*release_host)(mr_cuda *device, void *memory);

  int (*zero)(mr_cuda *device, void *memory, int64_t bytes);
  int (*copy)(mr_cuda *device, void *to, const void *from, int64_t bytes);
  int (*write)(mr_cuda *device, void *to, const void *from_locked, int64_t bytes);
  int (*read)(mr_cuda *device, void *to_locked, const void *from, int64_t bytes);
  int (*finish_sync)(mr_cuda *device);

  int (*mark_new)(mr_cuda *device, mr_cuda_mark **mark);
  void (*mark_release)(mr_cuda *device, mr_cuda_mark *mark);
  int (*mark_set)(mr_cuda *device, mr_cuda_mark *mark); /* behind everything enqueued so far */
  /* 0 when the device has passed it, MR_CUDA_NOT_READY when not yet. */
  int (*mark_passed)(mr_cuda *device, mr_cuda_mark *mark);
  int (*mark_wait_sync)(mr_cuda *device, mr_cuda_mark *mark);
} mr_cuda_library;

/* The one symbol that the library exports; static, never NULL. */
#define MR_CUDA_ENTRY "mr_cuda_open_library"
typedef const mr_cuda_library *(*mr_cuda_entry)(void);

#endif
