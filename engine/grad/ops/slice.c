/* slice: consecutive rows of the first axis; a view. */
#include "grad/ops/list.h"

enum { X, FIRST, COUNT };

/* Elements of one row of the first axis. */
static int64_t row_elements(const mr_shape *x) {
  int64_t product = 1;
  for (int i = 1; i < x->axes; i++) product *= x->extent[i];
  return product;
}

static int64_t elements_before(const mr_call *call) {
  return (call->integer[FIRST] - 1) * row_elements(&call->tensor[X]->shape);
}

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  MR_TRY(mr_call_check_axes(call, X, -1));
  int64_t rows = call->tensor[X]->shape.extent[0];
  int64_t first = call->integer[FIRST], count = call->integer[COUNT];
  if (first < 1 || first - 1 > rows)
    return mr_call_fail(call, "first must lie in 1 to %lld, got %lld", (long long)rows + 1,
                        (long long)first);
  if (count < 0 || count > rows - (first - 1))
    return mr_call_fail(call, "count must lie in 0 to %lld from row %lld on, got %lld",
                        (long long)(rows - (first - 1)), (long long)first, (long long)count);
  *shape = call->tensor[X]->shape;
  shape->extent[0] = count;
  *dtype = call->dtype;
  return MR_OK;
}

static mr_status forward(mr_call *call) {
  return mr_tensor_view(call->tensor[X], elements_before(call), &call->extents, &call->output);
}

static mr_status backward(mr_call *call) {
  char *gradient = call->gradient[X];
  if (!gradient) return MR_OK;
  gradient += elements_before(call) * mr_dtype_size(call->dtype);
  return MR_CALL_KERNEL(call, add_scaled, call->output->count, 1.0, call->output_gradient,
                        gradient);
}

const mr_op mr_op_slice = {
    .name = "slice",
    .text = "Consecutive rows of the first axis; shares memory with x.",
    .result_text = "[count, ...]",
    .arguments = 3,
    .argument = {{.name = "x", .kind = MR_ARGUMENT_REAL, .text = "[rows, ...]"},
                 {.name = "first", .kind = MR_ARGUMENT_INTEGER, .text = "first row, from 1"},
                 {.name = "count", .kind = MR_ARGUMENT_INTEGER, .text = "number of rows"}},
    .is_view = 1,
    .result = result,
    .forward = forward,
    .backward = backward,
};
