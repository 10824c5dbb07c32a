#include "tensor/tensor.h"

#include <stddef.h>
#include <string.h>

#include "base/keeps.h"
#include "base/memory.h"

/* A new tensor and its storage share a block, which is given back when both have gone; of a few
 * elements, which small operations make in great numbers, that block holds the memory too. */
typedef struct pair {
  mr_storage storage;
  mr_tensor tensor;
} pair;

enum {
  INSIDE_MOST = MR_KEEPS_BLOCKS ? 256 : 0, /* bytes; a sanitizer is to see every memory by itself */
  INSIDE_AT = (MR_MEMORY_LEAD + (int)sizeof(pair) + 63) / 64 * 64 - MR_MEMORY_LEAD
};

static mr_status allocate_pair(mr_device *device, int64_t bytes, int zero, pair **made) {
  void *block = NULL, *memory = NULL;
  int inside = device->host_memory && bytes >= 0 && bytes <= INSIDE_MOST;
  MR_TRY(mr_memory_allocate_record(inside ? INSIDE_AT + bytes : (int64_t)sizeof(pair), &block));
  mr_status status = MR_OK;
  if (inside) {
    memory = (char *)block + INSIDE_AT;
    if (zero) memset(memory, 0, (size_t)bytes);
  } else {
    status = device->allocate(device, bytes, zero, &memory);
  }
  if (status != MR_OK) {
    mr_memory_release(block);
    return status;
  }
  *made = block;
  (*made)->storage = (mr_storage){.references = 1,
                                  .device = device,
                                  .bytes = bytes,
                                  .memory = memory,
                                  .paired = 1,
                                  .inside = inside};
  return MR_OK;
}

mr_status mr_storage_adopt(mr_device *device, void *memory, int64_t bytes,
                           void (*release)(void *owner, void *memory), void *owner,
                           mr_storage **storage) {
  void *block = NULL;
  *storage = NULL;
  MR_TRY(mr_memory_allocate_record(sizeof(mr_storage), &block));
  *storage = block;
  **storage = (mr_storage){.references = 1,
                           .device = device,
                           .bytes = bytes,
                           .memory = memory,
                           .release = release,
                           .owner = owner};
  return MR_OK;
}

static void give_memory_back(mr_storage *storage) {
  if (storage->inside)
    storage->inside = 0; /* it goes with the block */
  else if (storage->release)
    storage->release(storage->owner, storage->memory);
  else
    storage->device->release(storage->device, storage->memory);
}

mr_status mr_storage_move(mr_storage *storage, void *memory,
                          void (*release)(void *owner, void *memory), void *owner) {
  mr_device *device = storage->device;
  MR_TRY(device->copy(device, memory, storage->memory, storage->bytes));
  give_memory_back(storage);
  storage->memory = memory;
  storage->release = release;
  storage->owner = owner;
  return MR_OK;
}

void mr_storage_release(mr_storage *storage) {
  if (!storage || --storage->references > 0) return;
  give_memory_back(storage);
  mr_memory_release(storage->mirror);
  storage->mirror = NULL;
  if (!storage->paired) mr_memory_release(storage);
}

mr_status mr_tensor_new_over(mr_storage *storage, int64_t offset, mr_dtype dtype,
                             const mr_shape *shape, mr_tensor **tensor) {
  int64_t count = 0;
  void *block = NULL;
  *tensor = NULL;
  MR_TRY(mr_shape_count(shape, &count));
  if (offset < 0 || offset > storage->bytes ||
      count > (storage->bytes - offset) / mr_dtype_size(dtype))
    return mr_fail(MR_ERROR_ARGUMENT, "a view of %lld %s from byte %lld leaves its %lld bytes",
                   (long long)count, mr_dtype_name(dtype), (long long)offset,
                   (long long)storage->bytes);
  MR_TRY(mr_memory_allocate_record(sizeof(mr_tensor), &block));
  storage->references++;
  *tensor = block;
  **tensor = (mr_tensor){.references = 1,
                         .dtype = dtype,
                         .shape = *shape,
                         .count = count,
                         .storage = storage,
                         .offset = offset};
  return MR_OK;
}

static mr_status new_tensor(mr_device *device, mr_dtype dtype, const mr_shape *shape, int zero,
                            mr_tensor **tensor) {
  int64_t count = 0, bytes = 0;
  pair *made = NULL;
  *tensor = NULL;
  MR_TRY(mr_shape_count(shape, &count));
  if (__builtin_mul_overflow(count, mr_dtype_size(dtype), &bytes))
    return mr_fail(MR_ERROR_MEMORY, "no memory: %lld elements of %s overflow 64 bits",
                   (long long)count, mr_dtype_name(dtype));
  MR_TRY(allocate_pair(device, bytes, zero, &made));
  made->tensor = (mr_tensor){.references = 1,
                             .dtype = dtype,
                             .shape = *shape,
                             .count = count,
                             .storage = &made->storage,
                             .home = &made->storage};
  *tensor = &made->tensor;
  return MR_OK;
}

mr_status mr_tensor_new(mr_device *device, mr_dtype dtype, const mr_shape *shape,
                        mr_tensor **tensor) {
  return new_tensor(device, dtype, shape, 1, tensor);
}

mr_status mr_tensor_new_raw(mr_device *device, mr_dtype dtype, const mr_shape *shape,
                            mr_tensor **tensor) {
  return new_tensor(device, dtype, shape, 0, tensor);
}

mr_status mr_tensor_view(mr_tensor *base, int64_t first, const mr_shape *shape, mr_tensor **view) {
  *view = NULL;
  MR_TRY(mr_tensor_readable(base, "the base of a view"));
  int64_t size = mr_dtype_size(base->dtype);
  if (first < 0 || first > base->count)
    return mr_fail(MR_ERROR_ARGUMENT, "a view from element %lld of a tensor with %lld",
                   (long long)first, (long long)base->count);
  return mr_tensor_new_over(base->storage, base->offset + first * size, base->dtype, shape, view);
}

mr_tensor *mr_tensor_retain(mr_tensor *tensor) {
  tensor->references++;
  return tensor;
}

void mr_tensor_release(mr_tensor *tensor) {
  if (!tensor || --tensor->references > 0) return;
  mr_tensor_release(tensor->gradient);
  mr_storage_release(tensor->storage);
  mr_origin *origin = tensor->origin;
  mr_storage *home = tensor->home;
  if (home)
    home->paired = 0;
  else
    mr_memory_release(tensor);
  if (home && home->references == 0) mr_memory_release(home);
  if (origin) origin->release(origin);
}

void mr_tensor_end(mr_tensor *tensor) {
  if (!tensor->storage) return;
  mr_storage_release(tensor->storage);
  tensor->storage = NULL;
  tensor->ended = 1;
}

void *mr_tensor_data(const mr_tensor *tensor) {
  return (char *)tensor->storage->memory + tensor->offset;
}

int64_t mr_tensor_bytes(const mr_tensor *tensor) {
  return tensor->count * mr_dtype_size(tensor->dtype);
}

void mr_tensor_changed(mr_tensor *tensor) { tensor->storage->version++; }

mr_device *mr_tensor_device(const mr_tensor *tensor) { return tensor->storage->device; }

mr_status mr_tensor_readable(const mr_tensor *tensor, const char *what) {
  if (tensor->storage) return MR_OK;
  return mr_fail(MR_ERROR_ARGUMENT,
                 "%s was an intermediate result that backward has consumed; call keep() on it "
                 "before the backward to read it afterwards",
                 what);
}
