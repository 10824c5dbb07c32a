#include "tensor/compare.h"

#include <math.h>
#include <stddef.h>

#include "base/memory.h"
#include "kernels/bf16.h"

const double mr_share_edges[MR_SHARE_EDGES] = {0,    1e-8, 1e-7, 1e-6, 1e-5, 1e-4,
                                               1e-3, 1e-2, 1e-1, 1,    10};

/* One side of a comparison, on the host. */
typedef struct side {
  mr_dtype dtype;
  mr_host_values values;
} side;

static double element(const side *from, int64_t i) {
  if (from->dtype == MR_F32) return (double)((const float *)from->values.data)[i];
  if (from->dtype == MR_BF16)
    return (double)mr_bf16_to_f32(((const mr_bf16 *)from->values.data)[i]);
  return ((const double *)from->values.data)[i];
}

static double limit(mr_gate gate, double b) { return gate.absolute + gate.relative * fabs(b); }

static int holds(double a, double b, mr_gate gate) {
  return isfinite(a) && isfinite(b) && fabs(a - b) <= limit(gate, b);
}

static mr_status check_pair(const mr_tensor *a, const mr_tensor *b) {
  MR_TRY(mr_tensor_readable(a, "the first tensor of a comparison"));
  MR_TRY(mr_tensor_readable(b, "the second tensor of a comparison"));
  if (!mr_dtype_is_real(a->dtype) || !mr_dtype_is_real(b->dtype))
    return mr_fail(MR_ERROR_ARGUMENT, "only reals are compared, got %s and %s",
                   mr_dtype_name(a->dtype), mr_dtype_name(b->dtype));
  if (a->count != b->count)
    return mr_fail(MR_ERROR_ARGUMENT, "compared tensors have %lld and %lld elements",
                   (long long)a->count, (long long)b->count);
  return MR_OK;
}

/* What is compared: excuse_* are read where an excuse is given. */
typedef struct sides {
  side a, b, excuse_scale, excuse_a, excuse_b;
} sides;

static mr_status read_side(const mr_tensor *tensor, side *to) {
  to->dtype = tensor->dtype;
  return mr_tensor_host_sync(tensor, &to->values);
}

static mr_status read_sides(const mr_tensor *a, const mr_tensor *b, const mr_excuse *excuse,
                            sides *s) {
  MR_TRY(read_side(a, &s->a));
  MR_TRY(read_side(b, &s->b));
  if (!excuse) return MR_OK;
  MR_TRY(read_side(excuse->scale, &s->excuse_scale));
  MR_TRY(read_side(excuse->a, &s->excuse_a));
  return read_side(excuse->b, &s->excuse_b);
}

static void release_sides(sides *s) {
  mr_host_values_release(&s->a.values);
  mr_host_values_release(&s->b.values);
  mr_host_values_release(&s->excuse_scale.values);
  mr_host_values_release(&s->excuse_a.values);
  mr_host_values_release(&s->excuse_b.values);
}

static int excused(const mr_excuse *excuse, const sides *s, int64_t i, double difference,
                   double allowed) {
  if (!excuse || !isfinite(difference)) return 0;
  if (!(difference - allowed <= excuse->factor * element(&s->excuse_scale, i))) return 0;
  return holds(element(&s->excuse_a, i), element(&s->excuse_b, i), excuse->gate);
}

static void note(mr_comparison *result, double a, double b, double difference) {
  if (difference > result->max_abs) result->max_abs = difference;
  if (b != 0 && difference / fabs(b) > result->max_rel) result->max_rel = difference / fabs(b);
  if (isfinite(b) && fabs(b) > result->max_b) result->max_b = fabs(b);
  result->dot_ab += a * b;
  result->dot_bb += b * b;
}

static void count_share(mr_comparison *result, double share) {
  int i = 0;
  while (i < MR_SHARE_EDGES && share > mr_share_edges[i]) i++;
  result->shares[i]++;
}

static void compare_all(const sides *s, mr_gate gate, const mr_excuse *excuse,
                        mr_comparison *result) {
  double worst = -1;
  for (int64_t i = 0; i < result->count; i++) {
    double x = element(&s->a, i), y = element(&s->b, i);
    double difference = fabs(x - y), allowed = limit(gate, y);
    if (!isfinite(x) || !isfinite(y)) { /* an infinite b would allow everything */
      difference = INFINITY;
      allowed = 0;
    }
    note(result, x, y, difference);
    double share = allowed > 0 ? difference / allowed : (difference > 0 ? INFINITY : 0);
    count_share(result, share);
    if (share > worst) {
      worst = share;
      result->worst = i;
      result->worst_a = x;
      result->worst_b = y;
    }
    if (difference <= allowed) continue;
    if (excused(excuse, s, i, difference, allowed))
      result->rounding++;
    else
      result->failing++;
  }
}

mr_status mr_tensor_compare_sync(const mr_tensor *a, const mr_tensor *b, mr_gate gate,
                                 const mr_excuse *excuse, mr_comparison *result) {
  MR_TRY(check_pair(a, b));
  if (excuse) {
    MR_TRY(check_pair(excuse->scale, b));
    MR_TRY(check_pair(excuse->a, excuse->b));
    MR_TRY(check_pair(excuse->a, b));
  }
  sides read = {0};
  *result = (mr_comparison){.count = a->count, .worst = -1};
  mr_status status = read_sides(a, b, excuse, &read);
  if (status == MR_OK) compare_all(&read, gate, excuse, result);
  release_sides(&read);
  return status;
}

static mr_status write_sum(mr_tensor *sum, const side *was, const side *x) {
  void *block = NULL;
  int64_t count = sum->count;
  MR_TRY(mr_memory_allocate_raw(mr_tensor_bytes(sum), &block));
  if (sum->dtype == MR_F32) {
    float *to = block;
    const float *a = was->values.data, *b = x->values.data;
    for (int64_t i = 0; i < count; i++) to[i] = a[i] + fabsf(b[i]);
  } else {
    double *to = block;
    const double *a = was->values.data, *b = x->values.data;
    for (int64_t i = 0; i < count; i++) to[i] = a[i] + fabs(b[i]);
  }
  mr_status status = mr_tensor_write(sum, block);
  mr_memory_release(block);
  return status;
}

mr_status mr_tensor_add_absolute_sync(mr_tensor *sum, const mr_tensor *x) {
  MR_TRY(check_pair(sum, x));
  if (sum->dtype == MR_BF16)
    return mr_fail(MR_ERROR_ARGUMENT, "absolute values are summed in f32 or f64, not bf16");
  if (sum->dtype != x->dtype)
    return mr_fail(MR_ERROR_ARGUMENT, "absolute values of %s are added to %s",
                   mr_dtype_name(x->dtype), mr_dtype_name(sum->dtype));
  sides read = {0};
  mr_status status = read_sides(sum, x, NULL, &read);
  if (status == MR_OK) status = write_sum(sum, &read.a, &read.b);
  release_sides(&read);
  return status;
}
