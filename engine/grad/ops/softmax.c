/* softmax: exp(x) over its sum along the last axis. */
#include "grad/ops/list.h"
#include "grad/ops/shapes.h"

enum { X };

static mr_status forward(mr_call *call) {
  const mr_shape *x = &call->tensor[X]->shape;
  return MR_CALL_KERNEL(call, softmax, mr_shape_rows(x), mr_shape_columns(x), mr_call_data(call, X),
                        mr_tensor_data(call->output));
}

/* Reads the output: the tape refuses one that was changed in place. */
static mr_status backward(mr_call *call) {
  const mr_shape *x = &call->tensor[X]->shape;
  return MR_CALL_KERNEL(call, softmax_backward, mr_shape_rows(x), mr_shape_columns(x),
                        mr_tensor_data(call->output), call->output_gradient, call->gradient[X]);
}

const mr_op mr_op_softmax = {
    .name = "softmax",
    .text = "Exponentials over their sum along the last axis: each row adds up to 1.",
    .result_text = "the shape of x",
    .arguments = 1,
    .argument = {{.name = "x", .kind = MR_ARGUMENT_REAL, .text = "[..., columns]"}},
    .reads_output = 1,
    .result = mr_result_over_last,
    .forward = forward,
    .backward = backward,
};
