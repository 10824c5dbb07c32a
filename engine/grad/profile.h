/* Where the time of recorded calls goes: per operation, forward and backward. With a profile each
 * call waits for the device; a tape without one, which is the usual one, asks for no clock. */
#ifndef MR_GRAD_PROFILE_H
#define MR_GRAD_PROFILE_H

#include <stdint.h>

#include "grad/op.h"

enum { MR_PROFILE_OPS = 64 };

typedef struct mr_profile_row {
  const mr_op *op;
  int64_t calls;            /* forwards */
  double forward, backward; /* seconds, with making outputs and gradients */
} mr_profile_row;

typedef struct mr_profile {
  int rows;
  mr_profile_row row[MR_PROFILE_OPS];
} mr_profile;

/* The row of an operation, made when it is new; NULL when the table is full. */
mr_profile_row *mr_profile_find(mr_profile *profile, const mr_op *op);

#endif
