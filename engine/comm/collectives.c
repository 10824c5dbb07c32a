/* The arguments of each operation, made into a record. */
#include <stdio.h>

#include "comm/nccl.h"
#include "comm/transport.h"

static mr_record new_record(mr_collective kind, const char *line) {
  mr_record record = {.kind = (int32_t)kind, .dtype = -1, .reduction = -1, .peer = -1};
  (void)snprintf(record.line, sizeof record.line, "%s", line ? line : "");
  return record;
}

/* Fills in what is moved; `blocks` of count elements must fit into 64 bits of bytes. */
static mr_status set_data(mr_record *record, int64_t count, mr_dtype dtype, int blocks) {
  const char *name = mr_collective_name((mr_collective)record->kind);
  int64_t bytes = 0;
  if ((int)dtype < 0 || dtype >= MR_DTYPE_COUNT)
    return mr_fail(MR_ERROR_ARGUMENT, "%s: no dtype %d", name, (int)dtype);
  if (count < 0)
    return mr_fail(MR_ERROR_ARGUMENT, "%s: a count of %lld is negative", name, (long long)count);
  if (__builtin_mul_overflow(count, mr_dtype_size(dtype) * blocks, &bytes))
    return mr_fail(MR_ERROR_ARGUMENT, "%s: %lld elements of %s for each of %d ranks overflow", name,
                   (long long)count, mr_dtype_name(dtype), blocks);
  record->count = count;
  record->dtype = (int32_t)dtype;
  return MR_OK;
}

static mr_status set_reduction(mr_record *record, mr_reduction reduction) {
  const char *name = mr_collective_name((mr_collective)record->kind);
  if ((int)reduction < 0 || reduction >= MR_REDUCTION_COUNT)
    return mr_fail(MR_ERROR_ARGUMENT, "%s: no reduction %d", name, (int)reduction);
  if (record->dtype == MR_BF16)
    return mr_fail(MR_ERROR_ARGUMENT,
                   "%s: bf16 would be rounded at every rank: convert to f32, then reduce", name);
  if (reduction == MR_MEAN && !mr_dtype_is_real((mr_dtype)record->dtype))
    return mr_fail(MR_ERROR_ARGUMENT, "%s: a mean of %s has no exact value: sum it, then divide",
                   name, mr_dtype_name((mr_dtype)record->dtype));
  record->reduction = (int32_t)reduction;
  return MR_OK;
}

static mr_status set_peer(mr_record *record, const mr_group *group, int peer) {
  if (peer < 0 || peer >= group->size)
    return mr_fail(MR_ERROR_ARGUMENT, "%s: no rank %d among the %d of %s",
                   mr_collective_name((mr_collective)record->kind), peer, group->size, group->name);
  record->peer = peer;
  return MR_OK;
}

mr_status mr_group_all_reduce_async(mr_group *group, mr_device *device, void *data, int64_t count,
                                    mr_dtype dtype, mr_reduction reduction, const char *line,
                                    mr_handle **handle) {
  mr_record record = new_record(MR_ALL_REDUCE, line);
  *handle = NULL;
  MR_TRY(set_data(&record, count, dtype, 1));
  MR_TRY(set_reduction(&record, reduction));
  return mr_handle_post(group, &record, device, data, data, handle);
}

mr_status mr_group_broadcast_async(mr_group *group, mr_device *device, void *data, int64_t count,
                                   mr_dtype dtype, int root, const char *line, mr_handle **handle) {
  mr_record record = new_record(MR_BROADCAST, line);
  *handle = NULL;
  MR_TRY(set_data(&record, count, dtype, 1));
  MR_TRY(set_peer(&record, group, root));
  return mr_handle_post(group, &record, device, data, data, handle);
}

mr_status mr_group_all_gather_async(mr_group *group, mr_device *device, const void *data,
                                    void *result, int64_t count, mr_dtype dtype, const char *line,
                                    mr_handle **handle) {
  mr_record record = new_record(MR_ALL_GATHER, line);
  *handle = NULL;
  MR_TRY(set_data(&record, count, dtype, group->size));
  return mr_handle_post(group, &record, device, data, result, handle);
}

mr_status mr_group_reduce_scatter_async(mr_group *group, mr_device *device, const void *data,
                                        void *result, int64_t count, mr_dtype dtype,
                                        mr_reduction reduction, const char *line,
                                        mr_handle **handle) {
  mr_record record = new_record(MR_REDUCE_SCATTER, line);
  *handle = NULL;
  MR_TRY(set_data(&record, count, dtype, group->size));
  MR_TRY(set_reduction(&record, reduction));
  return mr_handle_post(group, &record, device, data, result, handle);
}

mr_status mr_group_all_to_all_async(mr_group *group, mr_device *device, const void *data,
                                    void *result, int64_t count, mr_dtype dtype, const char *line,
                                    mr_handle **handle) {
  mr_record record = new_record(MR_ALL_TO_ALL, line);
  *handle = NULL;
  MR_TRY(set_data(&record, count, dtype, group->size));
  return mr_handle_post(group, &record, device, data, result, handle);
}

mr_status mr_group_send_async(mr_group *group, mr_device *device, const void *data, int64_t count,
                              mr_dtype dtype, int to, int tag, const char *line,
                              mr_handle **handle) {
  mr_record record = new_record(MR_SEND, line);
  *handle = NULL;
  MR_TRY(set_data(&record, count, dtype, 1));
  MR_TRY(set_peer(&record, group, to));
  record.tag = tag;
  return mr_handle_post(group, &record, device, data, NULL, handle);
}

mr_status mr_group_receive_async(mr_group *group, mr_device *device, void *data, int64_t count,
                                 mr_dtype dtype, int from, int tag, const char *line,
                                 mr_handle **handle) {
  mr_record record = new_record(MR_RECEIVE, line);
  *handle = NULL;
  MR_TRY(set_data(&record, count, dtype, 1));
  MR_TRY(set_peer(&record, group, from));
  record.tag = tag;
  return mr_handle_post(group, &record, device, NULL, data, handle);
}

mr_status mr_group_barrier_async(mr_group *group, const char *line, mr_handle **handle) {
  mr_record record = new_record(MR_BARRIER, line);
  return mr_handle_post(group, &record, NULL, NULL, NULL, handle);
}

/* ---- splits ---- */

mr_status mr_group_agree(mr_group *group, mr_collective kind, int64_t count, const char *line) {
  mr_record record = new_record(kind, line);
  mr_handle *handle = NULL;
  record.count = count;
  MR_TRY(mr_handle_post(group, &record, NULL, NULL, NULL, &handle));
  mr_status status = mr_handle_wait(handle);
  mr_handle_release(handle);
  return status;
}

static mr_status make_child(mr_group *parent, int color, int key, mr_group *child) {
  const mr_transport *transport = parent->world->transport;
  MR_TRY(transport->split(parent, color, key, child));
  if (child->size == 0) return MR_OK;
  MR_TRY(mr_group_finish(child));
  return mr_nccl_join(child);
}

mr_status mr_group_split(mr_group *parent, int color, int key, const char *line, mr_group **group) {
  *group = NULL;
  if (color < -1) return mr_fail(MR_ERROR_ARGUMENT, "split: a colour of %d is below -1", color);
  MR_TRY(mr_group_agree(parent, MR_SPLIT, 0, line));
  char name[256];
  (void)snprintf(name, sizeof name, "group %d of %s", color, parent->name);
  mr_group *child = NULL;
  MR_TRY(mr_group_new(parent->world, name, &child));
  mr_status status = make_child(parent, color, key, child);
  if (status == MR_OK && child->size > 0) {
    *group = child;
  } else {
    mr_group_release(child);
  }
  return status;
}

mr_status mr_group_plain_all_reduce(mr_group *group, float *data, int64_t count) {
  const mr_transport *transport = group->world->transport;
  return transport->plain_sum ? transport->plain_sum(group, data, count) : MR_OK;
}
