/* bf16 on the processor: conversions only, for files and for what the host makes. It computes in
 * none of its rows. */
#include "kernels/bf16.h"

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/parallel.h"

#define DEFINE(row, From, To, convert)                                                             \
  static int row(const mr_launch *l, int64_t n, const From *x, To *y) {                            \
    _Pragma("omp parallel for num_threads(mr_threads(l, n)) schedule(static)") for (int64_t i = 0; \
                                                                                    i < n; i++)    \
        y[i] = convert(x[i]);                                                                      \
    return 0;                                                                                      \
  }

DEFINE(narrow_f32, float, mr_bf16, mr_bf16_from_f32)
DEFINE(narrow_f64, double, mr_bf16, mr_bf16_from_f64)
DEFINE(widen_f32, mr_bf16, float, mr_bf16_to_f32)
DEFINE(widen_f64, mr_bf16, double, mr_bf16_to_f32)

static int from_f32(const mr_launch *l, int64_t n, const float *x, void *y) {
  return narrow_f32(l, n, x, y);
}

static int from_f64(const mr_launch *l, int64_t n, const double *x, void *y) {
  return narrow_f64(l, n, x, y);
}

static int to_f32(const mr_launch *l, int64_t n, const void *x, float *y) {
  return widen_f32(l, n, x, y);
}

static int to_f64(const mr_launch *l, int64_t n, const void *x, double *y) {
  return widen_f64(l, n, x, y);
}

const mr_kernels *mr_cpu_kernels_bf16(void) {
  static const mr_kernels table = {.name = "cpu bf16",
                                   .from_f32 = from_f32,
                                   .from_f64 = from_f64,
                                   .to_f32 = to_f32,
                                   .to_f64 = to_f64};
  return &table;
}
