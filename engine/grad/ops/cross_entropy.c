/* cross_entropy: minus the log of the softmax at the target, one value for each position. */
#include "grad/ops/ids.h"
#include "grad/ops/list.h"
#include "tensor/targets.h"

enum { X, TARGETS };
enum { LSE };

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  const mr_shape *x = &call->tensor[X]->shape;
  MR_TRY(mr_call_check_axes(call, X, 2));
  MR_TRY(mr_call_check_vector(call, TARGETS, x->extent[0]));
  MR_TRY(mr_check_ids(call, TARGETS, x->extent[1], MR_IGNORED_TARGET));
  *shape = (mr_shape){1, {x->extent[0]}};
  *dtype = mr_dtype_wide(call->dtype);
  return MR_OK;
}

static mr_status forward(mr_call *call) {
  const mr_shape *x = &call->tensor[X]->shape;
  mr_shape rows = {1, {x->extent[0]}};
  MR_TRY(mr_call_save(call, LSE, mr_dtype_wide(call->dtype), &rows));
  return MR_CALL_KERNEL(call, cross_entropy, x->extent[0], x->extent[1], mr_call_data(call, X),
                        mr_call_data(call, TARGETS), mr_tensor_data(call->output),
                        mr_tensor_data(call->saved[LSE]));
}

static mr_status backward(mr_call *call) {
  const mr_shape *x = &call->tensor[X]->shape;
  return MR_CALL_KERNEL(call, cross_entropy_backward, call->fresh >> X & 1U, x->extent[0],
                        x->extent[1], mr_call_data(call, X), mr_tensor_data(call->saved[LSE]),
                        mr_call_data(call, TARGETS), call->output_gradient, call->gradient[X]);
}

const mr_op mr_op_cross_entropy = {
    .name = "cross_entropy",
    .text = "Cross-entropy of each row with its target; 0 where the target is -100.",
    .result_text = "[rows]; f32 where x is bf16",
    .arguments = 2,
    .argument = {{.name = "x", .kind = MR_ARGUMENT_REAL, .text = "[rows, classes] logits"},
                 {.name = "targets",
                  .kind = MR_ARGUMENT_I32,
                  .text = "[rows] classes from 0; -100 is ignored"}},
    .writes = 1U << X,
    .overwrites = 1U << X,
    .result = result,
    .forward = forward,
    .backward = backward,
};
