#include "store/safetensors_dtype.h"

#include <stddef.h>
#include <string.h>

static const mr_safetensors_dtype rows[] = {
    {"F32", 32, MR_F32}, {"F64", 64, MR_F64},    {"I32", 32, MR_I32},    {"I64", 64, MR_I64},
    {"BOOL", 8, -1},     {"F4", 4, -1},          {"F6_E2M3", 6, -1},     {"F6_E3M2", 6, -1},
    {"U8", 8, -1},       {"I8", 8, -1},          {"F8_E5M2", 8, -1},     {"F8_E4M3", 8, -1},
    {"F8_E8M0", 8, -1},  {"F8_E4M3FNUZ", 8, -1}, {"F8_E5M2FNUZ", 8, -1}, {"I16", 16, -1},
    {"U16", 16, -1},     {"F16", 16, -1},        {"BF16", 16, MR_BF16},  {"U32", 32, -1},
    {"C64", 64, -1},     {"U64", 64, -1},
};

const mr_safetensors_dtype *mr_safetensors_dtype_find(const char *name) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].name, name) == 0) return &rows[i];
  return NULL;
}

const char *mr_safetensors_dtype_name(mr_dtype dtype) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].dtype == (int)dtype) return rows[i].name;
  return NULL;
}
