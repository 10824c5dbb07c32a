/* weighted_sum: the sum of all elements, each times its weight; one value. */
#include "grad/ops/list.h"

enum { X, WEIGHTS };

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  char x_text[128], w_text[128];
  const mr_shape *x = &call->tensor[X]->shape, *w = &call->tensor[WEIGHTS]->shape;
  if (!mr_shape_equal(x, w))
    return mr_call_fail(call, "x is %s and weights are %s: they must be equal",
                        mr_shape_text(x, x_text), mr_shape_text(w, w_text));
  *shape = (mr_shape){0};
  *dtype = mr_dtype_wide(call->dtype);
  return MR_OK;
}

static mr_status forward(mr_call *call) {
  return MR_CALL_KERNEL(call, weighted_sum, call->tensor[X]->count, mr_call_data(call, X),
                        mr_call_data(call, WEIGHTS), mr_tensor_data(call->output));
}

static mr_status backward(mr_call *call) {
  return MR_CALL_KERNEL(call, weighted_sum_backward, call->tensor[X]->count,
                        mr_call_data(call, WEIGHTS), call->output_gradient, call->gradient[X]);
}

const mr_op mr_op_weighted_sum = {
    .name = "weighted_sum",
    .text = "The sum of all elements, each times its weight.",
    .result_text = "[], a scalar; f32 where x is bf16",
    .arguments = 2,
    .argument = {{.name = "x", .kind = MR_ARGUMENT_REAL, .text = "any shape"},
                 {.name = "weights",
                  .kind = MR_ARGUMENT_CONSTANT,
                  .text = "the shape of x; f32 where x is bf16; receives no gradient"}},
    .result = result,
    .forward = forward,
    .backward = backward,
};
