#include "tensor/compare.h"

#include <math.h>
#include <stddef.h>

const double mr_share_edges[MR_SHARE_EDGES] = {0,    1e-8, 1e-7, 1e-6, 1e-5, 1e-4,
                                               1e-3, 1e-2, 1e-1, 1,    10};

static double element(const mr_tensor *tensor, int64_t i) {
  if (tensor->dtype == MR_F32) return (double)((const float *)mr_tensor_data(tensor))[i];
  return ((const double *)mr_tensor_data(tensor))[i];
}

static double limit(mr_gate gate, double b) { return gate.absolute + gate.relative * fabs(b); }

static int holds(double a, double b, mr_gate gate) {
  return isfinite(a) && isfinite(b) && fabs(a - b) <= limit(gate, b);
}

static mr_status check_pair(const mr_tensor *a, const mr_tensor *b) {
  MR_TRY(mr_tensor_readable(a, "the first tensor of a comparison"));
  MR_TRY(mr_tensor_readable(b, "the second tensor of a comparison"));
  if (!mr_dtype_is_real(a->dtype) || !mr_dtype_is_real(b->dtype))
    return mr_fail(MR_ERROR_ARGUMENT, "only f32 and f64 are compared, got %s and %s",
                   mr_dtype_name(a->dtype), mr_dtype_name(b->dtype));
  if (a->count != b->count)
    return mr_fail(MR_ERROR_ARGUMENT, "compared tensors have %lld and %lld elements",
                   (long long)a->count, (long long)b->count);
  return MR_OK;
}

static int excused(const mr_excuse *excuse, int64_t i, double difference, double allowed) {
  if (!excuse || !isfinite(difference)) return 0;
  if (!(difference - allowed <= excuse->factor * element(excuse->scale, i))) return 0;
  return holds(element(excuse->a, i), element(excuse->b, i), excuse->gate);
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

mr_status mr_tensor_compare(const mr_tensor *a, const mr_tensor *b, mr_gate gate,
                            const mr_excuse *excuse, mr_comparison *result) {
  MR_TRY(check_pair(a, b));
  if (excuse) {
    MR_TRY(check_pair(excuse->scale, b));
    MR_TRY(check_pair(excuse->a, excuse->b));
    MR_TRY(check_pair(excuse->a, b));
  }
  *result = (mr_comparison){.count = a->count, .worst = -1};
  double worst = -1;
  for (int64_t i = 0; i < a->count; i++) {
    double x = element(a, i), y = element(b, i);
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
    if (excused(excuse, i, difference, allowed))
      result->rounding++;
    else
      result->failing++;
  }
  return MR_OK;
}

mr_status mr_tensor_add_absolute(mr_tensor *sum, const mr_tensor *x) {
  MR_TRY(check_pair(sum, x));
  if (sum->dtype != x->dtype)
    return mr_fail(MR_ERROR_ARGUMENT, "absolute values of %s are added to %s",
                   mr_dtype_name(x->dtype), mr_dtype_name(sum->dtype));
  mr_tensor_changed(sum);
  if (x->dtype == MR_F32) {
    float *to = mr_tensor_data(sum);
    const float *from = mr_tensor_data(x);
    for (int64_t i = 0; i < x->count; i++) to[i] += fabsf(from[i]);
    return MR_OK;
  }
  double *to = mr_tensor_data(sum);
  const double *from = mr_tensor_data(x);
  for (int64_t i = 0; i < x->count; i++) to[i] += fabs(from[i]);
  return MR_OK;
}
