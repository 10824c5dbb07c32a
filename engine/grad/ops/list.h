/* Every operation, once: the list and the declarations of the records are made from it. */
#ifndef MR_GRAD_OPS_LIST_H
#define MR_GRAD_OPS_LIST_H

#include "grad/op.h"

#define MR_EACH_OP(X) \
  X(cross_entropy)    \
  X(linear)           \
  X(weighted_sum)

#define MR_DECLARE_OP(name) extern const mr_op mr_op_##name;
MR_EACH_OP(MR_DECLARE_OP)
#undef MR_DECLARE_OP

#endif
