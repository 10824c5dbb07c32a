/* A record: what a rank says about an operation that it posts. Records of one place in the order
 * are compared by every member; the line takes no part in it. */
#ifndef MR_COMM_RECORD_H
#define MR_COMM_RECORD_H

#include "comm/comm.h"

/* Plain data of a fixed size: it lies in shared memory and travels as bytes. */
typedef struct mr_record {
  int64_t count;
  int32_t kind;      /* mr_collective */
  int32_t dtype;     /* mr_dtype, or -1 */
  int32_t reduction; /* mr_reduction, or -1 */
  int32_t peer;      /* root of a broadcast, other end of a message (group rank), or -1 */
  int32_t tag;
  int32_t window; /* of the group that the data lie in, from 1, or 0; no part of the comparison */
  int32_t direct; /* 1: they lie on a GPU that NCCL serves; no part of the comparison */
  int64_t place;  /* their first byte in this member's part of the window */
  char line[MR_LINE_BYTES];
} mr_record;

/* 1 for the two ends of a message, 0 for a collective. */
static inline int mr_record_is_message(const mr_record *record) {
  return record->kind == MR_SEND || record->kind == MR_RECEIVE;
}

enum { MR_RECORD_TEXT = 256, MR_REPORT_TEXT = 1536 };

/* "all_reduce sum f32 x 282628 at recipes/minimum.lua:31" into text; returns text. */
const char *mr_record_text(const mr_group *group, const mr_record *record,
                           char text[MR_RECORD_TEXT]);

/* 1 when two members' records of a collective say the same. */
int mr_record_agrees(const mr_record *a, const mr_record *b);

/* What a member's record says of the way of an operation's data: they are reduced in a window only
 * where all members' lie at the same place of it, and moved by NCCL only where all lie on GPUs. */
void mr_record_settle(mr_handle *handle, const mr_record *theirs);

/* 1 when a send and a receive say the same. */
int mr_record_meets(const mr_record *a, const mr_record *b);

/* Fails with MR_ERROR_RANKS and all distinct records of collective `sequence` (0-based), each
 * with its ranks. records[size]; arrived[member] is 0 where none came. */
mr_status mr_record_fail(const mr_group *group, int64_t sequence, const mr_record *records,
                         const char *arrived);

/* Fails with MR_ERROR_RANKS for message `sequence` (0-based) of a pair: `mine` is this rank's
 * record, `theirs` its peer's. */
mr_status mr_record_fail_pair(const mr_group *group, int64_t sequence, const mr_record *mine,
                              const mr_record *theirs);

#endif
