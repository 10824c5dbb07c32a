/* Memory shared by the members of a group on one host. Its name is removed as soon as all have
 * attached, so that nothing stays behind however they end. */
#ifndef MR_COMM_SEGMENT_H
#define MR_COMM_SEGMENT_H

#include "comm/transport.h"

typedef struct mr_segment {
  void *memory; /* zeroed at first, aligned to a page */
  int64_t bytes;
} mr_segment;

/* Makes and attaches `bytes`. Collective over the group, whose members are on one host.
 * Where any member cannot, all get memory = NULL and MR_OK. */
mr_status mr_segment_open(mr_group *group, int64_t bytes, mr_segment *segment);
void mr_segment_close(mr_segment *segment);

#endif
