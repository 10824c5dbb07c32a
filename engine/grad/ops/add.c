/* add: a + b, with b repeated over the leading axes of a. */
#include "grad/ops/list.h"
#include "grad/ops/shapes.h"

enum { A, B };

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  MR_TRY(mr_call_check_repeat(call, A, B));
  return mr_result_as_first(call, shape, dtype);
}

static mr_status forward(mr_call *call) {
  mr_repeat repeat = mr_call_repeat(call, A, B);
  return MR_CALL_KERNEL(call, add, repeat.rows, repeat.cols, mr_call_data(call, A),
                        mr_call_data(call, B), mr_tensor_data(call->output));
}

static mr_status backward(mr_call *call) {
  mr_repeat repeat = mr_call_repeat(call, A, B);
  return MR_CALL_KERNEL(call, add_backward, repeat.rows, repeat.cols, call->output_gradient,
                        call->gradient[A], call->gradient[B]);
}

const mr_op mr_op_add = {
    .name = "add",
    .text = "The sum of two tensors, element by element.",
    .result_text = "the shape of a",
    .arguments = 2,
    .argument = {{.name = "a", .kind = MR_ARGUMENT_REAL, .text = "any shape"},
                 {.name = "b",
                  .kind = MR_ARGUMENT_REAL,
                  .text = "the shape of a, or of its last axes; repeated over the others"}},
    .passes = 1U << A | 1U << B,
    .result = result,
    .forward = forward,
    .backward = backward,
};
