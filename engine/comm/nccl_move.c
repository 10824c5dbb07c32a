/* Operations that NCCL carries out. */
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "comm/nccl_parts.h"

static mr_nccl_kind kind_of(const mr_record *record) {
  switch ((mr_collective)record->kind) {
    case MR_ALL_REDUCE:
      return MR_NCCL_ALL_REDUCE;
    case MR_BROADCAST:
      return MR_NCCL_BROADCAST;
    case MR_ALL_GATHER:
      return MR_NCCL_ALL_GATHER;
    case MR_REDUCE_SCATTER:
      return MR_NCCL_REDUCE_SCATTER;
    case MR_ALL_TO_ALL:
      return MR_NCCL_ALL_TO_ALL;
    case MR_SEND:
      return MR_NCCL_SEND;
    default:
      return MR_NCCL_RECEIVE;
  }
}

static mr_nccl_reduction reduction_of(const mr_record *record) {
  switch ((mr_reduction)record->reduction) {
    case MR_MEAN:
      return MR_NCCL_MEAN;
    case MR_MAX:
      return MR_NCCL_MAX;
    case MR_MIN:
      return MR_NCCL_MIN;
    default:
      return MR_NCCL_SUM;
  }
}

/* In the channel of a pair the sender is rank 0. */
static int peer_of(const mr_record *record) {
  if (!mr_record_is_message(record)) return record->peer < 0 ? 0 : record->peer;
  return record->kind == MR_SEND ? 1 : 0;
}

static mr_channel *channel_of(const mr_handle *handle) {
  mr_channels *channels = handle->group->channels;
  if (handle->record.kind == MR_SEND) return &channels->sends[handle->record.peer];
  if (handle->record.kind == MR_RECEIVE) return &channels->receives[handle->record.peer];
  return &channels->collectives;
}

static int can_move(const mr_handle *handle, const mr_device *device) {
  const mr_record *record = &handle->record;
  if (!device || !mr_group_carrier(handle->group, device)) return 0;
  if (record->dtype < 0 || record->count == 0) return 0;
  return !mr_record_is_message(record) || record->peer != handle->group->rank;
}

static mr_status take_scratch(const mr_handle *handle, mr_device *device) {
  mr_move *move = handle->move;
  if (!mr_nccl_needs_scratch(&move->call)) return MR_OK;
  int64_t bytes = move->call.count * mr_dtype_size(move->call.dtype) * handle->group->size;
  return device->allocate(device, bytes, 0, &move->scratch);
}

mr_status mr_nccl_place(mr_handle *handle, mr_device *device) {
  void *block = NULL;
  if (!can_move(handle, device)) return MR_OK;
  const mr_nccl *nccl = handle->group->world->nccl;
  mr_record *record = &handle->record;
  MR_TRY(mr_memory_allocate((int64_t)sizeof(mr_move), &block));
  mr_move *move = block;
  handle->move = move;
  move->channel = channel_of(handle);
  move->ticket = -1;
  move->call = (mr_nccl_call){kind_of(record),      (mr_dtype)record->dtype,
                              reduction_of(record), peer_of(record),
                              record->count,        handle->data,
                              handle->result,       NULL};
  MR_TRY(take_scratch(handle, device));
  move->call.scratch = move->scratch;
  int error = nccl->library->mark(&device->launch, &move->ready);
  if (error != 0) return mr_nccl_fail(nccl, error, "set a mark");
  record->direct = handle->direct = 1;
  return MR_OK;
}

void mr_move_release(mr_nccl *nccl, mr_move *move) {
  if (move->ready) nccl->library->release(move->ready);
  if (move->done) nccl->library->release(move->done);
  nccl->device->release(nccl->device, move->scratch);
  if (move->ticket >= 0) move->channel->under_way--;
  mr_memory_release(move);
}

void mr_nccl_drop(mr_handle *handle) {
  mr_move *move = handle->move;
  handle->move = NULL;
  if (move) mr_move_release(handle->group->world->nccl, move);
}

mr_status mr_nccl_start(mr_handle *handle) {
  mr_move *move = handle->move;
  (void)mr_record_text(handle->group, &handle->record, move->text);
  move->ticket = move->channel->tickets++;
  move->since = mr_clock_seconds();
  move->channel->under_way++;
  return MR_OK;
}

/* ---- one step ---- */

static mr_status fail_move(const mr_nccl *nccl, const mr_move *move, int error) {
  char what[MR_RECORD_TEXT + 16];
  (void)snprintf(what, sizeof what, "carry out %s", move->text);
  return mr_nccl_fail(nccl, error, what);
}

static mr_status put_in(mr_handle *handle) {
  const mr_nccl *nccl = handle->group->world->nccl;
  mr_move *move = handle->move;
  mr_channel *channel = move->channel;
  if (channel->turn != move->ticket) return MR_OK;
  if (channel->step != MR_CHANNEL_READY)
    MR_TRY(mr_channel_connect(handle->group, channel, handle->record.peer,
                              handle->record.kind == MR_SEND));
  if (channel->step != MR_CHANNEL_READY) return MR_OK;
  int error = nccl->library->start(channel->nccl, &move->call, move->ready);
  if (error != 0 && error != MR_NCCL_BUSY) return fail_move(nccl, move, error);
  move->step = MR_MOVE_START;
  return MR_OK;
}

static mr_status look_whether_in(const mr_nccl *nccl, mr_move *move) {
  mr_channel *channel = move->channel;
  int error = nccl->library->state(channel->nccl);
  if (error == MR_NCCL_BUSY) return MR_OK;
  if (error == 0) error = nccl->library->finish(channel->nccl, &move->call, &move->done);
  if (error != 0) return fail_move(nccl, move, error);
  channel->turn++;
  move->step = MR_MOVE_RUN;
  return MR_OK;
}

/* The device waits for the move in the place of the host, which keeps an eye on it. */
static mr_status leave_to_device(mr_handle *handle) {
  mr_nccl *nccl = handle->group->world->nccl;
  mr_move *move = handle->move;
  int error = nccl->library->follow(&nccl->device->launch, move->done);
  if (error != 0) return fail_move(nccl, move, error);
  nccl->device->release(nccl->device, move->scratch);
  move->scratch = NULL;
  handle->move = NULL;
  move->next = nccl->moves;
  nccl->moves = move;
  return MR_OK;
}

static mr_status look_whether_done(mr_handle *handle, int *done) {
  const mr_nccl *nccl = handle->group->world->nccl;
  int error = nccl->library->passed(handle->move->done);
  if (error != 0 && error != MR_NCCL_BUSY) return fail_move(nccl, handle->move, error);
  if (error == MR_NCCL_BUSY && !handle->wanted) return MR_OK;
  *done = 1;
  if (error == MR_NCCL_BUSY) return leave_to_device(handle);
  mr_nccl_drop(handle);
  return MR_OK;
}

mr_status mr_nccl_test(mr_handle *handle, int *done) {
  const mr_nccl *nccl = handle->group->world->nccl;
  mr_move *move = handle->move;
  *done = 0;
  if (move->step == MR_MOVE_WAIT) MR_TRY(put_in(handle));
  if (move->step == MR_MOVE_START) MR_TRY(look_whether_in(nccl, move));
  if (move->step == MR_MOVE_RUN) MR_TRY(look_whether_done(handle, done));
  if (*done || mr_clock_seconds() - move->since <= nccl->seconds) return MR_OK;
  return mr_fail(MR_ERROR_RANKS, "NCCL has not ended %s within %g seconds", move->text,
                 nccl->seconds);
}
