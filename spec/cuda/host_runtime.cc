/* Devices, errors and memory. Streams are in host_streams.cc. */
#include "host_runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <map>

#include "host_internal.h"

#ifdef MR_HOST_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace mr_host {

namespace {

/* Of pinned memory and of the device's: lowest address, and bytes. */
typedef std::map<uintptr_t, size_t> ranges;
ranges device_memory, pinned_memory;
size_t used;
int current_device;
cudaError_t broken = cudaSuccess; /* stays */
cudaError_t last = cudaSuccess;   /* until it is asked for */
char text[1200];

int64_t setting(const char *name, int64_t otherwise) {
  const char *value = getenv(name);
  return value == nullptr || *value == 0 ? otherwise : strtoll(value, nullptr, 10);
}

size_t capacity() { return (size_t)setting("MAREA_CUDA_MEMORY", INT64_C(8) << 30); }

const size_t *find(const ranges &of, const void *memory, size_t bytes) {
  auto after = of.upper_bound((uintptr_t)memory);
  if (after == of.begin()) return nullptr;
  --after;
  const size_t offset = (uintptr_t)memory - after->first;
  return offset + bytes <= after->second && offset < (after->second > 0 ? after->second : 1)
             ? &after->second
             : nullptr;
}

}  // namespace

/* --- seeds --- */

static uint64_t state;

static void set_seed(uint64_t seed) { state = seed * 0x9E3779B97F4A7C15U + 0x2545F4914F6CDD1DU; }

uint64_t draw(uint64_t n) {
  if (state == 0) set_seed((uint64_t)setting("MAREA_CUDA_SEED", 1));
  state ^= state >> 12; /* xorshift64*: Vigna, 2016 */
  state ^= state << 25;
  state ^= state >> 27;
  const uint64_t high = state * 0x2545F4914F6CDD1DU >> 32;
  return n <= UINT32_MAX ? high * n >> 32 : (high << 32 | (state & UINT32_MAX)) % n;
}

/* --- errors --- */

void break_down(const char *message) {
  if (broken != cudaSuccess) return;
  broken = cudaErrorLaunchFailure;
  snprintf(text, sizeof text, "unspecified launch failure: %s", message);
}

cudaError_t refuse(const char *format, ...) {
  char why[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  if (broken != cudaSuccess) return broken;
  snprintf(text, sizeof text, "invalid argument: %s", why);
  return last = cudaErrorInvalidValue;
}

/* --- who may look at memory of the device --- */

/* Under AddressSanitizer, from the end of the work of a stream until the next work, nobody; of
 * large memory its ends only, which is faster. */
static void open_range(void *memory, size_t bytes, bool open) {
#ifdef MR_HOST_ASAN
  const size_t end = bytes < (64 << 10) ? bytes : (64 << 10);
  for (char *at : {(char *)memory, (char *)memory + bytes - end}) {
    if (open) {
      __asan_unpoison_memory_region(at, end);
    } else {
      __asan_poison_memory_region(at, end);
    }
  }
#else
  (void)memory, (void)bytes, (void)open;
#endif
}

void open_device(bool open) {
#ifndef MR_HOST_ASAN
  return;
#endif
  for (const auto &range : device_memory) open_range((void *)range.first, range.second, open);
}

bool on_device(const void *memory, size_t bytes) {
  return find(device_memory, memory, bytes) != nullptr;
}

bool is_pinned(const void *memory, size_t bytes) {
  return find(pinned_memory, memory, bytes) != nullptr;
}

/* The driver and the device are there, and no kernel has failed. */
cudaError_t usable() {
  const char *fault = getenv("MAREA_CUDA_FAULT");
  if (fault != nullptr && strcmp(fault, "driver") == 0) return last = cudaErrorInsufficientDriver;
  if (setting("MAREA_CUDA_DEVICES", 4) <= 0) return last = cudaErrorNoDevice;
  return broken;
}

/* What a kernel's failure left: nothing works any more. */
cudaError_t breakdown() { return broken; }

void forget_errors() { broken = last = cudaSuccess; }

}  // namespace mr_host

using namespace mr_host;

#define TRY_USABLE                            \
  do {                                        \
    const cudaError_t error_ = usable();      \
    if (error_ != cudaSuccess) return error_; \
  } while (0)

void mr_host_seed(uint64_t seed) { set_seed(seed); }

cudaError_t cudaPeekAtLastError(void) { return broken != cudaSuccess ? broken : last; }

cudaError_t cudaGetLastError(void) {
  const cudaError_t error = cudaPeekAtLastError();
  last = cudaSuccess;
  return error;
}

const char *cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorNotSupported:
      return "cudaErrorNotSupported";
  }
  return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorLaunchFailure:
      return text;
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorNotSupported:
      return "operation not supported";
  }
  return "unrecognized error code";
}

/* --- devices --- */

cudaError_t cudaGetDeviceCount(int *count) {
  *count = 0;
  TRY_USABLE;
  *count = (int)setting("MAREA_CUDA_DEVICES", 4);
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
  TRY_USABLE;
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  TRY_USABLE;
  if (device < 0 || device >= setting("MAREA_CUDA_DEVICES", 4)) {
    return last = cudaErrorInvalidDevice;
  }
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
  TRY_USABLE;
  if (device < 0 || device >= setting("MAREA_CUDA_DEVICES", 4)) {
    return last = cudaErrorInvalidDevice;
  }
  memset(properties, 0, sizeof *properties);
  snprintf(properties->name, sizeof properties->name, "host");
  snprintf(properties->uuid.bytes, sizeof properties->uuid.bytes, "host%d", device);
  properties->totalGlobalMem = capacity();
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerBlockOptin = 227 << 10;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->multiProcessorCount = 2;
  properties->major = 9;
  properties->minor = 0;
  properties->pciBusID = device + 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
  struct cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error != cudaSuccess) return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = properties.maxThreadsPerBlock;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = (int)properties.sharedMemPerBlock;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = (int)properties.sharedMemPerBlockOptin;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = properties.multiProcessorCount;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = properties.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = properties.minor;
      break;
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *name, int size, int device) {
  TRY_USABLE;
  snprintf(name, (size_t)size, "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
  const char *fault = getenv("MAREA_CUDA_FAULT");
  *version =
      fault != nullptr && strcmp(fault, "driver") == 0 ? CUDART_VERSION - 1000 : CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

/* --- memory --- */

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
  TRY_USABLE;
  *total = capacity();
  *free_bytes = used < *total ? *total - used : 0;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
  *memory = nullptr;
  TRY_USABLE;
  if (bytes == 0) return cudaSuccess;
  if (bytes > capacity() || used > capacity() - bytes) return last = cudaErrorMemoryAllocation;
  if (posix_memalign(memory, 256, bytes) != 0) return last = cudaErrorMemoryAllocation;
  memset(*memory, 0xff, bytes);
  device_memory[(uintptr_t)*memory] = bytes;
  used += bytes;
  open_range(*memory, bytes, false);
  return cudaSuccess;
}

/* Waits for all streams, as NVIDIA's does. */
cudaError_t cudaFree(void *memory) {
  if (memory == nullptr) return cudaSuccess;
  const cudaError_t error = cudaDeviceSynchronize();
  const auto range = device_memory.find((uintptr_t)memory);
  if (range == device_memory.end()) return refuse("cudaFree of %p, which is not allocated", memory);
  open_range(memory, range->second, true);
  used -= range->second;
  device_memory.erase(range);
  free(memory);
  return error;
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned) {
  *memory = nullptr;
  TRY_USABLE;
  if (posix_memalign(memory, 256, bytes > 0 ? bytes : 1) != 0) {
    return last = cudaErrorMemoryAllocation;
  }
  pinned_memory[(uintptr_t)*memory] = bytes;
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void **memory, size_t bytes) { return cudaHostAlloc(memory, bytes, 0); }

cudaError_t cudaFreeHost(void *memory) {
  if (memory == nullptr) return cudaSuccess;
  const cudaError_t error = cudaDeviceSynchronize();
  if (pinned_memory.erase((uintptr_t)memory) == 0) {
    return refuse("cudaFreeHost of %p, which is not allocated", memory);
  }
  free(memory);
  return error;
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned) {
  TRY_USABLE;
  if (pinned_memory.count((uintptr_t)memory) != 0) {
    return refuse("cudaHostRegister of %p, which is pinned already", memory);
  }
  pinned_memory[(uintptr_t)memory] = bytes;
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory) {
  const cudaError_t error = cudaDeviceSynchronize();
  if (pinned_memory.erase((uintptr_t)memory) == 0) {
    return refuse("cudaHostUnregister of %p, which is not pinned", memory);
  }
  return error;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *memory) {
  TRY_USABLE;
  memset(attributes, 0, sizeof *attributes);
  attributes->device = current_device;
  if (on_device(memory, 1)) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->devicePointer = (void *)memory;
  } else if (is_pinned(memory, 1)) {
    attributes->type = cudaMemoryTypeHost;
    attributes->hostPointer = (void *)memory;
  }
  return cudaSuccess;
}
