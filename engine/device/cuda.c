/* The record of a GPU: blocks kept in a pool, copies and kernels on one stream. */
#include "device/cuda.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "device/blocks.h"
#include "device/cuda_find.h"
#include "device/cuda_wait.h"
#include "device/staging.h"

typedef struct cuda_device {
  mr_device device; /* first */
  const mr_cuda_library *library;
  mr_cuda *cuda;
  mr_blocks *blocks;
  mr_blocks *locked; /* page-locked memory of the host */
  mr_staging *staging;
  char name[16], instruction_set[16];
  mr_cuda_facts facts;
} cuda_device;

static cuda_device *cuda_of(mr_device *device) { return (cuda_device *)(void *)device; }

static mr_status check(const cuda_device *c, const char *what, int error) {
  if (error == 0) return MR_OK;
  return mr_fail(MR_ERROR_ENVIRONMENT, "%s failed on %s: %s", what, c->name,
                 c->library->error_text(error));
}

/* --- memory --- */

static mr_status take_block(void *owner, int64_t bytes, void **memory) {
  cuda_device *c = owner;
  int error = c->library->allocate(c->cuda, bytes, memory);
  if (error == 0) return MR_OK;
  *memory = NULL;
  return error == MR_CUDA_NO_MEMORY ? MR_OK : check(c, "asking for memory", error);
}

static void give_block(void *owner, void *memory) {
  cuda_device *c = owner;
  c->library->release(c->cuda, memory);
}

static mr_status take_locked(void *owner, int64_t bytes, void **memory) {
  cuda_device *c = owner;
  int error = c->library->allocate_host(c->cuda, bytes, memory);
  if (error == 0) return MR_OK;
  *memory = NULL;
  return error == MR_CUDA_NO_MEMORY ? MR_OK : check(c, "page-locking memory", error);
}

static void give_locked(void *owner, void *memory) {
  cuda_device *c = owner;
  c->library->release_host(c->cuda, memory);
}

static mr_status no_memory(const cuda_device *c, int64_t bytes) {
  int64_t free_bytes = 0, total = 0;
  (void)c->library->free_bytes(c->cuda, &free_bytes, &total);
  return mr_fail(MR_ERROR_ENVIRONMENT,
                 "no memory on %s (%s): %lld bytes were asked for; %lld are in use by this rank, "
                 "%lld of %lld are free",
                 c->name, c->facts.name, (long long)bytes,
                 (long long)mr_blocks_used(c->blocks).live_bytes, (long long)free_bytes,
                 (long long)total);
}

static mr_status allocate(mr_device *device, int64_t bytes, int zero, void **memory) {
  cuda_device *c = cuda_of(device);
  MR_TRY(mr_blocks_take(c->blocks, bytes, memory));
  if (!*memory) return no_memory(c, bytes);
  mr_status status = MR_OK;
  if (zero && bytes > 0)
    status = check(c, "zeroing memory", c->library->zero(c->cuda, *memory, bytes));
  if (status == MR_OK) return MR_OK;
  mr_blocks_give(c->blocks, *memory);
  *memory = NULL;
  return status;
}

static void release(mr_device *device, void *memory) {
  if (memory) mr_blocks_give(cuda_of(device)->blocks, memory);
}

static mr_status allocate_host(mr_device *device, int64_t bytes, void **memory) {
  MR_TRY(mr_blocks_take(cuda_of(device)->locked, bytes, memory));
  if (*memory) return MR_OK;
  return mr_fail(MR_ERROR_MEMORY, "no memory for %lld page-locked bytes", (long long)bytes);
}

static void release_host(mr_device *device, void *memory) {
  if (memory) mr_blocks_give(cuda_of(device)->locked, memory);
}

static mr_memory_use memory_used(mr_device *device) {
  return mr_blocks_used(cuda_of(device)->blocks);
}

static void reset_peak(mr_device *device) { mr_blocks_reset_peak(cuda_of(device)->blocks); }

/* --- marks --- */

static mr_status set_mark(mr_device *device, mr_mark **mark) {
  cuda_device *c = cuda_of(device);
  mr_cuda_mark *made = NULL;
  *mark = NULL;
  MR_TRY(check(c, "making an event", c->library->mark_new(c->cuda, &made)));
  mr_status status = check(c, "recording an event", c->library->mark_set(c->cuda, made));
  if (status == MR_OK)
    *mark = (mr_mark *)(void *)made;
  else
    c->library->mark_release(c->cuda, made);
  return status;
}

static mr_status test_mark(mr_device *device, mr_mark *mark, int *passed) {
  cuda_device *c = cuda_of(device);
  int error = c->library->mark_passed(c->cuda, (mr_cuda_mark *)(void *)mark);
  *passed = error == 0;
  return error == MR_CUDA_NOT_READY ? MR_OK : check(c, "work called before", error);
}

static void release_mark(mr_device *device, mr_mark *mark) {
  cuda_device *c = cuda_of(device);
  if (mark) c->library->mark_release(c->cuda, (mr_cuda_mark *)(void *)mark);
}

/* --- copies --- */

static mr_status write_values(mr_device *device, void *to, const void *from_host, int64_t bytes) {
  cuda_device *c = cuda_of(device);
  int error = 0;
  MR_TRY(mr_staging_write(c->staging, to, from_host, bytes, &error));
  return check(c, "a copy to the device", error);
}

static mr_status read_values(mr_device *device, void *to, const void *from, int64_t bytes) {
  cuda_device *c = cuda_of(device);
  if (bytes == 0) return MR_OK;
  return check(c, "a copy from the device", c->library->read(c->cuda, to, from, bytes));
}

/* Waits, and has somebody look meanwhile whether that can end. */
static mr_status wait_watched(cuda_device *c) {
  mr_mark *mark = NULL;
  int error = 0;
  MR_TRY(set_mark(&c->device, &mark));
  mr_status status =
      mr_cuda_wait(c->library, c->cuda, &c->device, (mr_cuda_mark *)(void *)mark, &error);
  release_mark(&c->device, mark);
  return status == MR_OK ? check(c, "work called before", error) : status;
}

static mr_status finish_sync(mr_device *device) {
  cuda_device *c = cuda_of(device);
  if (device->watch.look)
    MR_TRY(wait_watched(c));
  else
    device->waits++;
  return check(c, "work called before", c->library->finish_sync(c->cuda));
}

/* Into memory that is not page-locked the driver copies through its own. */
static mr_status read_sync(mr_device *device, void *to_host, const void *from, int64_t bytes) {
  cuda_device *c = cuda_of(device);
  if (bytes == 0) return MR_OK;
  if (!device->watch.look) {
    MR_TRY(read_values(device, to_host, from, bytes));
    return finish_sync(device);
  }
  MR_TRY(wait_watched(c));
  MR_TRY(read_values(device, to_host, from, bytes));
  return check(c, "work called before", c->library->finish_sync(c->cuda));
}

static mr_status copy(mr_device *device, void *to, const void *from, int64_t bytes) {
  cuda_device *c = cuda_of(device);
  if (bytes == 0) return MR_OK;
  return check(c, "a copy within the device", c->library->copy(c->cuda, to, from, bytes));
}

/* --- opening --- */

static mr_status refuse_driver(const mr_cuda_library *library, int error) {
  int runtime = 0, driver = 0;
  (void)library->versions(&runtime, &driver);
  if (driver == 0)
    return mr_fail(MR_ERROR_ENVIRONMENT, "there is no NVIDIA driver on this machine");
  if (error == MR_CUDA_OLD_DRIVER)
    return mr_fail(MR_ERROR_ENVIRONMENT,
                   "the NVIDIA driver is too old: it serves CUDA %d.%d, and this marea was built "
                   "with %d.%d",
                   driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  if (error == MR_CUDA_NO_DEVICE)
    return mr_fail(MR_ERROR_ENVIRONMENT, "the NVIDIA driver shows no GPU");
  return mr_fail(MR_ERROR_ENVIRONMENT, "CUDA cannot be used: %s", library->error_text(error));
}

static mr_status count_devices(const mr_cuda_library *library, int *count) {
  int error = library->count(count);
  if (error == 0 && *count == 0) error = MR_CUDA_NO_DEVICE;
  return error == 0 ? MR_OK : refuse_driver(library, error);
}

mr_status mr_device_count_cuda(int *count) {
  const mr_cuda_library *library = NULL;
  *count = 0;
  MR_TRY(mr_cuda_find(&library));
  return count_devices(library, count);
}

static void close_cuda(mr_device *device) {
  cuda_device *c = cuda_of(device);
  mr_staging_release(c->staging);
  mr_blocks_release(c->locked);
  mr_blocks_release(c->blocks);
  if (c->cuda) c->library->close(c->cuda);
  mr_memory_release(c);
}

static void fill_record(cuda_device *c, int ordinal, int threads) {
  (void)snprintf(c->name, sizeof c->name, "cuda:%d", ordinal);
  (void)snprintf(c->instruction_set, sizeof c->instruction_set, "sm_%d%d", c->facts.major,
                 c->facts.minor);
  c->device = (mr_device){.name = c->name,
                          .ordinal = ordinal,
                          .instruction_set = c->instruction_set,
                          .blas = c->library->blas,
                          .model = c->facts.name,
                          .place = c->facts.place,
                          .launch = {.threads = threads},
                          .allocate = allocate,
                          .release = release,
                          .write = write_values,
                          .read_sync = read_sync,
                          .copy = copy,
                          .finish_sync = finish_sync,
                          .allocate_host = allocate_host,
                          .release_host = release_host,
                          .read = read_values,
                          .set_mark = set_mark,
                          .test_mark = test_mark,
                          .release_mark = release_mark,
                          .memory_used = memory_used,
                          .reset_peak = reset_peak,
                          .error_text = c->library->error_text,
                          .close = close_cuda};
}

static mr_status open_parts(cuda_device *c, int ordinal) {
  mr_block_source source = {c, take_block, give_block};
  mr_block_source locked = {c, take_locked, give_locked};
  mr_device *device = &c->device;
  void *number = NULL;
  int error = c->library->open(ordinal, &c->cuda, &device->launch.stream, device->kernels);
  if (error == MR_CUDA_NO_MEMORY)
    return mr_fail(MR_ERROR_ENVIRONMENT, "no memory on %s (%s) to begin with", c->name,
                   c->facts.name);
  MR_TRY(check(c, "opening", error));
  MR_TRY(mr_staging_new(c->library, c->cuda, device, &c->staging));
  MR_TRY(mr_blocks_new(&source, &c->blocks));
  MR_TRY(mr_blocks_new(&locked, &c->locked));
  MR_TRY(allocate(device, sizeof(double), 0, &number));
  device->number = number;
  return MR_OK;
}

mr_status mr_device_open_cuda(int ordinal, int threads, mr_device **device) {
  const mr_cuda_library *library = NULL;
  void *block = NULL;
  int count = 0;
  *device = NULL;
  MR_TRY(mr_cuda_find(&library));
  MR_TRY(count_devices(library, &count));
  if (ordinal < 0 || ordinal >= count)
    return mr_fail(MR_ERROR_ENVIRONMENT, "there is no cuda:%d: the driver shows %d GPU%s, from 0",
                   ordinal, count, count == 1 ? "" : "s");
  MR_TRY(mr_memory_allocate(sizeof(cuda_device), &block));
  cuda_device *c = block;
  c->library = library;
  int error = library->facts(ordinal, &c->facts);
  fill_record(c, ordinal, threads);
  mr_status status = check(c, "asking for its facts", error);
  if (status == MR_OK) status = open_parts(c, ordinal);
  if (status != MR_OK) {
    close_cuda(&c->device);
    return status;
  }
  *device = &c->device;
  return MR_OK;
}
