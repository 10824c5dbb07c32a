/* The entries lie in one shared segment. A rank that waits long tells for whom, with a number for
 * the wait and a beat that grows each time it has looked again. A circle of waits is real when
 * every wait in it is the same as when it was first seen and every rank has looked twice since:
 * a rank in a wait posts nothing, so nobody in the circle can be released by another. */
#define _GNU_SOURCE 1
#include "comm/presence.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "comm/segment.h"

enum { MESSAGE_BYTES = 1024, BEATS = 2 };
enum { STATE_ABSENT, STATE_WORKING, STATE_CLOSING, STATE_CLOSED, STATE_LEFT };

typedef struct entry {
  _Alignas(64) _Atomic int state;
  _Atomic int pid;
  _Atomic int exit_code;
  _Atomic int waits_for; /* rank + 1, or 0 */
  _Atomic unsigned wait, beat;
  char message[MESSAGE_BYTES];
  char text[MR_RECORD_TEXT]; /* what it waits in; belongs to `wait` */
} entry;

typedef struct page {
  _Alignas(64) _Atomic int first_left; /* rank + 1, or 0 */
  entry entries[];
} page;

/* A link of a circle as it was first seen. */
typedef struct sighting {
  int rank;
  unsigned wait, beat;
} sighting;

struct mr_presence {
  mr_segment segment;
  page *page;
  int rank, size;
  int pids_are_visible; /* all ranks are in one process-id namespace */
  sighting *circle;     /* [size] */
  int circle_length;
};

static int is_alive(int pid) { return kill(pid, 0) == 0 || errno != ESRCH; }

static void enter(mr_presence *presence) {
  entry *mine = &presence->page->entries[presence->rank];
  atomic_store(&mine->pid, (int)getpid());
  atomic_store(&mine->state, STATE_WORKING);
}

mr_status mr_presence_open(mr_group *world, mr_presence **presence) {
  *presence = NULL;
  void *block = NULL;
  int64_t bytes = (int64_t)sizeof(page) + world->size * (int64_t)sizeof(entry);
  MR_TRY(mr_memory_allocate((int64_t)sizeof(mr_presence), &block));
  mr_presence *made = block;
  mr_status status = mr_memory_allocate_array(world->size, (int64_t)sizeof(sighting), &block);
  if (status == MR_OK) {
    made->circle = block;
    status = mr_segment_open(world, bytes, &made->segment);
  }
  if (status != MR_OK || !made->segment.memory) {
    mr_presence_release(made);
    return status;
  }
  made->page = made->segment.memory;
  made->rank = world->rank;
  made->size = world->size;
  enter(made);
  int flag = 1;
  MR_GOTO(world->world->transport->lowest(world, &flag)); /* all have entered */
  for (int r = 0; r < made->size; r++) flag &= is_alive(atomic_load(&made->page->entries[r].pid));
  MR_GOTO(world->world->transport->lowest(world, &flag));
  made->pids_are_visible = flag;
  *presence = made;
  return MR_OK;
cleanup:
  mr_presence_release(made);
  return status;
}

void mr_presence_release(mr_presence *presence) {
  if (!presence) return;
  mr_segment_close(&presence->segment);
  mr_memory_release(presence->circle);
  mr_memory_release(presence);
}

void mr_presence_set_closing(mr_presence *presence) {
  atomic_store(&presence->page->entries[presence->rank].state, STATE_CLOSING);
}

void mr_presence_set_closed(mr_presence *presence) {
  atomic_store(&presence->page->entries[presence->rank].state, STATE_CLOSED);
}

static int somebody_works(const mr_presence *presence) {
  for (int r = 0; r < presence->size; r++) {
    const entry *other = &presence->page->entries[r];
    int state = atomic_load(&other->state);
    if (state != STATE_WORKING && state != STATE_CLOSING) continue;
    if (!presence->pids_are_visible || is_alive(atomic_load(&other->pid))) return 1;
  }
  return 0;
}

void mr_presence_leave(mr_presence *presence, int exit_code, const char *message, double seconds) {
  entry *mine = &presence->page->entries[presence->rank];
  (void)snprintf(mine->message, sizeof mine->message, "%s", message);
  atomic_store(&mine->exit_code, exit_code);
  atomic_store(&mine->state, STATE_LEFT);
  int none = 0;
  (void)atomic_compare_exchange_strong(&presence->page->first_left, &none, presence->rank + 1);
  double until = mr_clock_seconds() + seconds;
  while (somebody_works(presence) && mr_clock_seconds() < until) {
    struct timespec nap = {0, 1000000};
    (void)nanosleep(&nap, NULL);
  }
}

mr_status mr_presence_check(const mr_presence *presence) {
  int first = atomic_load_explicit(&presence->page->first_left, memory_order_acquire) - 1;
  if (first < 0 || first == presence->rank) return MR_OK;
  return mr_fail(MR_ERROR_PEER, "rank %d stopped: %s", first,
                 presence->page->entries[first].message);
}

int mr_presence_exit_code(const mr_presence *presence) {
  int first = atomic_load(&presence->page->first_left) - 1;
  return first < 0 ? -1 : atomic_load(&presence->page->entries[first].exit_code);
}

int mr_presence_left_alike(const mr_presence *presence) {
  const entry *mine = &presence->page->entries[presence->rank];
  for (int r = 0; r < presence->size; r++) {
    const entry *other = &presence->page->entries[r];
    if (atomic_load(&other->state) != STATE_LEFT) return 0;
    if (atomic_load(&other->exit_code) != atomic_load(&mine->exit_code)) return 0;
    if (strcmp(other->message, mine->message) != 0) return 0;
  }
  return 1;
}

/* ---- long waits ---- */

static mr_status find_lost(const mr_presence *presence) {
  if (!presence->pids_are_visible) return MR_OK;
  for (int r = 0; r < presence->size; r++) {
    const entry *other = &presence->page->entries[r];
    int pid = atomic_load(&other->pid);
    int state = atomic_load(&other->state);
    if (is_alive(pid) || state == STATE_CLOSED || state == STATE_LEFT) continue;
    return mr_fail(MR_ERROR_RANKS, "rank %d is lost: process %d has ended without a word", r, pid);
  }
  return MR_OK;
}

/* Follows who waits for whom from this rank on; the number of ranks in the circle that comes back
 * to it, or 0. */
static int follow(const mr_presence *presence, sighting *seen) {
  int rank = presence->rank;
  for (int n = 0; n < presence->size; n++) {
    const entry *at = &presence->page->entries[rank];
    seen[n].rank = rank;
    seen[n].wait = atomic_load(&at->wait);
    seen[n].beat = atomic_load(&at->beat);
    rank = atomic_load(&at->waits_for) - 1;
    if (rank < 0) return 0;
    if (rank == presence->rank) return n + 1;
  }
  return 0;
}

/* 1 when the circle is the one seen before and every rank in it has looked BEATS times since. */
static int is_confirmed(const mr_presence *presence, const sighting *now, int length) {
  if (length != presence->circle_length) return 0;
  for (int n = 0; n < length; n++) {
    const sighting *before = &presence->circle[n];
    if (now[n].rank != before->rank || now[n].wait != before->wait) return 0;
    if (now[n].beat - before->beat < BEATS) return 0;
  }
  return 1;
}

/* 1 when a link of the circle is another wait than before. */
static int has_changed(const mr_presence *presence, const sighting *now, int length) {
  if (length != presence->circle_length) return 1;
  for (int n = 0; n < length; n++) {
    if (now[n].rank != presence->circle[n].rank || now[n].wait != presence->circle[n].wait)
      return 1;
  }
  return 0;
}

static mr_status fail_circle(const mr_presence *presence, const sighting *circle, int length) {
  char report[MR_REPORT_TEXT];
  size_t used = 0;
  report[0] = '\0';
  for (int n = 0; n < length && used < sizeof report; n++) {
    int written = snprintf(report + used, sizeof report - used, "%s rank %d %s", n ? ";" : "",
                           circle[n].rank, presence->page->entries[circle[n].rank].text);
    used += written > 0 ? (size_t)written : 0;
  }
  return mr_fail(MR_ERROR_RANKS, "ranks wait for each other:%s", report);
}

static mr_status find_circle(mr_presence *presence) {
  enum { LONGEST = 64 };
  sighting now[LONGEST];
  if (presence->size > LONGEST) return MR_OK;
  int length = follow(presence, now);
  if (length > 0 && is_confirmed(presence, now, length)) return fail_circle(presence, now, length);
  if (length == 0 || has_changed(presence, now, length)) {
    memcpy(presence->circle, now, (size_t)length * sizeof(sighting));
    presence->circle_length = length;
  }
  return MR_OK;
}

mr_status mr_presence_wait(mr_presence *presence, const char *text, int missing) {
  entry *mine = &presence->page->entries[presence->rank];
  (void)snprintf(mine->text, sizeof mine->text, "%s", text);
  atomic_store(&mine->waits_for, missing + 1);
  atomic_fetch_add(&mine->beat, 1);
  MR_TRY(find_lost(presence));
  if (missing < 0) return MR_OK;
  int state = atomic_load(&presence->page->entries[missing].state);
  if (state == STATE_CLOSING || state == STATE_CLOSED) {
    return mr_fail(MR_ERROR_RANKS, "rank %d has finished while rank %d waits for %s", missing,
                   presence->rank, text);
  }
  return find_circle(presence);
}

void mr_presence_resume(mr_presence *presence) {
  entry *mine = &presence->page->entries[presence->rank];
  atomic_store(&mine->waits_for, 0);
  atomic_fetch_add(&mine->wait, 1);
  presence->circle_length = 0;
}
