/* scale: alpha x. */
#include "grad/ops/list.h"
#include "grad/ops/shapes.h"

enum { X, ALPHA };

static mr_status forward(mr_call *call) {
  return MR_CALL_KERNEL(call, scale, call->tensor[X]->count, call->number[ALPHA],
                        mr_call_data(call, X), mr_tensor_data(call->output));
}

static mr_status backward(mr_call *call) {
  if (call->fresh >> X & 1U)
    return MR_CALL_KERNEL(call, scale, call->tensor[X]->count, call->number[ALPHA],
                          call->output_gradient, call->gradient[X]);
  return MR_CALL_KERNEL(call, add_scaled, call->tensor[X]->count, call->number[ALPHA],
                        call->output_gradient, call->gradient[X]);
}

const mr_op mr_op_scale = {
    .name = "scale",
    .text = "Every element times one number.",
    .result_text = "the shape of x",
    .arguments = 2,
    .argument = {{.name = "x", .kind = MR_ARGUMENT_REAL, .text = "any shape"},
                 {.name = "alpha", .kind = MR_ARGUMENT_NUMBER, .text = "the factor"}},
    .writes = 1U << X,
    .takes_over = 1U << X,
    .result = mr_result_as_first,
    .forward = forward,
    .backward = backward,
};
