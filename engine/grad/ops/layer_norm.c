/* layer_norm: each row less its mean, over its deviation, times w plus b. */
#include "grad/ops/layer_norm.h"

#include "grad/ops/list.h"
#include "grad/ops/shapes.h"

enum {
  X = MR_LAYER_NORM_X,
  W = MR_LAYER_NORM_W,
  B = MR_LAYER_NORM_B,
  EPSILON = MR_LAYER_NORM_EPSILON
};

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  MR_TRY(mr_result_over_last(call, shape, dtype));
  MR_TRY(mr_call_check_vector(call, W, mr_shape_columns(shape)));
  if (call->tensor[B]) MR_TRY(mr_call_check_vector(call, B, mr_shape_columns(shape)));
  return mr_call_check_epsilon(call, EPSILON);
}

mr_status mr_layer_norm_save(mr_call *call) {
  const mr_shape rows = {1, {mr_shape_rows(&call->tensor[X]->shape)}};
  MR_TRY(mr_call_save(call, MR_LAYER_NORM_MEAN, mr_dtype_wide(call->dtype), &rows));
  return mr_call_save(call, MR_LAYER_NORM_RSTD, mr_dtype_wide(call->dtype), &rows);
}

static mr_status forward(mr_call *call) {
  const mr_shape *x = &call->tensor[X]->shape;
  MR_TRY(mr_layer_norm_save(call));
  return MR_CALL_KERNEL(call, layer_norm, mr_shape_rows(x), mr_shape_columns(x),
                        call->number[EPSILON], mr_call_data(call, X), mr_call_data(call, W),
                        mr_call_data(call, B), mr_tensor_data(call->output),
                        mr_tensor_data(call->saved[MR_LAYER_NORM_MEAN]),
                        mr_tensor_data(call->saved[MR_LAYER_NORM_RSTD]));
}

static mr_status backward(mr_call *call) {
  const mr_shape *x = &call->tensor[X]->shape;
  return MR_CALL_KERNEL(call, layer_norm_backward, call->fresh >> X & 1U, mr_shape_rows(x),
                        mr_shape_columns(x), mr_call_data(call, X), mr_call_data(call, W),
                        mr_tensor_data(call->saved[MR_LAYER_NORM_MEAN]),
                        mr_tensor_data(call->saved[MR_LAYER_NORM_RSTD]), call->output_gradient,
                        call->gradient[X], call->gradient[W], call->gradient[B]);
}

const mr_op mr_op_layer_norm = {
    .name = "layer_norm",
    .text = "Each row of the last axis less its mean, over its standard deviation, times w plus b.",
    .result_text = "the shape of x",
    .arguments = 4,
    .argument = {{.name = "x", .kind = MR_ARGUMENT_REAL, .text = "[..., columns]"},
                 {.name = "w", .kind = MR_ARGUMENT_REAL, .text = "[columns]"},
                 {.name = "b", .kind = MR_ARGUMENT_REAL, .optional = 1, .text = "[columns]"},
                 {.name = "epsilon",
                  .kind = MR_ARGUMENT_NUMBER,
                  .optional = 1,
                  .named = 1,
                  .fallback = 1e-5,
                  .text = "added to the variance"}},
    .writes = 1U << X,
    .sums = 1U << W | 1U << B,
    .takes_over = 1U << X,
    .result = result,
    .forward = forward,
    .backward = backward,
};
