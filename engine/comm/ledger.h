/* What a group moved: calls and payload bytes of each kind of operation, counted when an
 * operation starts, that is after the ranks agreed on it. Readers take differences. */
#ifndef MR_COMM_LEDGER_H
#define MR_COMM_LEDGER_H

#include <stdint.h>

/* The operations of a group. The first eight are a caller's; the others are posted by
 * mr_group_split, mr_window_open and mr_comm_close, so that they are compared like the others. */
typedef enum mr_collective {
  MR_ALL_REDUCE,
  MR_BROADCAST,
  MR_ALL_GATHER,
  MR_REDUCE_SCATTER,
  MR_ALL_TO_ALL,
  MR_SEND,
  MR_RECEIVE,
  MR_BARRIER,
  MR_SPLIT,
  MR_WINDOW,
  MR_CLOSE,
  MR_COLLECTIVE_COUNT
} mr_collective;

/* Payload bytes are those of this rank's own contribution: count elements for all_reduce,
 * broadcast (on every rank), all_gather, send and receive; size x count for reduce_scatter and
 * all_to_all; 0 for the rest. */
typedef struct mr_ledger {
  int64_t calls[MR_COLLECTIVE_COUNT];
  int64_t bytes[MR_COLLECTIVE_COUNT];
} mr_ledger;

/* "all_reduce", "broadcast", ...; static. */
const char *mr_collective_name(mr_collective kind);

/* Adds one call. */
void mr_ledger_add(mr_ledger *ledger, mr_collective kind, int64_t bytes);

#endif
