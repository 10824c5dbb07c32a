#include <stdio.h>

#include "tensor/tensor.h"

mr_status mr_shape_count(const mr_shape *shape, int64_t *count) {
  int64_t product = 1;
  *count = 0;
  if (shape->axes < 0 || shape->axes > MR_MAX_AXES)
    return mr_fail(MR_ERROR_ARGUMENT, "a tensor has 0 to %d axes, got %d", MR_MAX_AXES,
                   shape->axes);
  for (int i = 0; i < shape->axes; i++) {
    if (shape->extent[i] < 0)
      return mr_fail(MR_ERROR_ARGUMENT, "extent %d must be at least 0, got %lld", i + 1,
                     (long long)shape->extent[i]);
    if (__builtin_mul_overflow(product, shape->extent[i], &product))
      return mr_fail(MR_ERROR_ARGUMENT, "the product of the extents overflows 64 bits");
  }
  *count = product;
  return MR_OK;
}

int mr_shape_equal(const mr_shape *a, const mr_shape *b) {
  if (a->axes != b->axes) return 0;
  for (int i = 0; i < a->axes; i++)
    if (a->extent[i] != b->extent[i]) return 0;
  return 1;
}

const char *mr_shape_text(const mr_shape *shape, char text[128]) {
  int used = snprintf(text, 128, "[");
  for (int i = 0; i < shape->axes && used < 120; i++)
    used += snprintf(text + used, (size_t)(128 - used), i ? ",%lld" : "%lld",
                     (long long)shape->extent[i]);
  if (used < 127) (void)snprintf(text + used, (size_t)(128 - used), "]");
  return text;
}

int64_t mr_shape_columns(const mr_shape *shape) {
  return shape->axes ? shape->extent[shape->axes - 1] : 1;
}

int64_t mr_shape_rows(const mr_shape *shape) {
  int64_t rows = 1;
  for (int i = 0; i + 1 < shape->axes; i++) rows *= shape->extent[i];
  return rows;
}
