#include "train/reducer.h"

#include <stddef.h>
#include <stdio.h>

#include "base/memory.h"

typedef enum gradient_state { CLEAR, LOCAL, REDUCED } gradient_state;

typedef struct bucket {
  int64_t first, past; /* elements */
  int64_t ranges;      /* parameters in it */
  int64_t arrived;     /* of them, in the backward that is running */
  mr_handle *handle;
} bucket;

struct mr_reducer {
  mr_unit *unit;
  mr_group *group;
  mr_reducer_settings settings;
  mr_watch watch;
  mr_tensor *anchor;
  bucket *bucket;
  int64_t buckets;
  int64_t *bucket_of; /* by range */
  int64_t sent;       /* buckets 0 .. sent - 1 are under way or done */
  gradient_state state;
  int64_t scope, scopes, depth; /* scope: 0 outside no_sync, else the number of the outermost */
  int window_open;
  int64_t expected, backwards; /* of the open window */
  char line[128];
};

/* --- buckets --- */

static mr_status allocate_tables(mr_reducer *r) {
  void *block = NULL;
  MR_TRY(mr_memory_allocate_array(r->unit->ranges, sizeof(bucket), &block));
  r->bucket = block;
  MR_TRY(mr_memory_allocate_array(r->unit->ranges, sizeof(int64_t), &block));
  r->bucket_of = block;
  return MR_OK;
}

static mr_status cut_buckets(mr_reducer *r) {
  const mr_unit *unit = r->unit;
  int64_t size = mr_dtype_size(unit->gradients->dtype), past = unit->count;
  MR_TRY(allocate_tables(r));
  for (int64_t i = unit->ranges - 1; i >= 0; i--) {
    bucket *open = &r->bucket[r->buckets];
    if (open->ranges == 0) open->past = past;
    open->first = unit->range[i].offset;
    open->ranges++;
    r->bucket_of[i] = r->buckets;
    past = open->first;
    if ((open->past - open->first) * size >= r->settings.bucket_bytes || i == 0) r->buckets++;
  }
  return MR_OK;
}

static mr_status send_bucket(mr_reducer *r, bucket *b) {
  mr_tensor *gradients = r->unit->gradients;
  char *data = mr_tensor_data(gradients);
  data += b->first * mr_dtype_size(gradients->dtype);
  return mr_group_all_reduce_async(r->group, r->unit->device, data, b->past - b->first,
                                   gradients->dtype, r->settings.mean ? MR_MEAN : MR_SUM, r->line,
                                   &b->handle);
}

static mr_status send_complete(mr_reducer *r, int all) {
  for (; r->sent < r->buckets; r->sent++) {
    bucket *next = &r->bucket[r->sent];
    if (!all && next->arrived < next->ranges) return MR_OK;
    MR_TRY(send_bucket(r, next));
  }
  return MR_OK;
}

static mr_status wait_all(mr_reducer *r) {
  mr_status status = MR_OK;
  for (int64_t i = 0; i < r->sent; i++) {
    bucket *b = &r->bucket[i];
    if (b->handle) MR_KEEP(status, mr_handle_wait(b->handle));
    mr_handle_release(b->handle);
    b->handle = NULL;
  }
  return status;
}

/* --- what the tape tells --- */

static int64_t stamp(void *owner) {
  const mr_reducer *r = owner;
  return r->scope;
}

static mr_status begin(void *owner, int64_t stamped) {
  const mr_reducer *r = owner;
  if (stamped != r->scope)
    return mr_fail(MR_ERROR_ARGUMENT,
                   "backward: the forward of this loss ran %s and its backward runs %s; put both "
                   "into the same no_sync scope, or both outside",
                   stamped ? "inside no_sync" : "outside no_sync",
                   r->scope ? (stamped ? "inside another" : "inside") : "outside");
  if (r->state == REDUCED)
    return mr_fail(MR_ERROR_ARGUMENT,
                   "backward: these gradients were already reduced over the ranks; keep all "
                   "microbatches of a window but the last inside no_sync, and call zero_grad "
                   "before the next window");
  return MR_OK;
}

static mr_status arrived(void *owner, mr_tensor *leaf) {
  mr_reducer *r = owner;
  if (r->scope || leaf == r->anchor) return MR_OK;
  for (int64_t i = r->unit->ranges - 1; i >= 0; i--) {
    if (r->unit->range[i].parameter != leaf) continue;
    r->bucket[r->bucket_of[i]].arrived++;
    break;
  }
  return r->settings.overlap ? send_complete(r, 0) : MR_OK;
}

static mr_status progress(void *owner) {
  mr_reducer *r = owner;
  return r->sent > 0 ? mr_group_progress(r->group) : MR_OK;
}

static mr_status finish(void *owner) {
  mr_reducer *r = owner;
  r->backwards++;
  r->state = LOCAL;
  mr_tensor_changed(r->unit->gradients);
  if (r->scope) return MR_OK;
  mr_status status = send_complete(r, 1);
  MR_KEEP(status, wait_all(r));
  r->sent = 0;
  for (int64_t i = 0; i < r->buckets; i++) r->bucket[i].arrived = 0;
  if (status == MR_OK) r->state = REDUCED;
  return status;
}

/* MR_OK when the gradients are reduced and no window is open. */
static mr_status check_step(void *owner) {
  const mr_reducer *r = owner;
  if (r->window_open)
    return mr_fail(MR_ERROR_ARGUMENT,
                   "a step between the microbatches of a window: it must wait for the window's "
                   "last backward");
  if (r->state == REDUCED) return MR_OK;
  return mr_fail(MR_ERROR_ARGUMENT, "%s",
                 r->state == CLEAR
                     ? "a step on gradients that no backward has written"
                     : "a step on gradients that were never reduced over the ranks: the last "
                       "backward of a window must run outside no_sync");
}

/* --- life --- */

static mr_status follow_unit(mr_reducer *r) {
  mr_unit *unit = r->unit;
  mr_shape none = {1, {0}};
  r->watch = (mr_watch){r, stamp, begin, arrived, progress, finish};
  MR_TRY(mr_tensor_new(unit->device, unit->gradients->dtype, &none, &r->anchor));
  r->anchor->requires_gradient = 1;
  r->anchor->watch = &r->watch;
  for (int64_t i = 0; i < unit->ranges; i++) unit->range[i].parameter->watch = &r->watch;
  unit->guard = (mr_step_guard){r, check_step};
  return MR_OK;
}

static void leave_unit(mr_reducer *r) {
  if (r->anchor) r->anchor->watch = NULL;
  for (int64_t i = 0; i < r->unit->ranges; i++)
    if (r->unit->range[i].parameter->watch == &r->watch) r->unit->range[i].parameter->watch = NULL;
  if (r->unit->guard.owner == r) r->unit->guard = (mr_step_guard){0};
}

mr_status mr_reducer_new(mr_unit *unit, mr_group *group, const mr_reducer_settings *settings,
                         mr_reducer **reducer) {
  void *block = NULL;
  *reducer = NULL;
  if (unit->guard.check)
    return mr_fail(MR_ERROR_ARGUMENT, "these parameters already belong to a replica");
  if (settings->bucket_bytes < 1)
    return mr_fail(MR_ERROR_ARGUMENT, "bucket_bytes must be at least 1, got %lld",
                   (long long)settings->bucket_bytes);
  MR_TRY(mr_memory_allocate(sizeof(mr_reducer), &block));
  mr_reducer *made = block;
  made->unit = mr_unit_retain(unit);
  made->group = mr_group_retain(group);
  made->settings = *settings;
  mr_status status = cut_buckets(made);
  if (status == MR_OK) status = follow_unit(made);
  if (status != MR_OK) {
    mr_reducer_release(made);
    return status;
  }
  *reducer = made;
  return MR_OK;
}

void mr_reducer_release(mr_reducer *r) {
  if (!r) return;
  (void)wait_all(r);
  leave_unit(r);
  mr_tensor_release(r->anchor);
  mr_memory_release(r->bucket);
  mr_memory_release(r->bucket_of);
  mr_group_release(r->group);
  mr_unit_release(r->unit);
  mr_memory_release(r);
}

mr_tensor *mr_reducer_anchor(mr_reducer *r) { return r->anchor; }

void mr_reducer_set_line(mr_reducer *r, const char *line) {
  (void)snprintf(r->line, sizeof r->line, "%s", line);
}

/* --- scopes and windows --- */

void mr_reducer_enter_no_sync(mr_reducer *r) {
  if (r->depth++ == 0) r->scope = ++r->scopes;
}

void mr_reducer_leave_no_sync(mr_reducer *r) {
  if (r->depth > 0 && --r->depth == 0) r->scope = 0;
}

mr_status mr_reducer_zero_gradients(mr_reducer *r) {
  MR_TRY(mr_unit_zero_gradients(r->unit));
  r->state = CLEAR;
  return MR_OK;
}

mr_status mr_reducer_begin_window(mr_reducer *r, int64_t microbatches) {
  if (r->window_open)
    return mr_fail(MR_ERROR_ARGUMENT, "a window is begun while the last one is still open");
  r->window_open = 1;
  r->expected = microbatches;
  r->backwards = 0;
  return MR_OK;
}

mr_status mr_reducer_end_window(mr_reducer *r) {
  r->window_open = 0;
  if (r->backwards != r->expected)
    return mr_fail(MR_ERROR_ARGUMENT,
                   "accumulate ran %lld backwards for the %lld microbatches of the window",
                   (long long)r->backwards, (long long)r->expected);
  return check_step(r);
}

int64_t mr_reducer_buckets(const mr_reducer *r) { return r->buckets; }

void mr_reducer_bucket(const mr_reducer *r, int64_t i, int64_t *first, int64_t *past) {
  *first = r->bucket[i].first;
  *past = r->bucket[i].past;
}
