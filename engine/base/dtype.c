#include "base/dtype.h"

#include <string.h>

static const struct {
  const char *name;
  int64_t size;
  int real;
} table[MR_DTYPE_COUNT] = {
    [MR_F32] = {"f32", 4, 1}, [MR_F64] = {"f64", 8, 1},   [MR_I32] = {"i32", 4, 0},
    [MR_I64] = {"i64", 8, 0}, [MR_BF16] = {"bf16", 2, 1},
};

int64_t mr_dtype_size(mr_dtype dtype) { return table[dtype].size; }

const char *mr_dtype_name(mr_dtype dtype) { return table[dtype].name; }

int mr_dtype_find(const char *name) {
  for (int i = 0; i < MR_DTYPE_COUNT; i++)
    if (strcmp(table[i].name, name) == 0) return i;
  return -1;
}

int mr_dtype_is_real(mr_dtype dtype) { return table[dtype].real; }

mr_dtype mr_dtype_wide(mr_dtype dtype) { return dtype == MR_BF16 ? MR_F32 : dtype; }
