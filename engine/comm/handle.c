/* The queue of operations: from the post over the comparison to the end of the transfer. */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "comm/board.h"
#include "comm/nccl.h"
#include "comm/pause.h"
#include "comm/transport.h"

/* How long operations may still end after a rank has left. */
static const double PARTING_SECONDS = 0.25;

static char *keep_message(void) {
  char *copy = NULL;
  const char *message = mr_status_message();
  return mr_memory_copy_string(message, &copy) == MR_OK ? copy : NULL;
}

static mr_status fail_again(mr_status status, const char *message) {
  return mr_fail(status, "%s", message ? message : "no memory to keep the cause of a failure");
}

static void drop(mr_handle *handle) {
  if (--handle->references > 0) return;
  mr_nccl_drop(handle);
  mr_stop_over_release(handle);
  mr_group_release(handle->group);
  mr_memory_release(handle->message);
  mr_memory_release(handle);
}

static void end(mr_handle *handle, mr_status status) {
  handle->stage = MR_DONE;
  handle->status = status;
  if (status != MR_OK) handle->message = keep_message();
  mr_nccl_drop(handle);
}

/* Takes ended operations out of the queue. */
static void sweep(mr_world *world) {
  mr_handle **at = &world->first;
  while (*at) {
    mr_handle *handle = *at;
    if (handle->stage == MR_DONE) {
      *at = handle->next;
      drop(handle);
    } else {
      at = &handle->next;
    }
  }
  world->last = at;
}

void mr_world_break(mr_world *world, mr_status status) {
  if (world->broken != MR_OK) return;
  world->broken = status;
  world->broken_message = keep_message();
  /* A transfer that is under way is given up with its request: the process is about to end. */
  for (mr_handle *h = world->first; h; h = h->next) {
    if (h->stage != MR_DONE) end(h, status);
  }
  mr_nccl_abort(world);
  sweep(world);
}

/* ---- one operation, one step ---- */

static int64_t payload(const mr_handle *handle) {
  const mr_record *record = &handle->record;
  if (record->dtype < 0) return 0;
  int64_t bytes = record->count * mr_dtype_size((mr_dtype)record->dtype);
  int whole = record->kind == MR_REDUCE_SCATTER || record->kind == MR_ALL_TO_ALL;
  return whole ? bytes * handle->group->size : bytes;
}

static void divide(const mr_handle *handle) {
  int64_t count = handle->record.count;
  if (handle->record.dtype == MR_F32) {
    float *x = handle->result, factor = 1.0f / (float)handle->group->size;
    for (int64_t i = 0; i < count; i++) x[i] *= factor;
  } else {
    double *x = handle->result, factor = 1.0 / (double)handle->group->size;
    for (int64_t i = 0; i < count; i++) x[i] *= factor;
  }
}

static int is_mean(const mr_handle *handle) {
  return handle->record.reduction == MR_MEAN && handle->group->size > 1;
}

/* A message of a rank to itself: the receive looks for its send and copies. */
static mr_status meet_self(mr_handle *receive) {
  for (mr_handle *send = receive->group->world->first; send; send = send->next) {
    if (send->record.kind != MR_SEND || send->group != receive->group ||
        send->record.peer != receive->record.peer || send->sequence != receive->sequence)
      continue;
    mr_status status = MR_OK;
    int64_t bytes = payload(receive);
    int ready = 0;
    MR_TRY(mr_stop_over_ready(send, &ready));
    if (!ready) break;
    if (!mr_record_meets(&send->record, &receive->record)) {
      status =
          mr_record_fail_pair(receive->group, receive->sequence, &receive->record, &send->record);
    } else {
      if (bytes > 0) memcpy(receive->result, send->data, (size_t)bytes);
      MR_TRY(mr_stop_over_end(receive));
      mr_ledger_add(&receive->group->ledger, MR_SEND, bytes);
      mr_ledger_add(&receive->group->ledger, MR_RECEIVE, bytes);
    }
    end(send, status);
    end(receive, status);
    break;
  }
  return MR_OK;
}

static int is_to_self(const mr_handle *handle) {
  return mr_record_is_message(&handle->record) && handle->record.peer == handle->group->rank;
}

static mr_status announce(mr_handle *handle) {
  if (handle->sequence != handle->lane->announced) return MR_OK;
  mr_board *board = handle->group->board;
  int done = 1;
  if (board) MR_TRY(board->announce(board, handle, &done));
  if (!done) return MR_OK;
  handle->lane->announced++;
  handle->stage = MR_ANNOUNCED;
  return MR_OK;
}

/* Data on a GPU that NCCL cannot move to all members go by way of the host like any other's. */
static mr_status leave_nccl(mr_handle *handle) {
  if (!handle->move || handle->direct) return MR_OK;
  mr_nccl_drop(handle);
  return mr_stop_over_begin(handle, mr_nccl_device(handle->group->world));
}

static mr_status compare(mr_handle *handle) {
  mr_board *board = handle->group->board;
  int agreed = 1;
  if (board) {
    mr_status status = board->compare(board, handle, &agreed);
    if (status == MR_ERROR_RANKS) {
      handle->lane->started++;
      end(handle, status);
      return MR_OK;
    }
    if (status != MR_OK) return status;
  }
  if (!agreed) return MR_OK;
  handle->agreed = 1;
  handle->missing = -1;
  return leave_nccl(handle);
}

static mr_status start(mr_handle *handle) {
  if (handle->sequence != handle->lane->started) return MR_OK;
  mr_group *group = handle->group;
  int ready = 0;
  if (!handle->agreed) MR_TRY(compare(handle));
  if (!handle->agreed) return MR_OK;
  MR_TRY(mr_stop_over_ready(handle, &ready));
  if (!ready) return MR_OK;
  handle->lane->started++;
  mr_ledger_add(&group->ledger, (mr_collective)handle->record.kind, payload(handle));
  if (handle->record.dtype < 0 || handle->record.count == 0 || handle->over.moved) {
    end(handle, MR_OK);
    return MR_OK;
  }
  handle->stage = MR_STARTED;
  if (handle->move) return mr_nccl_start(handle);
  if (!handle->window) return group->world->transport->start(handle);
  mr_window_start(handle);
  return MR_OK;
}

static mr_status move_data(mr_handle *handle) {
  int done = 0;
  if (handle->move) {
    MR_TRY(mr_nccl_test(handle, &done));
    if (done) end(handle, MR_OK);
    return MR_OK;
  }
  if (handle->window) {
    MR_TRY(mr_window_test(handle, &done));
  } else {
    MR_TRY(handle->group->world->transport->test(handle, &done));
  }
  if (!done) return MR_OK;
  if (!handle->window && is_mean(handle)) divide(handle);
  MR_TRY(mr_stop_over_end(handle));
  end(handle, MR_OK);
  return MR_OK;
}

/* An error from here leaves no operation of the world able to go on. */
static mr_status advance(mr_handle *handle) {
  if (is_to_self(handle)) return handle->record.kind == MR_RECEIVE ? meet_self(handle) : MR_OK;
  if (handle->stage == MR_QUEUED) MR_TRY(announce(handle));
  if (handle->stage == MR_ANNOUNCED) MR_TRY(start(handle));
  if (handle->stage == MR_STARTED) MR_TRY(move_data(handle));
  return MR_OK;
}

/* ---- all operations ---- */

static int has_started(const mr_world *world) {
  for (const mr_handle *h = world->first; h; h = h->next) {
    if (h->stage == MR_STARTED) return 1;
  }
  return 0;
}

/* A rank that left may have ended an operation first that has only begun here: it still ends, and
 * ranks that all fail behind it see that they failed alike. So once a rank was seen to have left,
 * there is one more look for records, and PARTING_SECONDS for what has started. */
static mr_status check_peers(mr_world *world) {
  if (!world->presence) return MR_OK;
  mr_status status = mr_presence_check(world->presence);
  int busy = mr_nccl_is_busy(world);
  if (status == MR_OK || (!world->first && !busy)) return status;
  double now = mr_clock_seconds();
  if (world->parting == 0) {
    world->parting = now + PARTING_SECONDS;
    return MR_OK;
  }
  return (busy || has_started(world)) && now < world->parting ? MR_OK : status;
}

static mr_status progress(mr_world *world) {
  mr_status status = world->broken;
  if (status != MR_OK) return fail_again(status, world->broken_message);
  world->moving++;
  for (mr_handle *h = world->first; h && status == MR_OK; h = h->next) {
    if (h->stage != MR_DONE) status = advance(h);
  }
  sweep(world);
  if (status == MR_OK) status = mr_nccl_watch(world);
  if (status == MR_OK) status = check_peers(world);
  if (status != MR_OK) mr_world_break(world, status);
  world->moving--;
  return status;
}

/* Operations go on meanwhile: what the GPU waits for may be another rank's, whose GPU waits for an
 * operation that this rank has still to start. */
mr_status mr_world_look(void *owner) {
  mr_world *world = owner;
  if (world->moving || (!world->first && !mr_nccl_is_busy(world))) return MR_OK;
  MR_TRY(progress(world));
  if (!world->presence) return MR_OK;
  mr_status status = mr_presence_wait(world->presence, "waits for its GPU", -1);
  mr_presence_resume(world->presence);
  if (status != MR_OK) mr_world_break(world, status);
  return status;
}

mr_status mr_group_progress(mr_group *group) {
  mr_world *world = group->world;
  if (!world->first && world->broken == MR_OK && !mr_nccl_is_busy(world)) return MR_OK;
  return progress(world);
}

static mr_lane *lane_of(mr_group *group, const mr_record *record) {
  if (record->kind == MR_SEND) return &group->sends[record->peer];
  if (record->kind == MR_RECEIVE) return &group->receives[record->peer];
  return &group->collectives;
}

static mr_status new_handle(mr_group *group, const mr_record *record, mr_device *device,
                            const void *data, void *result, mr_handle **handle) {
  void *block = NULL;
  *handle = NULL;
  MR_TRY(mr_memory_allocate((int64_t)sizeof(mr_handle), &block));
  mr_handle *made = block;
  made->references = 1;
  made->group = mr_group_retain(group);
  made->record = *record;
  made->data = data;
  made->result = result;
  made->missing = -1;
  mr_status status = mr_nccl_place(made, device);
  if (status == MR_OK && !made->move) status = mr_stop_over_begin(made, device);
  if (status != MR_OK) {
    drop(made);
    return status;
  }
  *handle = made;
  return MR_OK;
}

mr_status mr_handle_post(mr_group *group, const mr_record *record, mr_device *device,
                         const void *data, void *result, mr_handle **handle) {
  mr_world *world = group->world;
  mr_handle *made = NULL;
  *handle = NULL;
  if (world->broken != MR_OK) return fail_again(world->broken, world->broken_message);
  MR_TRY(new_handle(group, record, device, data, result, &made));
  made->references++; /* the queue's */
  made->lane = lane_of(group, record);
  made->sequence = made->lane->posted++;
  if (!made->over.device && !made->move) mr_window_place(made);
  *world->last = made;
  world->last = &made->next;
  mr_status status = progress(world);
  if (status != MR_OK) {
    drop(made);
    return status;
  }
  *handle = made;
  return MR_OK;
}

/* ---- waiting ---- */

/* 1 while an operation waits for room on its board: this rank may then announce it without
 * posting anything, so it must not count as standing still. */
static int has_unannounced(const mr_world *world) {
  for (const mr_handle *h = world->first; h; h = h->next) {
    if (h->stage == MR_QUEUED && !is_to_self(h)) return 1;
  }
  return 0;
}

/* The operation that holds `handle` up: itself, or the first of its lane. */
static const mr_handle *first_of_lane(const mr_handle *handle) {
  const mr_handle *h = handle->group->world->first;
  while (h && h->lane != handle->lane) h = h->next;
  return h ? h : handle;
}

/* The rank whose record `handle` waits for, or -1. */
static int missing_rank(const mr_handle *handle) {
  const mr_handle *held = first_of_lane(handle);
  if (held->stage != MR_ANNOUNCED || held->missing < 0) return -1;
  return has_unannounced(handle->group->world) ? -1 : handle->group->members[held->missing];
}

/* Whether a wait for `missing` can end, as far as can be seen now. */
static mr_status judge(const mr_handle *handle, int missing) {
  mr_world *world = handle->group->world;
  char text[MR_RECORD_TEXT];
  if (is_to_self(handle)) {
    return mr_fail(MR_ERROR_RANKS, "rank %d waits for itself: %s", world->group->rank,
                   mr_record_text(handle->group, &handle->record, text));
  }
  if (!world->presence) return MR_OK;
  mr_record_text(handle->group, &first_of_lane(handle)->record, text);
  return mr_presence_wait(world->presence, text, missing);
}

/* Looks, every now and then in a long wait, whether it can end at all. What another rank posted
 * before it closed may have come since this rank looked for its record; so a bad verdict holds
 * only if the record is still missing afterwards. */
static mr_status look_around(mr_handle *handle) {
  int missing = missing_rank(handle);
  if (judge(handle, missing) == MR_OK) return MR_OK;
  if (progress(handle->group->world) != MR_OK || handle->stage == MR_DONE) return MR_OK;
  return missing_rank(handle) == missing ? judge(handle, missing) : MR_OK;
}

static void wait_until_done(mr_handle *handle) {
  mr_world *world = handle->group->world;
  mr_pause pause = {world->crowded, 0, 0, 0};
  handle->wanted = 1;
  while (handle->stage != MR_DONE) {
    if (progress(world) != MR_OK || handle->stage == MR_DONE) break;
    if (!mr_pause_turn(&pause)) continue;
    mr_status status = look_around(handle);
    if (status != MR_OK) mr_world_break(world, status);
  }
  if (pause.looks > 0 && world->presence) mr_presence_resume(world->presence);
}

static double waited_seconds, summed_waiting;

double mr_comm_waited_seconds(void) { return waited_seconds; }

double mr_comm_summed_seconds(double *waiting) {
  *waiting = summed_waiting;
  return mr_window_seconds();
}

mr_status mr_handle_wait(mr_handle *handle) {
  if (handle->stage != MR_DONE) {
    double began = mr_clock_seconds(), summed = mr_window_seconds();
    wait_until_done(handle);
    waited_seconds += mr_clock_seconds() - began;
    summed_waiting += mr_window_seconds() - summed;
  }
  if (handle->status == MR_OK) return MR_OK;
  return fail_again(handle->status, handle->message);
}

int mr_handle_test(mr_handle *handle) {
  if (handle->stage != MR_DONE) (void)progress(handle->group->world);
  return handle->stage == MR_DONE;
}

void mr_handle_release(mr_handle *handle) {
  if (!handle) return;
  (void)mr_handle_wait(handle);
  drop(handle);
}
