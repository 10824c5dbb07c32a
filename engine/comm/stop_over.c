/* Operations on a device's memory by way of the host. The device reads into page-locked memory in
 * its own order, so that neither a post nor a look at it waits; the results go back likewise. */
#include <stddef.h>

#include "base/memory.h"
#include "comm/transport.h"

static int64_t bytes_of(const mr_handle *handle, int whole) {
  const mr_record *record = &handle->record;
  int64_t bytes = record->count * mr_dtype_size((mr_dtype)record->dtype);
  return whole ? bytes * handle->group->size : bytes;
}

static int64_t sent_bytes(const mr_handle *handle) {
  int kind = handle->record.kind;
  return bytes_of(handle, kind == MR_REDUCE_SCATTER || kind == MR_ALL_TO_ALL);
}

static int64_t got_bytes(const mr_handle *handle) {
  int kind = handle->record.kind;
  return bytes_of(handle, kind == MR_ALL_GATHER || kind == MR_ALL_TO_ALL);
}

static int is_root(const mr_handle *handle) { return handle->record.peer == handle->group->rank; }

/* A broadcast reads the root's data and writes the others'. */
static int reads(const mr_handle *handle) {
  return handle->data && (handle->record.kind != MR_BROADCAST || is_root(handle));
}

static int writes(const mr_handle *handle) {
  return handle->result && (handle->record.kind != MR_BROADCAST || !is_root(handle));
}

/* Among one member, a collective is a copy or nothing. */
static mr_status move_alone(mr_handle *handle) {
  mr_device *device = handle->over.device;
  handle->over.moved = 1;
  if (handle->data == handle->result) return MR_OK;
  return device->copy(device, handle->result, handle->data, sent_bytes(handle));
}

static mr_status read_data(mr_handle *handle, const void *data, void *to) {
  mr_device *device = handle->over.device;
  MR_TRY(device->read(device, to, data, sent_bytes(handle)));
  return device->set_mark(device, &handle->over.mark);
}

mr_status mr_stop_over_begin(mr_handle *handle, mr_device *device) {
  mr_stop_over *over = &handle->over;
  const void *data = handle->data;
  int in_place = handle->data == handle->result, read = reads(handle);
  if (!device || device->host_memory || handle->record.dtype < 0 || handle->record.count == 0)
    return MR_OK;
  over->device = device;
  if (handle->group->size == 1 && !mr_record_is_message(&handle->record)) return move_alone(handle);
  over->result = writes(handle) ? handle->result : NULL;
  over->bytes = got_bytes(handle);
  if (handle->result) {
    MR_TRY(device->allocate_host(device, got_bytes(handle), &over->got));
    handle->result = over->got;
    if (in_place) handle->data = over->got;
  }
  if (data && !in_place) {
    MR_TRY(device->allocate_host(device, sent_bytes(handle), &over->sent));
    handle->data = over->sent;
  }
  return read ? read_data(handle, data, in_place ? over->got : over->sent) : MR_OK;
}

mr_status mr_stop_over_ready(mr_handle *handle, int *ready) {
  mr_stop_over *over = &handle->over;
  *ready = 1;
  if (!over->mark) return MR_OK;
  MR_TRY(over->device->test_mark(over->device, over->mark, ready));
  if (!*ready) return MR_OK;
  over->device->release_mark(over->device, over->mark);
  over->mark = NULL;
  return MR_OK;
}

mr_status mr_stop_over_end(mr_handle *handle) {
  const mr_stop_over *over = &handle->over;
  if (!over->result) return MR_OK;
  return over->device->write(over->device, over->result, over->got, over->bytes);
}

/* An operation that failed may leave its read under way. */
void mr_stop_over_release(mr_handle *handle) {
  mr_stop_over *over = &handle->over;
  mr_device *device = over->device;
  if (!device) return;
  if (over->mark) (void)device->finish_sync(device);
  device->release_mark(device, over->mark);
  device->release_host(device, over->sent);
  device->release_host(device, over->got);
  *over = (mr_stop_over){0};
}
