/* The list of all operations. */
#ifndef MR_GRAD_OPS_H
#define MR_GRAD_OPS_H

#include "grad/op.h"

/* NULL-terminated, in alphabetical order of names; static. */
const mr_op *const *mr_ops(void);

#endif
