/* relu: max(x, 0), with gradient 0 at 0. */
#include "grad/ops/list.h"
#include "grad/ops/shapes.h"

enum { X };

static mr_status forward(mr_call *call) {
  return MR_CALL_KERNEL(call, relu, call->tensor[X]->count, mr_call_data(call, X),
                        mr_tensor_data(call->output));
}

static mr_status backward(mr_call *call) {
  return MR_CALL_KERNEL(call, relu_backward, call->fresh >> X & 1U, call->tensor[X]->count,
                        mr_call_data(call, X), call->output_gradient, call->gradient[X]);
}

const mr_op mr_op_relu = {
    .name = "relu",
    .text = "The larger of x and 0, element by element; its gradient at 0 is 0.",
    .result_text = "the shape of x",
    .arguments = 1,
    .argument = {{.name = "x", .kind = MR_ARGUMENT_REAL, .text = "any shape"}},
    .writes = 1U << X,
    .takes_over = 1U << X,
    .result = mr_result_as_first,
    .forward = forward,
    .backward = backward,
};
