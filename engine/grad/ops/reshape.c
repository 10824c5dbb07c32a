/* reshape: the same elements under other extents; a view. */
#include "grad/ops/list.h"

enum { X, SHAPE };

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  char expected[128], found[128];
  const mr_tensor *x = call->tensor[X];
  int64_t count = 0;
  mr_status status = mr_shape_count(&call->extents, &count);
  if (status != MR_OK) return mr_fail_within(status, "reshape");
  if (count != x->count)
    return mr_call_fail(call, "x is %s with %lld elements and cannot become %s with %lld",
                        mr_shape_text(&x->shape, found), (long long)x->count,
                        mr_shape_text(&call->extents, expected), (long long)count);
  *shape = call->extents;
  *dtype = call->dtype;
  return MR_OK;
}

static mr_status forward(mr_call *call) {
  return mr_tensor_view(call->tensor[X], 0, &call->extents, &call->output);
}

static mr_status backward(mr_call *call) {
  if (!call->gradient[X]) return MR_OK;
  return MR_CALL_KERNEL(call, add_scaled, call->tensor[X]->count, 1.0, call->output_gradient,
                        call->gradient[X]);
}

const mr_op mr_op_reshape = {
    .name = "reshape",
    .text = "The same elements under another shape; shares memory with x.",
    .result_text = "the new shape",
    .arguments = 2,
    .argument = {{.name = "x", .kind = MR_ARGUMENT_REAL, .text = "any shape"},
                 {.name = "shape",
                  .kind = MR_ARGUMENT_SHAPE,
                  .text = "the new extents; their product is the number of elements of x"}},
    .passes = 1U << X,
    .is_view = 1,
    .result = result,
    .forward = forward,
    .backward = backward,
};
