/* squared_error: (a - b)^2, one value for each element. */
#include "grad/ops/list.h"
#include "grad/ops/shapes.h"

enum { A, B };

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  MR_TRY(mr_call_check_same(call, B, A));
  MR_TRY(mr_result_as_first(call, shape, dtype));
  *dtype = mr_dtype_wide(call->dtype);
  return MR_OK;
}

static mr_status forward(mr_call *call) {
  return MR_CALL_KERNEL(call, squared_error, call->tensor[A]->count, mr_call_data(call, A),
                        mr_call_data(call, B), mr_tensor_data(call->output));
}

static mr_status backward(mr_call *call) {
  return MR_CALL_KERNEL(call, squared_error_backward, call->tensor[A]->count, mr_call_data(call, A),
                        mr_call_data(call, B), call->output_gradient, call->gradient[A],
                        call->gradient[B]);
}

const mr_op mr_op_squared_error = {
    .name = "squared_error",
    .text = "The square of the difference, element by element; not summed, not halved.",
    .result_text = "the shape of a; f32 where a is bf16",
    .arguments = 2,
    .argument = {{.name = "a", .kind = MR_ARGUMENT_REAL, .text = "any shape"},
                 {.name = "b", .kind = MR_ARGUMENT_REAL, .text = "the shape of a"}},
    .result = result,
    .forward = forward,
    .backward = backward,
};
