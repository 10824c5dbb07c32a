/* Conversion between dtypes. Integers pass through the host: they are counts and ids, few and
 * rarely converted; reals use the device's kernels. */
#include <stddef.h>

#include "kernels/bf16.h"
#include "tensor/tensor.h"

static double element_as_double(const void *host, mr_dtype dtype, int64_t i) {
  if (dtype == MR_I32) return (double)((const int32_t *)host)[i];
  return (double)((const int64_t *)host)[i];
}

static void convert_integers(const void *from, mr_dtype from_type, void *to, mr_dtype to_type,
                             int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    if (to_type == MR_F32)
      ((float *)to)[i] = (float)element_as_double(from, from_type, i);
    else if (to_type == MR_F64)
      ((double *)to)[i] = element_as_double(from, from_type, i);
    else if (to_type == MR_BF16)
      ((mr_bf16 *)to)[i] = mr_bf16_from_f64(element_as_double(from, from_type, i));
    else if (to_type == MR_I64)
      ((int64_t *)to)[i] = ((const int32_t *)from)[i];
  }
}

static mr_status narrow_integers(const int64_t *from, int32_t *to, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    if (from[i] < INT32_MIN || from[i] > INT32_MAX)
      return mr_fail(MR_ERROR_ARGUMENT, "element %lld is %lld, which does not fit an i32",
                     (long long)i + 1, (long long)from[i]);
    to[i] = (int32_t)from[i];
  }
  return MR_OK;
}

static mr_status from_integers(const mr_tensor *from, mr_tensor *to) {
  void *result = NULL;
  mr_host_values source;
  mr_status status = mr_tensor_host_sync(from, &source);
  if (status == MR_OK) status = mr_memory_allocate_raw(mr_tensor_bytes(to), &result);
  if (status == MR_OK && from->dtype == MR_I64 && to->dtype == MR_I32)
    status = narrow_integers(source.data, result, from->count);
  else if (status == MR_OK)
    convert_integers(source.data, from->dtype, result, to->dtype, from->count);
  if (status == MR_OK) status = mr_tensor_write(to, result);
  mr_host_values_release(&source);
  mr_memory_release(result);
  return status;
}

static mr_status convert_into(const mr_tensor *from, mr_tensor *to) {
  mr_device *device = mr_tensor_device(from);
  if (from->dtype == to->dtype) return mr_tensor_copy_from(to, from);
  if (!mr_dtype_is_real(from->dtype)) return from_integers(from, to);
  if (from->dtype == MR_BF16)
    return to->dtype == MR_F32 ? MR_KERNEL(device, MR_BF16, to_f32, from->count,
                                           mr_tensor_data(from), mr_tensor_data(to))
                               : MR_KERNEL(device, MR_BF16, to_f64, from->count,
                                           mr_tensor_data(from), mr_tensor_data(to));
  if (from->dtype == MR_F32)
    return MR_KERNEL(device, to->dtype, from_f32, from->count, mr_tensor_data(from),
                     mr_tensor_data(to));
  return MR_KERNEL(device, to->dtype, from_f64, from->count, mr_tensor_data(from),
                   mr_tensor_data(to));
}

mr_status mr_tensor_convert(const mr_tensor *from, mr_dtype dtype, mr_tensor **copy) {
  *copy = NULL;
  MR_TRY(mr_tensor_readable(from, "the source of a conversion"));
  if (mr_dtype_is_real(from->dtype) && !mr_dtype_is_real(dtype))
    return mr_fail(MR_ERROR_ARGUMENT,
                   "%s cannot be converted to %s: reals are never rounded to "
                   "integers silently",
                   mr_dtype_name(from->dtype), mr_dtype_name(dtype));
  MR_TRY(mr_tensor_new_raw(mr_tensor_device(from), dtype, &from->shape, copy));
  mr_status status = convert_into(from, *copy);
  if (status != MR_OK) {
    mr_tensor_release(*copy);
    *copy = NULL;
  }
  return status;
}
