/* The dtypes of the safetensors format. For the reader and the writer of this folder. */
#ifndef MR_STORE_SAFETENSORS_DTYPE_H
#define MR_STORE_SAFETENSORS_DTYPE_H

#include <stdint.h>

#include "base/dtype.h"

enum { MR_SAFETENSORS_MAX_HEADER = 100000000 }; /* bytes, of the format */

typedef struct mr_safetensors_dtype {
  const char *name;
  int64_t bits; /* of one element */
  int dtype;    /* mr_dtype or -1 */
} mr_safetensors_dtype;

/* The row of that published name, or NULL. */
const mr_safetensors_dtype *mr_safetensors_dtype_find(const char *name);

/* The published name of one of ours. */
const char *mr_safetensors_dtype_name(mr_dtype dtype);

#endif
