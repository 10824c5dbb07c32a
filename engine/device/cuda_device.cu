/* The device's half of libmarea_cuda.so: memory, copies, marks; kernels/cuda has the rest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda_library.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/errors.h"
#include "kernels/cuda/stream.h"
#include "kernels/cuda/table.h"

static_assert(MR_CUDA_NO_MEMORY == (int)cudaErrorMemoryAllocation, "as CUDA has it");
static_assert(MR_CUDA_OLD_DRIVER == (int)cudaErrorInsufficientDriver, "as CUDA has it");
static_assert(MR_CUDA_NO_DEVICE == (int)cudaErrorNoDevice, "as CUDA has it");
static_assert(MR_CUDA_NOT_READY == (int)cudaErrorNotReady, "as CUDA has it");

struct mr_cuda {
  mr_cuda_stream stream; /* first: what kernels are handed */
};

struct mr_cuda_mark {
  cudaEvent_t event;
};

namespace {

#define TRY(expression)                 \
  do {                                  \
    const int try_ = (int)(expression); \
    if (try_ != 0) return try_;         \
  } while (0)

cudaStream_t stream_of(mr_cuda *d) { return d->stream.stream; }

/* A failed call leaves its number behind, which must not be taken for that of the next launch. */
int taken(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) (void)cudaGetLastError();
  return (int)error;
}

/* --- before a device is open --- */

int versions(int *runtime, int *driver) {
  *runtime = 0;
  *driver = 0;
  TRY(taken(cudaRuntimeGetVersion(runtime)));
  return taken(cudaDriverGetVersion(driver));
}

int count_devices(int *devices) {
  *devices = 0;
  return taken(cudaGetDeviceCount(devices));
}

int read_facts(int ordinal, mr_cuda_facts *facts) {
  struct cudaDeviceProp properties;
  memset(facts, 0, sizeof *facts);
  TRY(taken(cudaGetDeviceProperties(&properties, ordinal)));
  (void)snprintf(facts->name, sizeof facts->name, "%s", properties.name);
  facts->major = properties.major;
  facts->minor = properties.minor;
  facts->memory = (int64_t)properties.totalGlobalMem;
  return taken(cudaDeviceGetPCIBusId(facts->place, (int)sizeof facts->place, ordinal));
}

/* --- life --- */

void close_device(mr_cuda *d) {
  if (d->stream.stream != NULL) (void)cudaStreamSynchronize(d->stream.stream);
  mr_cuda_stream_finish(&d->stream);
  if (d->stream.workspace != NULL) (void)cudaFree(d->stream.workspace);
  if (d->stream.scratch != NULL) (void)cudaFree(d->stream.scratch);
  if (d->stream.stream != NULL) (void)cudaStreamDestroy(d->stream.stream);
  free(d);
}

int prepare(mr_cuda *d) {
  TRY(cudaStreamCreateWithFlags(&d->stream.stream, cudaStreamNonBlocking));
  TRY(cudaMalloc(&d->stream.workspace, MR_CUDA_WORKSPACE));
  TRY(cudaMalloc(&d->stream.scratch, MR_CUDA_SCRATCH));
  return mr_cuda_stream_prepare(&d->stream);
}

int open_device(int ordinal, mr_cuda **device, void **stream,
                const mr_kernels *kernels[MR_DTYPE_COUNT]) {
  *device = NULL;
  TRY(taken(cudaSetDevice(ordinal)));
  mr_cuda *d = static_cast<mr_cuda *>(calloc(1, sizeof(mr_cuda)));
  if (d == NULL) return MR_CUDA_NO_MEMORY;
  const int error = prepare(d);
  if (error != 0) {
    close_device(d);
    (void)cudaGetLastError();
    return error;
  }
  kernels[MR_F32] = mr_cuda_kernels_f32();
  kernels[MR_F64] = mr_cuda_kernels_f64();
  kernels[MR_BF16] = mr_cuda_kernels_bf16();
  *stream = &d->stream;
  *device = d;
  return 0;
}

/* --- memory --- */

int allocate(mr_cuda *, int64_t bytes, void **memory) {
  *memory = NULL;
  return taken(cudaMalloc(memory, (size_t)bytes));
}

void release(mr_cuda *, void *memory) { (void)taken(cudaFree(memory)); }

int free_bytes(mr_cuda *, int64_t *free_now, int64_t *total) {
  size_t left = 0, all = 0;
  const int error = taken(cudaMemGetInfo(&left, &all));
  *free_now = (int64_t)left;
  *total = (int64_t)all;
  return error;
}

int allocate_host(mr_cuda *, int64_t bytes, void **memory) {
  *memory = NULL;
  return taken(cudaHostAlloc(memory, (size_t)bytes, cudaHostAllocDefault));
}

void release_host(mr_cuda *, void *memory) { (void)taken(cudaFreeHost(memory)); }

/* --- copies --- */

int zero(mr_cuda *d, void *memory, int64_t bytes) {
  return taken(cudaMemsetAsync(memory, 0, (size_t)bytes, stream_of(d)));
}

int copy_bytes(mr_cuda *d, void *to, const void *from, int64_t bytes, cudaMemcpyKind kind) {
  return taken(cudaMemcpyAsync(to, from, (size_t)bytes, kind, stream_of(d)));
}

int copy(mr_cuda *d, void *to, const void *from, int64_t bytes) {
  return copy_bytes(d, to, from, bytes, cudaMemcpyDeviceToDevice);
}

int write(mr_cuda *d, void *to, const void *from, int64_t bytes) {
  return copy_bytes(d, to, from, bytes, cudaMemcpyHostToDevice);
}

int read(mr_cuda *d, void *to, const void *from, int64_t bytes) {
  return copy_bytes(d, to, from, bytes, cudaMemcpyDeviceToHost);
}

int finish_sync(mr_cuda *d) { return taken(cudaStreamSynchronize(stream_of(d))); }

/* --- marks --- */

int mark_new(mr_cuda *, mr_cuda_mark **mark) {
  *mark = static_cast<mr_cuda_mark *>(calloc(1, sizeof(mr_cuda_mark)));
  if (*mark == NULL) return MR_CUDA_NO_MEMORY;
  const int error = taken(cudaEventCreateWithFlags(&(*mark)->event, cudaEventDisableTiming));
  if (error == 0) return 0;
  free(*mark);
  *mark = NULL;
  return error;
}

void mark_release(mr_cuda *, mr_cuda_mark *mark) {
  (void)taken(cudaEventDestroy(mark->event));
  free(mark);
}

int mark_set(mr_cuda *d, mr_cuda_mark *mark) {
  return taken(cudaEventRecord(mark->event, stream_of(d)));
}

int mark_passed(mr_cuda *, mr_cuda_mark *mark) { return taken(cudaEventQuery(mark->event)); }

int mark_wait_sync(mr_cuda *, mr_cuda_mark *mark) {
  return taken(cudaEventSynchronize(mark->event));
}

/* --- the library --- */

const char *blas_name() {
  static char text[64];
#ifdef MR_CUDA_HOST
  (void)snprintf(text, sizeof text, "cuBLAS of the host");
#else
  int major = 0, minor = 0;
  (void)cublasGetProperty(MAJOR_VERSION, &major);
  (void)cublasGetProperty(MINOR_VERSION, &minor);
  (void)snprintf(text, sizeof text, "cuBLAS %d.%d", major, minor);
#endif
  return text;
}

mr_cuda_library make_library() {
  mr_cuda_library l;
  l.version = MR_CUDA_VERSION;
  l.blas = blas_name();
  l.versions = versions;
  l.error_text = mr_cuda_error_text;
  l.count = count_devices;
  l.facts = read_facts;
  l.open = open_device;
  l.close = close_device;
  l.allocate = allocate;
  l.release = release;
  l.free_bytes = free_bytes;
  l.allocate_host = allocate_host;
  l.release_host = release_host;
  l.zero = zero;
  l.copy = copy;
  l.write = write;
  l.read = read;
  l.finish_sync = finish_sync;
  l.mark_new = mark_new;
  l.mark_release = mark_release;
  l.mark_set = mark_set;
  l.mark_passed = mark_passed;
  l.mark_wait_sync = mark_wait_sync;
  return l;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const mr_cuda_library *mr_cuda_open_library(void);

const mr_cuda_library *mr_cuda_open_library(void) {
  static const mr_cuda_library library = make_library();
  return &library;
}
