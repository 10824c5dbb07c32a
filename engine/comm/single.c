/* The transport of one process: every operation is a copy or nothing. */
#include <string.h>

#include "base/memory.h"
#include "comm/transport.h"

static mr_status start(mr_handle *handle) {
  const mr_record *record = &handle->record;
  int64_t bytes = record->count * mr_dtype_size((mr_dtype)record->dtype);
  if (handle->result != handle->data) memcpy(handle->result, handle->data, (size_t)bytes);
  return MR_OK;
}

static mr_status test(mr_handle *handle, int *done) {
  (void)handle;
  *done = 1;
  return MR_OK;
}

static mr_status split(mr_group *parent, int color, int key, mr_group *child) {
  (void)parent;
  (void)key;
  if (color < 0) return MR_OK;
  void *block = NULL;
  MR_TRY(mr_memory_allocate((int64_t)sizeof(int), &block));
  child->members = block;
  child->size = 1;
  return MR_OK;
}

static mr_status spread(mr_group *group, void *data, int bytes) {
  (void)group;
  (void)data;
  (void)bytes;
  return MR_OK;
}

static mr_status lowest(mr_group *group, int *flag) {
  (void)group;
  (void)flag;
  return MR_OK;
}

static mr_status close_world(mr_world *world) {
  (void)world;
  return MR_OK;
}

const mr_transport mr_transport_single = {
    .name = "one process",
    .start = start,
    .test = test,
    .split = split,
    .spread = spread,
    .lowest = lowest,
    .close = close_world,
};
