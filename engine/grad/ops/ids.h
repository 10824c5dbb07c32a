/* Checks of ids that come from a corpus. */
#ifndef MR_GRAD_OPS_IDS_H
#define MR_GRAD_OPS_IDS_H

#include "grad/op.h"

enum { MR_NO_EXCEPTION = 0 };

/* Every id of i32 argument i lies in 0 .. limit - 1, or equals `exception` when that is negative;
 * else MR_ERROR_CONTENT naming the row, the id and the range. */
mr_status mr_check_ids(mr_call *call, int i, int64_t limit, int32_t exception);

#endif
