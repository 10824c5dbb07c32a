/* Chooses among the variants that were built, at run time. */
#include "kernels/cpu/cpu.h"

#include <cblas.h>
#include <stdio.h>

#include "kernels/cpu/table.h"

typedef struct variant {
  const char *name;
  const mr_kernels *f32, *f64;
} variant;

#ifdef MR_CPU_X86_64

static const variant base = {"base", &mr_cpu_table_f32_base, &mr_cpu_table_f64_base};
static const variant v3 = {"v3", &mr_cpu_table_f32_v3, &mr_cpu_table_f64_v3};
static const variant v4 = {"v4", &mr_cpu_table_f32_v4, &mr_cpu_table_f64_v4};

/* The features are asked for one by one: clang 14 does not know the names of the levels. */
static const variant *best(void) {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2")) {
    return &base;
  }
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl")) {
    return &v3;
  }
  return &v4;
}

#else

static const variant base = {"base", &mr_cpu_table_f32_base, &mr_cpu_table_f64_base};

static const variant *best(void) { return &base; }

#endif

const mr_kernels *mr_cpu_kernels_f32(void) { return best()->f32; }

const mr_kernels *mr_cpu_kernels_f64(void) { return best()->f64; }

const char *mr_cpu_instruction_set(void) { return best()->name; }

const char *mr_cpu_blas(void) {
  static char text[256];
  (void)snprintf(text, sizeof text, "%s, %s", openblas_get_corename(), openblas_get_config());
  return text;
}

void mr_cpu_prepare(void) { openblas_set_num_threads(1); }
