/* The shared board. Each member has a ring of slots for its collectives, and each ordered pair of
 * members two short rings for messages: one that the sender writes, one that the receiver writes.
 *
 * Invariants: a slot holds record s when its `sequence` is s + 1, which is written last. A slot
 * is written again only after every reader has compared what it held: readers publish how many
 * they have compared. */
#include "comm/board.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "comm/segment.h"

enum { RING = 64, PAIR_RING = 8 };

/* How long a disagreement waits for the records of all members before it is reported. */
static const double DISPUTE_SECONDS = 2.0;

typedef struct slot {
  _Alignas(64) _Atomic int64_t sequence; /* + 1 */
  mr_record record;
} slot;

typedef struct member_area {
  _Alignas(64) _Atomic int64_t compared; /* collectives that this member has compared */
  slot slots[RING];
} member_area;

typedef struct pair_area {
  _Alignas(64) _Atomic int64_t compared; /* records that the reader of this ring has compared */
  slot slots[PAIR_RING];
} pair_area;

typedef struct shared_board {
  mr_board base;
  mr_segment segment;
  member_area *members; /* [size] */
  pair_area *pairs;     /* [2][size][size]: sends, receives; from, to */
  int rank, size;
} shared_board;

static void publish(slot *at, int64_t sequence, const mr_record *record) {
  at->record = *record;
  atomic_store_explicit(&at->sequence, sequence + 1, memory_order_release);
}

static int holds(slot *at, int64_t sequence) {
  return atomic_load_explicit(&at->sequence, memory_order_acquire) == sequence + 1;
}

/* The ring of sends (kind MR_SEND) or receives of messages between this rank and `peer`. */
static pair_area *pair_of(const shared_board *board, int kind, int sending, int peer) {
  int from = sending ? board->rank : peer, to = sending ? peer : board->rank;
  int64_t index = ((int64_t)(kind != MR_SEND) * board->size + from) * board->size + to;
  return &board->pairs[index];
}

static mr_status announce(mr_board *base, mr_handle *handle, int *done) {
  shared_board *board = (shared_board *)base;
  const mr_record *record = &handle->record;
  int64_t sequence = handle->sequence;
  *done = 0;
  if (mr_record_is_message(record)) {
    pair_area *pair = pair_of(board, record->kind, record->kind == MR_SEND, record->peer);
    if (sequence >= atomic_load(&pair->compared) + PAIR_RING) return MR_OK;
    publish(&pair->slots[sequence % PAIR_RING], sequence, record);
  } else {
    for (int m = 0; m < board->size; m++) {
      if (sequence >= atomic_load(&board->members[m].compared) + RING) return MR_OK;
    }
    publish(&board->members[board->rank].slots[sequence % RING], sequence, record);
  }
  *done = 1;
  return MR_OK;
}

/* Copies all records of one place that are there and fails with them. */
static mr_status fail_collective(const shared_board *board, const mr_handle *handle) {
  void *records = NULL, *arrived = NULL;
  mr_status status = mr_memory_allocate_array(board->size, (int64_t)sizeof(mr_record), &records);
  if (status == MR_OK) status = mr_memory_allocate(board->size, &arrived);
  if (status == MR_OK) {
    for (int m = 0; m < board->size; m++) {
      slot *at = &board->members[m].slots[handle->sequence % RING];
      ((char *)arrived)[m] = (char)holds(at, handle->sequence);
      if (((char *)arrived)[m]) ((mr_record *)records)[m] = at->record;
    }
    status = mr_record_fail(handle->group, handle->sequence, records, arrived);
  }
  mr_memory_release(arrived);
  mr_memory_release(records);
  return status;
}

/* A disagreement is reported when all records are there, or some have not come for long. */
static int is_due(mr_handle *handle) {
  if (handle->missing < 0) return 1;
  double now = mr_clock_seconds();
  if (handle->disputed <= 0) handle->disputed = now;
  return now - handle->disputed > DISPUTE_SECONDS;
}

static mr_status compare_collective(shared_board *board, mr_handle *handle, int *agreed) {
  int differ = 0;
  handle->missing = -1;
  for (int m = board->size - 1; m >= 0; m--) {
    slot *at = &board->members[m].slots[handle->sequence % RING];
    if (!holds(at, handle->sequence)) {
      handle->missing = m;
    } else if (!mr_record_agrees(&at->record, &handle->record)) {
      differ = 1;
    } else {
      mr_record_settle(handle, &at->record);
    }
  }
  mr_status status = MR_OK;
  if (differ && is_due(handle)) {
    status = fail_collective(board, handle);
  } else if (handle->missing >= 0) {
    return MR_OK;
  }
  *agreed = status == MR_OK;
  atomic_store(&board->members[board->rank].compared, handle->sequence + 1);
  return status;
}

static mr_status compare_message(shared_board *board, mr_handle *handle, int *agreed) {
  int sending = handle->record.kind == MR_SEND;
  int other = sending ? MR_RECEIVE : MR_SEND;
  pair_area *pair = pair_of(board, other, sending, handle->record.peer);
  slot *at = &pair->slots[handle->sequence % PAIR_RING];
  handle->missing = holds(at, handle->sequence) ? -1 : handle->record.peer;
  if (handle->missing >= 0) return MR_OK;
  mr_status status = MR_OK;
  if (mr_record_meets(&handle->record, &at->record)) {
    mr_record_settle(handle, &at->record);
    *agreed = 1;
  } else {
    status = mr_record_fail_pair(handle->group, handle->sequence, &handle->record, &at->record);
  }
  atomic_store(&pair->compared, handle->sequence + 1);
  return status;
}

static mr_status compare(mr_board *base, mr_handle *handle, int *agreed) {
  shared_board *board = (shared_board *)base;
  *agreed = 0;
  if (mr_record_is_message(&handle->record)) return compare_message(board, handle, agreed);
  return compare_collective(board, handle, agreed);
}

static void release(mr_board *base) {
  shared_board *board = (shared_board *)base;
  mr_segment_close(&board->segment);
  mr_memory_release(board);
}

mr_status mr_board_open_shared(mr_group *group, mr_board **board) {
  *board = NULL;
  void *block = NULL;
  int64_t size = group->size;
  int64_t members = size * (int64_t)sizeof(member_area);
  int64_t pairs = 2 * size * size * (int64_t)sizeof(pair_area);
  MR_TRY(mr_memory_allocate((int64_t)sizeof(shared_board), &block));
  shared_board *made = block;
  made->base = (mr_board){"shared", announce, compare, release};
  made->rank = group->rank;
  made->size = group->size;
  mr_status status = mr_segment_open(group, members + pairs, &made->segment);
  if (status != MR_OK || !made->segment.memory) {
    mr_memory_release(made);
    return status;
  }
  made->members = made->segment.memory;
  made->pairs = (pair_area *)(void *)((char *)made->segment.memory + members);
  *board = &made->base;
  return MR_OK;
}

/* ---- which form ---- */

int mr_board_wants_shared(const mr_group *group) {
  const char *form = getenv("MAREA_BOARD");
  if (form && strcmp(form, "control") == 0) return 0;
  return group->local_size == group->size;
}

mr_status mr_board_open(mr_group *group, mr_board **board) {
  int shared = mr_board_wants_shared(group);
  *board = NULL;
  MR_TRY(group->world->transport->lowest(group, &shared));
  if (shared) MR_TRY(mr_board_open_shared(group, board));
  if (*board) return MR_OK;
  const char *form = getenv("MAREA_BOARD");
  if (form && strcmp(form, "shared") == 0) {
    return mr_fail(MR_ERROR_ENVIRONMENT, "MAREA_BOARD=shared: the ranks of %s share no memory",
                   group->name);
  }
  return mr_board_open_control(group, board);
}

void mr_board_release(mr_board *board) {
  if (board) board->release(board);
}
