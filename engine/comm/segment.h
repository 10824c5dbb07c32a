/* Memory shared by the members of a group on one host. It has no name, so that nothing stays
 * behind however they end, and takes no room in /dev/shm. */
#ifndef MR_COMM_SEGMENT_H
#define MR_COMM_SEGMENT_H

#include "comm/transport.h"

typedef struct mr_segment {
  void *memory; /* zeroed at first, aligned to a page, and to a huge page where it has one */
  int64_t bytes;
  int problem; /* errno of a member that could not, where memory is NULL */
} mr_segment;

/* A part of a segment that is a multiple of it has pages of its own. */
int64_t mr_segment_round(int64_t bytes);

/* Makes and attaches `bytes`. Collective over the group, whose members are on one host; each
 * takes an equal share of the pages from the system, near itself.
 * Where any member cannot, all get memory = NULL and MR_OK. */
mr_status mr_segment_open(mr_group *group, int64_t bytes, mr_segment *segment);
void mr_segment_close(mr_segment *segment);

#endif
