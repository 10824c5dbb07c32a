/* A segment per host: a counter for each of its members, then their parts.
 *
 * Invariants: reductions of a window have tickets in the order in which they start, which is the
 * same on all members. A share is read and written by its owner alone, from the agreement of all
 * members (so all have written their parts) until the owner's counter passes the ticket. A
 * reduction is done when all counters of the host have passed it: so no member changes its part,
 * or reads a sum that is not there yet, while another is at work. */
#include "comm/window.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "comm/segment.h"

enum { LINE_BYTES = 64 };

typedef struct counter {
  _Alignas(LINE_BYTES) _Atomic int64_t finished; /* tickets below it */
} counter;

struct mr_window {
  mr_group *group;
  mr_device *device;
  mr_segment segment;
  int number;      /* in the group, from 1 */
  int64_t bytes;   /* of a part */
  int64_t tickets; /* given so far */
  counter *counters;
  char **parts;      /* [local_size] */
  const void **from; /* [local_size] and `to`: what the next kernel is given */
  void **to;
  mr_window *next; /* of the group */
};

static double summed_seconds;

double mr_window_seconds(void) { return summed_seconds; }

void *mr_window_part(const mr_window *window) { return window->parts[window->group->local_rank]; }

/* ---- reductions ---- */

mr_window *mr_window_find(const mr_group *group, const void *data, int64_t bytes) {
  for (mr_window *w = group->windows; w; w = w->next) {
    uintptr_t begin = (uintptr_t)mr_window_part(w), at = (uintptr_t)data;
    if (at >= begin && at - begin <= (uintptr_t)w->bytes &&
        bytes <= w->bytes - (int64_t)(at - begin))
      return w;
  }
  return NULL;
}

int mr_window_crosses_hosts(const mr_window *window) { return window->group->local != NULL; }

void mr_window_place(mr_handle *handle) {
  mr_record *record = &handle->record;
  if (!handle->group->windows || record->kind != MR_ALL_REDUCE || record->count == 0) return;
  if (record->reduction != MR_SUM && record->reduction != MR_MEAN) return;
  if (!mr_dtype_is_real((mr_dtype)record->dtype)) return;
  int64_t bytes = record->count * mr_dtype_size((mr_dtype)record->dtype);
  mr_window *window = mr_window_find(handle->group, handle->result, bytes);
  if (!window) return;
  handle->window = window;
  record->window = window->number;
  record->place = (const char *)handle->result - (const char *)mr_window_part(window);
}

/* The share of this member follows from the count and the number of those who sum alone. */
static void cut_share(mr_handle *handle) {
  const mr_group *group = handle->group;
  int64_t count = handle->record.count;
  int64_t in_line = LINE_BYTES / mr_dtype_size((mr_dtype)handle->record.dtype);
  int64_t lines = (count + in_line - 1) / in_line;
  mr_share *share = &handle->share;
  if (group->local_rank >= group->summing) return;
  int64_t past = lines * (group->local_rank + 1) / group->summing * in_line;
  share->first = lines * group->local_rank / group->summing * in_line;
  share->count = (past < count ? past : count) - share->first;
}

void mr_window_start(mr_handle *handle) {
  handle->share = (mr_share){.ticket = handle->window->tickets++, .step = MR_SHARE_SUM};
  cut_share(handle);
}

static char *share_in_part(const mr_handle *handle, int member) {
  int64_t size = mr_dtype_size((mr_dtype)handle->record.dtype);
  return handle->window->parts[member] + handle->record.place + handle->share.first * size;
}

/* The mean's factor, rounded as the division after a transport's sum has it. */
static double factor_of(const mr_handle *handle) {
  int size = handle->group->size;
  if (handle->record.reduction != MR_MEAN) return 1;
  return handle->record.dtype == MR_F32 ? (double)(1.0f / (float)size) : 1.0 / size;
}

/* Sums this member's share over members first .. past - 1 of the host, and stores the sum in the
 * parts of to_first .. to_past - 1. */
static mr_status sum(mr_handle *handle, double factor, int first, int past, int to_first,
                     int to_past) {
  const mr_window *window = handle->window;
  double began = mr_clock_seconds();
  for (int m = first; m < past; m++) window->from[m - first] = share_in_part(handle, m);
  for (int m = to_first; m < to_past; m++) window->to[m - to_first] = share_in_part(handle, m);
  mr_status status =
      MR_KERNEL(window->device, (mr_dtype)handle->record.dtype, sum_parts, handle->share.count,
                factor, past - first, window->from, to_past - to_first, window->to);
  summed_seconds += mr_clock_seconds() - began;
  return status;
}

/* Hands the sum of this host to the transport, to be summed with the other hosts'. */
static mr_status start_crossing(mr_handle *handle) {
  void *block = NULL;
  MR_TRY(mr_memory_allocate((int64_t)sizeof(mr_handle), &block));
  mr_handle *crossing = block;
  handle->share.crossing = crossing;
  crossing->group = handle->group->across;
  crossing->record = handle->record;
  crossing->record.count = handle->share.count;
  crossing->record.reduction = MR_SUM;
  crossing->result = share_in_part(handle, handle->group->local_rank);
  crossing->data = crossing->result;
  return handle->group->world->transport->start(crossing);
}

static mr_status sum_host(mr_handle *handle) {
  const mr_group *group = handle->group;
  mr_share *share = &handle->share;
  int own = group->local_rank, all = group->local_size;
  share->step = MR_SHARE_PUBLISH;
  if (share->count == 0) return MR_OK;
  if (!group->across) return sum(handle, factor_of(handle), 0, all, 0, all);
  MR_TRY(sum(handle, 1, 0, all, own, own + 1));
  share->step = MR_SHARE_CROSS;
  return start_crossing(handle);
}

static mr_status finish_crossing(mr_handle *handle) {
  const mr_group *group = handle->group;
  mr_share *share = &handle->share;
  int done = 0, own = group->local_rank;
  MR_TRY(group->world->transport->test(share->crossing, &done));
  if (!done) return MR_OK;
  mr_memory_release(share->crossing);
  share->crossing = NULL;
  share->step = MR_SHARE_PUBLISH;
  return sum(handle, factor_of(handle), own, own + 1, 0, group->local_size);
}

/* Counters grow by one, so what crosses between hosts may end in any order. */
static void publish(mr_handle *handle) {
  const mr_window *window = handle->window;
  counter *own = &window->counters[handle->group->local_rank];
  int64_t ticket = handle->share.ticket;
  if (atomic_load_explicit(&own->finished, memory_order_relaxed) != ticket) return;
  atomic_store_explicit(&own->finished, ticket + 1, memory_order_release);
  handle->share.step = MR_SHARE_WAIT;
}

static int all_finished(const mr_handle *handle) {
  const mr_window *window = handle->window;
  for (int m = 0; m < handle->group->local_size; m++) {
    if (atomic_load_explicit(&window->counters[m].finished, memory_order_acquire) <=
        handle->share.ticket)
      return 0;
  }
  return 1;
}

mr_status mr_window_test(mr_handle *handle, int *done) {
  mr_share *share = &handle->share;
  if (share->step == MR_SHARE_SUM) MR_TRY(sum_host(handle));
  if (share->step == MR_SHARE_CROSS) MR_TRY(finish_crossing(handle));
  if (share->step == MR_SHARE_PUBLISH) publish(handle);
  *done = share->step == MR_SHARE_WAIT && all_finished(handle);
  return MR_OK;
}

/* ---- the members of a host, and their like on the other hosts ---- */

static mr_status split_inside(mr_group *group, const char *name, int color, mr_group **child) {
  MR_TRY(mr_group_new(group->world, name, child));
  MR_TRY(group->world->transport->split(group, color, group->rank, *child));
  if ((*child)->size > 0) return MR_OK;
  mr_group_release(*child);
  *child = NULL;
  return MR_OK;
}

/* Those who sum are as many on each host as the one with the fewest members has. */
static mr_status find_hosts(mr_group *group) {
  const mr_transport *transport = group->world->transport;
  if (group->summing > 0) return MR_OK;
  int least = group->local_size, most = -group->local_size;
  MR_TRY(transport->lowest(group, &least));
  MR_TRY(transport->lowest(group, &most));
  group->most_local = -most;
  if (least < group->size) {
    int host = group->world->hosts[group->members[group->rank]];
    int color = group->local_rank < least ? group->local_rank : -1;
    MR_TRY(split_inside(group, "a host's ranks", host, &group->local));
    MR_TRY(split_inside(group, "a share's ranks", color, &group->across));
  }
  group->summing = least;
  return MR_OK;
}

/* ---- life ---- */

static mr_status allocate_tables(mr_window *window) {
  int64_t size = window->group->local_size;
  void *block = NULL;
  MR_TRY(mr_memory_allocate_array(size, (int64_t)sizeof(void *), &block));
  window->parts = block;
  MR_TRY(mr_memory_allocate_array(size, (int64_t)sizeof(void *), &block));
  window->from = block;
  MR_TRY(mr_memory_allocate_array(size, (int64_t)sizeof(void *), &block));
  window->to = block;
  return MR_OK;
}

static int64_t allowed_bytes(void) {
  const char *text = getenv("MAREA_WINDOW_BYTES");
  return text ? strtoll(text, NULL, 10) : INT64_MAX;
}

/* Opens the segment of this host, where all hosts can open theirs. */
static mr_status open_segments(mr_window *window, char why[MR_WINDOW_WHY]) {
  mr_group *group = window->group;
  int64_t stride = mr_segment_round(window->bytes), all = 0;
  int64_t counters = mr_segment_round((int64_t)sizeof(counter) * group->local_size);
  if (stride >= INT64_MAX / 2 / group->local_size) return mr_fail(MR_ERROR_MEMORY, "no memory");
  /* the counters come last, so that parts begin with a page of their size */
  all = stride * group->local_size + counters;
  int good = all <= allowed_bytes();
  MR_TRY(group->world->transport->lowest(group, &good));
  if (!good) {
    (void)snprintf(why, MR_WINDOW_WHY, "MAREA_WINDOW_BYTES=%lld", (long long)allowed_bytes());
    return MR_OK;
  }
  MR_TRY(mr_segment_open(group->local ? group->local : group, all, &window->segment));
  int problem = -window->segment.problem;
  MR_TRY(group->world->transport->lowest(group, &problem));
  if (problem != 0) {
    (void)snprintf(why, MR_WINDOW_WHY, "%s", strerror(-problem));
    mr_segment_close(&window->segment);
    return MR_OK;
  }
  char *memory = window->segment.memory;
  for (int m = 0; m < group->local_size; m++) window->parts[m] = memory + stride * m;
  window->counters = (counter *)(void *)(memory + stride * group->local_size);
  return MR_OK;
}

/* Takes the window off the group's list, where it stands if it was opened. */
static void unlink_window(mr_window *window) {
  mr_window **at = &window->group->windows;
  while (*at && *at != window) at = &(*at)->next;
  if (*at) *at = window->next;
}

void mr_window_close(mr_window *window) {
  if (!window) return;
  if (window->segment.memory) mr_memory_count(-window->bytes);
  unlink_window(window);
  mr_segment_close(&window->segment);
  mr_memory_release(window->parts);
  mr_memory_release(window->from);
  mr_memory_release(window->to);
  mr_group_release(window->group);
  mr_memory_release(window);
}

static mr_status open_window(mr_window *window, const char *line, char why[MR_WINDOW_WHY]) {
  mr_group *group = window->group;
  MR_TRY(allocate_tables(window));
  MR_TRY(mr_group_agree(group, MR_WINDOW, window->bytes, line));
  MR_TRY(find_hosts(group));
  if (group->most_local == 1) return MR_OK;
  MR_TRY(open_segments(window, why));
  if (!window->segment.memory) return MR_OK;
  mr_memory_count(window->bytes);
  window->number = ++group->windows_opened;
  window->next = group->windows;
  group->windows = window;
  return MR_OK;
}

mr_status mr_window_open(mr_group *group, mr_device *device, int64_t bytes, const char *line,
                         mr_window **window, char why[MR_WINDOW_WHY]) {
  void *block = NULL;
  *window = NULL;
  why[0] = '\0';
  MR_TRY(mr_memory_allocate((int64_t)sizeof(mr_window), &block));
  mr_window *made = block;
  made->group = mr_group_retain(group);
  made->device = device;
  made->bytes = bytes;
  mr_status status = open_window(made, line, why);
  if (status != MR_OK || !made->segment.memory) {
    mr_window_close(made);
    return status;
  }
  *window = made;
  return MR_OK;
}
