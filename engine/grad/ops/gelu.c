/* gelu: x times the normal distribution function, in its tanh form. */
#include "grad/ops/list.h"
#include "grad/ops/shapes.h"

enum { X };

static mr_status forward(mr_call *call) {
  return MR_CALL_KERNEL(call, gelu, call->tensor[X]->count, mr_call_data(call, X),
                        mr_tensor_data(call->output));
}

static mr_status backward(mr_call *call) {
  return MR_CALL_KERNEL(call, gelu_backward, call->fresh >> X & 1U, call->tensor[X]->count,
                        mr_call_data(call, X), call->output_gradient, call->gradient[X]);
}

const mr_op mr_op_gelu = {
    .name = "gelu",
    .text = "The Gaussian error linear unit in its tanh form, element by element.",
    .result_text = "the shape of x",
    .arguments = 1,
    .argument = {{.name = "x", .kind = MR_ARGUMENT_REAL, .text = "any shape"}},
    .writes = 1U << X,
    .takes_over = 1U << X,
    .result = mr_result_as_first,
    .forward = forward,
    .backward = backward,
};
