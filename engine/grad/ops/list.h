/* Every operation, once: the list and the declarations of the records are made from it. */
#ifndef MR_GRAD_OPS_LIST_H
#define MR_GRAD_OPS_LIST_H

#include "grad/op.h"

#define MR_EACH_OP(X)   \
  X(add)                \
  X(add_layer_norm)     \
  X(argmax)             \
  X(attention)          \
  X(concatenate)        \
  X(cross_entropy)      \
  X(dropout)            \
  X(embedding)          \
  X(gelu)               \
  X(layer_norm)         \
  X(linear)             \
  X(linear_gelu_linear) \
  X(matmul)             \
  X(multiply)           \
  X(relu)               \
  X(reshape)            \
  X(rms_norm)           \
  X(scale)              \
  X(self_attention)     \
  X(silu)               \
  X(slice)              \
  X(softmax)            \
  X(squared_error)      \
  X(sum)                \
  X(weighted_sum)

#define MR_DECLARE_OP(name) extern const mr_op mr_op_##name;
MR_EACH_OP(MR_DECLARE_OP)
#undef MR_DECLARE_OP

#endif
