/* argmax: where each row has its largest element. No gradient. */
#include "grad/ops/list.h"

enum { X };

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  char found[128];
  const mr_shape *x = &call->tensor[X]->shape;
  MR_TRY(mr_call_check_axes(call, X, -1));
  if (mr_shape_columns(x) == 0 && mr_shape_rows(x) > 0)
    return mr_call_fail(call, "x must have at least one column, got %s", mr_shape_text(x, found));
  *shape = *x;
  shape->axes--;
  *dtype = MR_I32;
  return MR_OK;
}

static mr_status forward(mr_call *call) {
  const mr_shape *x = &call->tensor[X]->shape;
  return MR_CALL_KERNEL(call, argmax, mr_shape_rows(x), mr_shape_columns(x), mr_call_data(call, X),
                        mr_tensor_data(call->output));
}

const mr_op mr_op_argmax = {
    .name = "argmax",
    .text = "Index from 0 of the largest element of each row, the first of equals, as i32.",
    .result_text = "i32, the shape of x without its last axis",
    .arguments = 1,
    .argument = {{.name = "x", .kind = MR_ARGUMENT_REAL, .text = "[..., columns]"}},
    .result = result,
    .forward = forward,
};
