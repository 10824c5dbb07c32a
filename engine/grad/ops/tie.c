#include "grad/ops/tie.h"

enum { X, LEAF };

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  *shape = call->tensor[X]->shape;
  *dtype = call->dtype;
  return MR_OK;
}

static mr_status forward(mr_call *call) {
  return mr_tensor_view(call->tensor[X], 0, &call->extents, &call->output);
}

static mr_status backward(mr_call *call) {
  if (!call->gradient[X]) return MR_OK;
  return MR_CALL_KERNEL(call, add_scaled, call->output->count, 1.0, call->output_gradient,
                        call->gradient[X]);
}

const mr_op mr_op_tie = {
    .name = "tie",
    .text = "The value of x, made to depend on a leaf that contributes nothing to it.",
    .result_text = "the shape of x",
    .arguments = 2,
    .argument = {{.name = "x", .kind = MR_ARGUMENT_REAL, .text = "any shape"},
                 {.name = "leaf", .kind = MR_ARGUMENT_REAL, .text = "any shape"}},
    .passes = 1U << X,
    .is_view = 1,
    .result = result,
    .forward = forward,
    .backward = backward,
};
