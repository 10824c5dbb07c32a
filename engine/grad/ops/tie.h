/* tie: the value of x, made to depend on a leaf that contributes nothing to it. Used by replicas;
 * no method of tensors. */
#ifndef MR_GRAD_OPS_TIE_H
#define MR_GRAD_OPS_TIE_H

#include "grad/op.h"

extern const mr_op mr_op_tie;

#endif
