/* Values between devices and the host. On a device without host memory, a storage of integers that
 * was written by the host keeps those values as its mirror: ids, targets and lengths are checked
 * before every kernel that uses them, and a check must not wait for the device. */
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "tensor/tensor.h"

/* --- mirrors --- */

static int has_mirror(const mr_storage *storage) {
  return storage->mirror && storage->mirror_version == storage->version;
}

/* Integers only: reals are many, and nothing looks at them before a kernel does. */
static int wants_mirror(const mr_tensor *tensor) {
  return !tensor->storage->device->host_memory && !mr_dtype_is_real(tensor->dtype);
}

static mr_status make_mirror(mr_storage *storage) {
  if (storage->mirror) return MR_OK;
  return mr_memory_allocate_raw(storage->bytes, &storage->mirror);
}

static void *mirrored(const mr_tensor *tensor) {
  return (char *)tensor->storage->mirror + tensor->offset;
}

/* Notes the change, and keeps a mirror true that was, or is now wholly known. */
static mr_status change(mr_tensor *tensor, const void *host) {
  mr_storage *storage = tensor->storage;
  int64_t bytes = mr_tensor_bytes(tensor);
  int known = has_mirror(storage) || bytes == storage->bytes;
  mr_tensor_changed(tensor);
  if (!wants_mirror(tensor) || !known) return MR_OK;
  MR_TRY(make_mirror(storage));
  if (bytes > 0) memcpy(mirrored(tensor), host, (size_t)bytes);
  storage->mirror_version = storage->version;
  return MR_OK;
}

static mr_status fill_mirror_sync(const mr_tensor *tensor) {
  mr_storage *storage = tensor->storage;
  mr_device *device = storage->device;
  if (has_mirror(storage)) return MR_OK;
  MR_TRY(make_mirror(storage));
  MR_TRY(device->read_sync(device, storage->mirror, storage->memory, storage->bytes));
  storage->mirror_version = storage->version;
  return MR_OK;
}

/* --- host values --- */

mr_status mr_tensor_host_sync(const mr_tensor *tensor, mr_host_values *values) {
  *values = (mr_host_values){NULL, NULL};
  MR_TRY(mr_tensor_readable(tensor, "this tensor"));
  if (mr_tensor_device(tensor)->host_memory) {
    values->data = mr_tensor_data(tensor);
    return MR_OK;
  }
  if (wants_mirror(tensor)) {
    MR_TRY(fill_mirror_sync(tensor));
    values->data = mirrored(tensor);
    return MR_OK;
  }
  MR_TRY(mr_memory_allocate_raw(mr_tensor_bytes(tensor), &values->owned));
  values->data = values->owned;
  return mr_tensor_read_sync(tensor, values->owned);
}

void mr_host_values_release(mr_host_values *values) {
  mr_memory_release(values->owned);
  *values = (mr_host_values){NULL, NULL};
}

mr_status mr_tensor_read_sync(const mr_tensor *tensor, void *host) {
  MR_TRY(mr_tensor_readable(tensor, "this tensor"));
  mr_device *device = mr_tensor_device(tensor);
  int64_t bytes = mr_tensor_bytes(tensor);
  if (!has_mirror(tensor->storage))
    return device->read_sync(device, host, mr_tensor_data(tensor), bytes);
  if (bytes > 0) memcpy(host, mirrored(tensor), (size_t)bytes);
  return MR_OK;
}

mr_status mr_tensor_write(mr_tensor *tensor, const void *host) {
  MR_TRY(mr_tensor_readable(tensor, "this tensor"));
  mr_device *device = mr_tensor_device(tensor);
  MR_TRY(change(tensor, host));
  return device->write(device, mr_tensor_data(tensor), host, mr_tensor_bytes(tensor));
}

/* --- copies --- */

/* From one device to another, through the host. */
static mr_status copy_across(mr_tensor *to, const mr_tensor *from) {
  mr_host_values values;
  mr_status status = mr_tensor_host_sync(from, &values);
  if (status == MR_OK) status = mr_tensor_write(to, values.data);
  mr_host_values_release(&values);
  return status;
}

mr_status mr_tensor_copy_from(mr_tensor *to, const mr_tensor *from) {
  MR_TRY(mr_tensor_readable(to, "the target of a copy"));
  MR_TRY(mr_tensor_readable(from, "the source of a copy"));
  if (to->dtype != from->dtype || to->count != from->count)
    return mr_fail(MR_ERROR_ARGUMENT, "cannot copy %lld elements of %s into %lld of %s",
                   (long long)from->count, mr_dtype_name(from->dtype), (long long)to->count,
                   mr_dtype_name(to->dtype));
  mr_device *device = mr_tensor_device(to);
  if (mr_tensor_data(to) == mr_tensor_data(from)) return MR_OK;
  if (device != mr_tensor_device(from) || has_mirror(from->storage)) return copy_across(to, from);
  mr_tensor_changed(to);
  return device->copy(device, mr_tensor_data(to), mr_tensor_data(from), mr_tensor_bytes(to));
}

mr_status mr_tensor_total(const mr_tensor *tensor, mr_tensor **total) {
  const mr_shape scalar = {0};
  *total = NULL;
  MR_TRY(mr_tensor_readable(tensor, "this tensor"));
  mr_device *device = mr_tensor_device(tensor);
  MR_TRY(mr_tensor_new_raw(device, MR_F64, &scalar, total));
  mr_status status = MR_KERNEL(device, tensor->dtype, sum_f64, tensor->count,
                               mr_tensor_data(tensor), mr_tensor_data(*total));
  if (status == MR_OK) return MR_OK;
  mr_tensor_release(*total);
  *total = NULL;
  return status;
}

mr_status mr_tensor_total_sync(const mr_tensor *tensor, double *total) {
  *total = 0;
  MR_TRY(mr_tensor_readable(tensor, "this tensor"));
  mr_device *device = mr_tensor_device(tensor);
  MR_TRY(MR_KERNEL(device, tensor->dtype, sum_f64, tensor->count, mr_tensor_data(tensor),
                   device->number));
  return device->read_sync(device, total, device->number, sizeof *total);
}
