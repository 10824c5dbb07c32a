/* The reducer of a replica: sums or averages the gradients of a unit over the ranks of a group,
 * bucket by bucket, once per window, while backward goes on; and knows whether the gradients are
 * fit for a step.
 *
 * The unit is cut into buckets from its last range to its first (the order in which backward
 * finishes them); the cuts follow from the list of ranges alone, so every rank has the same and
 * the bits do not depend on when a bucket is sent. Bucket i is sent after bucket i - 1.
 *
 * States of the gradients: CLEAR (zeros), LOCAL (this rank's sums only), REDUCED (of all ranks).
 * Within a no_sync scope backward leads to LOCAL; outside, it ends in REDUCED. A scope is read at
 * the forward; a backward in another scope than its forward is refused. A backward on REDUCED
 * gradients is refused: a window is reduced once. */
#ifndef MR_TRAIN_REDUCER_H
#define MR_TRAIN_REDUCER_H

#include "base/status.h"
#include "comm/comm.h"
#include "grad/tape.h"
#include "train/unit.h"

typedef struct mr_reducer mr_reducer;

typedef struct mr_reducer_settings {
  int mean;             /* divide by the number of ranks; else the plain sum */
  int64_t bucket_bytes; /* a bucket is closed once it has as many */
  int overlap;          /* send while backward goes on; the bits are the same without */
} mr_reducer_settings;

/* Follows the parameters of `unit` from now on and guards its steps. Retains both. */
mr_status mr_reducer_new(mr_unit *unit, mr_group *group, const mr_reducer_settings *settings,
                         mr_reducer **reducer);
/* NULL does nothing. */
void mr_reducer_release(mr_reducer *reducer);

/* A leaf without elements that the reducer follows: tying a loss to it makes every backward of
 * the replica pass the reducer, also one whose loss uses no parameter. Borrowed. */
mr_tensor *mr_reducer_anchor(mr_reducer *reducer);

/* The recipe's line that collectives started by this reducer are reported with. */
void mr_reducer_set_line(mr_reducer *reducer, const char *line);

/* Enters a scope without reduction. Scopes may nest: what lies inside one belongs to the
 * outermost. Leaving more often than entering does nothing. */
void mr_reducer_enter_no_sync(mr_reducer *reducer);
void mr_reducer_leave_no_sync(mr_reducer *reducer);

mr_status mr_reducer_zero_gradients(mr_reducer *reducer);

/* Opens a window of `microbatches` backwards: steps are refused until it is closed. */
mr_status mr_reducer_begin_window(mr_reducer *reducer, int64_t microbatches);

/* Closes the window. MR_ERROR_ARGUMENT when the gradients were never reduced, or when another
 * number of backwards ran than the window has microbatches. */
mr_status mr_reducer_end_window(mr_reducer *reducer);

/* Number of buckets, and first and past-last element of bucket i. */
int64_t mr_reducer_buckets(const mr_reducer *reducer);
void mr_reducer_bucket(const mr_reducer *reducer, int64_t i, int64_t *first, int64_t *past);

#endif
