#include "train/unit.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"

enum { RANGE_STEP = 32 }; /* elements: 64 bytes of the narrowest dtype there will be */

/* Lays the ranges out one after the other; sets offset and count of each and the total. */
static mr_status lay_out(mr_unit *unit) {
  int64_t step = RANGE_STEP, next = 0;
  for (int64_t i = 0; i < unit->ranges; i++) {
    mr_range *range = &unit->range[i];
    MR_TRY(mr_shape_count(&range->shape, &range->count));
    range->offset = next;
    if (range->count > INT64_MAX / 8 - next - step)
      return mr_fail(MR_ERROR_MEMORY, "no memory: the parameters overflow 64 bits");
    next = (next + range->count + step - 1) / step * step;
  }
  unit->count = next;
  return MR_OK;
}

static mr_status copy_ranges(mr_unit *unit, const mr_range *range, int64_t ranges) {
  void *block = NULL;
  MR_TRY(mr_memory_allocate_array(ranges, sizeof(mr_range), &block));
  unit->range = block;
  for (int64_t i = 0; i < ranges; i++) {
    char *name = NULL;
    for (int64_t j = 0; j < i; j++)
      if (strcmp(unit->range[j].name, range[i].name) == 0)
        return mr_fail(MR_ERROR_ARGUMENT, "two parameters have the name '%s'", range[i].name);
    MR_TRY(mr_memory_copy_string(range[i].name, &name));
    unit->range[i] = (mr_range){.name = name, .shape = range[i].shape, .decays = range[i].decays};
    unit->ranges = i + 1;
  }
  return MR_OK;
}

static mr_status make_parameters(mr_unit *unit) {
  mr_shape flat = {1, {unit->count}};
  mr_dtype wide = mr_dtype_wide(unit->dtype);
  MR_TRY(mr_tensor_new(unit->device, unit->dtype, &flat, &unit->values));
  if (wide == unit->dtype)
    unit->master = mr_tensor_retain(unit->values);
  else
    MR_TRY(mr_tensor_new(unit->device, wide, &flat, &unit->master));
  MR_TRY(mr_tensor_new(unit->device, wide, &flat, &unit->gradients));
  for (int64_t i = 0; i < unit->ranges; i++) {
    mr_range *range = &unit->range[i];
    MR_TRY(mr_tensor_view(unit->values, range->offset, &range->shape, &range->parameter));
    range->parameter->requires_gradient = 1;
    MR_TRY(
        mr_tensor_view(unit->gradients, range->offset, &range->shape, &range->parameter->gradient));
  }
  return MR_OK;
}

mr_status mr_unit_new(mr_device *device, mr_dtype dtype, const mr_range *range, int64_t ranges,
                      mr_unit **unit) {
  void *block = NULL;
  *unit = NULL;
  if (!mr_dtype_is_real(dtype))
    return mr_fail(MR_ERROR_ARGUMENT, "parameters must be f32, f64 or bf16, not %s",
                   mr_dtype_name(dtype));
  MR_TRY(mr_memory_allocate(sizeof(mr_unit), &block));
  mr_unit *made = block;
  *made = (mr_unit){.references = 1, .device = device, .dtype = dtype};
  mr_status status = copy_ranges(made, range, ranges);
  if (status == MR_OK) status = lay_out(made);
  if (status == MR_OK) status = make_parameters(made);
  if (status != MR_OK) {
    mr_unit_release(made);
    return status;
  }
  *unit = made;
  return MR_OK;
}

mr_unit *mr_unit_retain(mr_unit *unit) {
  unit->references++;
  return unit;
}

void mr_unit_release(mr_unit *unit) {
  if (!unit || --unit->references > 0) return;
  for (int64_t i = 0; i < unit->ranges; i++) {
    if (unit->range[i].parameter) unit->range[i].parameter->watch = NULL;
    mr_tensor_release(unit->range[i].parameter);
    mr_memory_release((void *)(uintptr_t)unit->range[i].name);
  }
  mr_memory_release(unit->range);
  mr_tensor_release(unit->values);
  mr_tensor_release(unit->master);
  mr_tensor_release(unit->gradients);
  mr_memory_release(unit);
}

int64_t mr_unit_find(const mr_unit *unit, const char *name) {
  for (int64_t i = 0; i < unit->ranges; i++)
    if (strcmp(unit->range[i].name, name) == 0) return i;
  return -1;
}

int64_t mr_unit_parameters(const mr_unit *unit) {
  int64_t count = 0;
  for (int64_t i = 0; i < unit->ranges; i++) count += unit->range[i].count;
  return count;
}

static void note_copy(mr_unit *unit) {
  mr_tensor_changed(unit->values);
  unit->copies++;
  unit->copied = unit->master->storage->version;
}

mr_status mr_unit_refresh(mr_unit *unit) {
  if (unit->master == unit->values || unit->copied == unit->master->storage->version) return MR_OK;
  note_copy(unit);
  return MR_KERNEL(unit->device, unit->dtype, from_f32, unit->count, mr_tensor_data(unit->master),
                   mr_tensor_data(unit->values));
}

void mr_unit_stepped(mr_unit *unit) {
  mr_tensor_changed(unit->master);
  if (unit->master != unit->values) note_copy(unit);
}

int64_t mr_unit_version(const mr_unit *unit) {
  int64_t version = unit->master->storage->version;
  if (unit->master == unit->values) return version;
  return version + unit->values->storage->version - unit->copies;
}

mr_status mr_unit_zero_gradients(mr_unit *unit) {
  mr_tensor_changed(unit->gradients);
  return MR_KERNEL(unit->device, unit->gradients->dtype, fill, unit->count, 0.0,
                   mr_tensor_data(unit->gradients));
}

mr_status mr_unit_gradient_norm_sync(mr_unit *unit, double *norm) {
  double squares = 0;
  mr_device *device = unit->device;
  *norm = 0;
  MR_TRY(MR_KERNEL(device, unit->gradients->dtype, sum_squares, unit->count,
                   mr_tensor_data(unit->gradients), device->number));
  MR_TRY(device->read_sync(device, &squares, device->number, sizeof squares));
  *norm = sqrt(squares);
  return MR_OK;
}

double mr_clip_factor(double maximum, double norm) {
  if (!isfinite(norm)) return 1;
  return fmin(1, maximum / (norm + 1e-6));
}

mr_status mr_unit_clip_sync(mr_unit *unit, double maximum, double *norm) {
  MR_TRY(mr_unit_gradient_norm_sync(unit, norm));
  double factor = mr_clip_factor(maximum, *norm);
  if (factor >= 1) return MR_OK;
  mr_tensor_changed(unit->gradients);
  void *gradients = mr_tensor_data(unit->gradients);
  return MR_KERNEL(unit->device, unit->gradients->dtype, scale, unit->count, factor, gradients,
                   gradients);
}
