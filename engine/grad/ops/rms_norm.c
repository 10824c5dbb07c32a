/* rms_norm: each row over its root mean square, times w. */
#include "grad/ops/list.h"
#include "grad/ops/shapes.h"

enum { X, W, EPSILON };
enum { RSTD };

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  MR_TRY(mr_result_over_last(call, shape, dtype));
  MR_TRY(mr_call_check_vector(call, W, mr_shape_columns(shape)));
  return mr_call_check_epsilon(call, EPSILON);
}

static mr_status forward(mr_call *call) {
  const mr_shape *x = &call->tensor[X]->shape;
  mr_shape rows = {1, {mr_shape_rows(x)}};
  MR_TRY(mr_call_save(call, RSTD, mr_dtype_wide(call->dtype), &rows));
  return MR_CALL_KERNEL(call, rms_norm, rows.extent[0], mr_shape_columns(x), call->number[EPSILON],
                        mr_call_data(call, X), mr_call_data(call, W), mr_tensor_data(call->output),
                        mr_tensor_data(call->saved[RSTD]));
}

static mr_status backward(mr_call *call) {
  const mr_shape *x = &call->tensor[X]->shape;
  return MR_CALL_KERNEL(call, rms_norm_backward, call->fresh >> X & 1U, mr_shape_rows(x),
                        mr_shape_columns(x), mr_call_data(call, X), mr_call_data(call, W),
                        mr_tensor_data(call->saved[RSTD]), call->output_gradient, call->gradient[X],
                        call->gradient[W]);
}

const mr_op mr_op_rms_norm = {
    .name = "rms_norm",
    .text = "Each row of the last axis over its root mean square, times w.",
    .result_text = "the shape of x",
    .arguments = 3,
    .argument = {{.name = "x", .kind = MR_ARGUMENT_REAL, .text = "[..., columns]"},
                 {.name = "w", .kind = MR_ARGUMENT_REAL, .text = "[columns]"},
                 {.name = "epsilon",
                  .kind = MR_ARGUMENT_NUMBER,
                  .optional = 1,
                  .named = 1,
                  .fallback = 1e-5,
                  .text = "added to the mean square"}},
    .writes = 1U << X,
    .sums = 1U << W,
    .takes_over = 1U << X,
    .result = result,
    .forward = forward,
    .backward = backward,
};
