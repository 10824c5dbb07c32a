#include "grad/op.h"

#include <stdarg.h>
#include <stdio.h>

void *mr_call_data(const mr_call *call, int i) {
  return call->tensor[i] ? mr_tensor_data(call->tensor[i]) : NULL;
}

mr_status mr_call_save(mr_call *call, int slot, mr_dtype dtype, const mr_shape *shape) {
  return mr_tensor_new_raw(call->device, dtype, shape, &call->saved[slot]);
}

mr_status mr_call_fail(const mr_call *call, const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return mr_fail(MR_ERROR_ARGUMENT, "%s: %s", call->op->name, text);
}

mr_status mr_call_check_axes(const mr_call *call, int i, int axes) {
  char text[128];
  const mr_shape *shape = &call->tensor[i]->shape;
  const char *name = call->op->argument[i].name;
  if (axes < 0 && shape->axes < 1)
    return mr_call_fail(call, "%s must have at least one axis, got a scalar", name);
  if (axes >= 0 && shape->axes != axes)
    return mr_call_fail(call, "%s must have %d %s, got %s", name, axes, axes == 1 ? "axis" : "axes",
                        mr_shape_text(shape, text));
  return MR_OK;
}

mr_status mr_call_check_vector(const mr_call *call, int i, int64_t count) {
  char text[128];
  const mr_shape *shape = &call->tensor[i]->shape;
  if (shape->axes == 1 && shape->extent[0] == count) return MR_OK;
  return mr_call_fail(call, "%s must have shape [%lld], got %s", call->op->argument[i].name,
                      (long long)count, mr_shape_text(shape, text));
}
