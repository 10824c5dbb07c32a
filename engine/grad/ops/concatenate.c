/* concatenate: tensors one after the other along the first axis. */
#include "grad/ops/list.h"

enum { X, OTHERS };

static mr_status check_other(const mr_call *call, int64_t i) {
  char expected[128], found[128];
  const mr_tensor *x = call->tensor[X], *other = call->more[i];
  mr_shape rest = other->shape;
  if (other->dtype != call->dtype)
    return mr_call_fail(call, "others[%lld] must be %s like x, got %s", (long long)i + 1,
                        mr_dtype_name(call->dtype), mr_dtype_name(other->dtype));
  if (rest.axes > 0) rest.extent[0] = x->shape.extent[0];
  if (mr_shape_equal(&rest, &x->shape)) return MR_OK;
  return mr_call_fail(call,
                      "others[%lld] must have the shape of x, %s, but for the first extent, "
                      "got %s",
                      (long long)i + 1, mr_shape_text(&x->shape, expected),
                      mr_shape_text(&other->shape, found));
}

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  MR_TRY(mr_call_check_axes(call, X, -1));
  *shape = call->tensor[X]->shape;
  *dtype = call->dtype;
  for (int64_t i = 0; i < call->more_count; i++) {
    MR_TRY(check_other(call, i));
    if (__builtin_add_overflow(shape->extent[0], call->more[i]->shape.extent[0], &shape->extent[0]))
      return mr_call_fail(call, "the sum of the first extents overflows 64 bits");
  }
  return MR_OK;
}

static mr_status append(mr_call *call, const mr_tensor *part, char **end) {
  MR_TRY(call->device->copy(call->device, *end, mr_tensor_data(part), mr_tensor_bytes(part)));
  *end += mr_tensor_bytes(part);
  return MR_OK;
}

static mr_status forward(mr_call *call) {
  char *end = mr_tensor_data(call->output);
  MR_TRY(append(call, call->tensor[X], &end));
  for (int64_t i = 0; i < call->more_count; i++) MR_TRY(append(call, call->more[i], &end));
  return MR_OK;
}

static mr_status hand_back(mr_call *call, const mr_tensor *part, void *gradient,
                           const char **from) {
  const char *part_gradient = *from;
  *from += mr_tensor_bytes(part);
  if (!gradient) return MR_OK;
  return MR_CALL_KERNEL(call, add_scaled, part->count, 1.0, part_gradient, gradient);
}

static mr_status backward(mr_call *call) {
  const char *from = call->output_gradient;
  MR_TRY(hand_back(call, call->tensor[X], call->gradient[X], &from));
  for (int64_t i = 0; i < call->more_count; i++)
    MR_TRY(hand_back(call, call->more[i], call->more_gradient[i], &from));
  return MR_OK;
}

const mr_op mr_op_concatenate = {
    .name = "concatenate",
    .text = "Tensors one after the other along the first axis.",
    .result_text = "the shape of x, with the sum of the first extents",
    .arguments = 2,
    .argument = {{.name = "x", .kind = MR_ARGUMENT_REAL, .text = "[rows, ...]"},
                 {.name = "others",
                  .kind = MR_ARGUMENT_TENSORS,
                  .text = "a list; shapes as x, but for the first extent"}},
    .result = result,
    .forward = forward,
    .backward = backward,
};
