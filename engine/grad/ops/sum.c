/* sum: all elements added up in a fixed order; one value. */
#include <stddef.h>

#include "grad/ops/list.h"

enum { X };

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  *shape = (mr_shape){0};
  *dtype = mr_dtype_wide(call->dtype);
  return MR_OK;
}

static mr_status forward(mr_call *call) {
  return MR_CALL_KERNEL(call, weighted_sum, call->tensor[X]->count, mr_call_data(call, X), NULL,
                        mr_tensor_data(call->output));
}

static mr_status backward(mr_call *call) {
  return MR_CALL_KERNEL(call, weighted_sum_backward, call->tensor[X]->count, NULL,
                        call->output_gradient, call->gradient[X]);
}

const mr_op mr_op_sum = {
    .name = "sum",
    .text = "The sum of all elements.",
    .result_text = "[], a scalar; f32 where x is bf16",
    .arguments = 1,
    .argument = {{.name = "x", .kind = MR_ARGUMENT_REAL, .text = "any shape"}},
    .result = result,
    .forward = forward,
    .backward = backward,
};
