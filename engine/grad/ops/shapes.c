#include "grad/ops/shapes.h"

#include <math.h>

mr_status mr_result_as_first(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  *shape = call->tensor[0]->shape;
  *dtype = call->dtype;
  return MR_OK;
}

mr_status mr_result_over_last(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  MR_TRY(mr_call_check_axes(call, 0, -1));
  return mr_result_as_first(call, shape, dtype);
}

mr_status mr_call_check_same(const mr_call *call, int i, int j) {
  char expected[128], found[128];
  const mr_shape *shape = &call->tensor[i]->shape, *other = &call->tensor[j]->shape;
  if (mr_shape_equal(shape, other)) return MR_OK;
  return mr_call_fail(call, "%s must have the shape of %s, %s, got %s", call->op->argument[i].name,
                      call->op->argument[j].name, mr_shape_text(other, expected),
                      mr_shape_text(shape, found));
}

mr_status mr_call_check_epsilon(const mr_call *call, int i) {
  double epsilon = call->number[i];
  if (isfinite(epsilon) && epsilon >= 0) return MR_OK;
  return mr_call_fail(call, "%s must be a finite number of at least 0, got %g",
                      call->op->argument[i].name, epsilon);
}

mr_status mr_call_check_repeat(const mr_call *call, int a, int b) {
  char expected[128], found[128];
  const mr_shape *whole = &call->tensor[a]->shape, *part = &call->tensor[b]->shape;
  int leading = whole->axes - part->axes, fits = leading >= 0;
  for (int i = 0; fits && i < part->axes; i++) fits = part->extent[i] == whole->extent[leading + i];
  if (fits) return MR_OK;
  return mr_call_fail(call, "%s must have the shape of %s, %s, or of its last axes, got %s",
                      call->op->argument[b].name, call->op->argument[a].name,
                      mr_shape_text(whole, expected), mr_shape_text(part, found));
}

mr_repeat mr_call_repeat(const mr_call *call, int a, int b) {
  const mr_shape *whole = &call->tensor[a]->shape;
  mr_repeat repeat = {1, call->tensor[b]->count};
  for (int i = 0; i < whole->axes - call->tensor[b]->shape.axes; i++)
    repeat.rows *= whole->extent[i];
  return repeat;
}
