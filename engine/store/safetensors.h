/* Files of named tensors in the published safetensors format: 8 bytes of header length (little
 * endian), a JSON header padded with spaces, then the elements of all tensors without holes.
 *
 * Invariant of an open file: everything its header says was checked against the format and the
 * file's length, so that `data` and `bytes` of each entry lie within the mapping. What fails such
 * a check is MR_ERROR_DAMAGED, with the file, the tensor, what was expected and what was found. */
#ifndef MR_STORE_SAFETENSORS_H
#define MR_STORE_SAFETENSORS_H

#include <stdint.h>

#include "base/file.h"
#include "base/status.h"
#include "tensor/tensor.h"

/* An open, mapped file; read-only. */
typedef struct mr_safetensors mr_safetensors;

/* One tensor of an open file, owned by it. */
typedef struct mr_safetensors_entry {
  const char *name;
  const char *dtype_name; /* as published: "F32", "F16", ... */
  int dtype;              /* mr_dtype, or -1 for published ones that marea does not compute with */
  int64_t axes;
  const int64_t *extents;
  int64_t count;    /* elements */
  const void *data; /* in the mapping; foreign files need not align it */
  int64_t bytes;
} mr_safetensors_entry;

typedef struct mr_safetensors_pair {
  const char *key;
  const char *value;
} mr_safetensors_pair;

/* Maps and checks a file. Errors: MR_ERROR_IO, MR_ERROR_DAMAGED, MR_ERROR_MEMORY. */
mr_status mr_safetensors_open(const char *path, mr_safetensors **file);

/* The same over bytes in memory, which must outlive the file; `path` is for messages. */
mr_status mr_safetensors_open_memory(const char *path, const void *data, int64_t bytes,
                                     mr_safetensors **file);

/* NULL does nothing. */
void mr_safetensors_release(mr_safetensors *file);

/* The path it was opened by. */
const char *mr_safetensors_path(const mr_safetensors *file);

/* Tensors in the order of their elements in the file; 0 <= index < count. */
int64_t mr_safetensors_count(const mr_safetensors *file);
const mr_safetensors_entry *mr_safetensors_at(const mr_safetensors *file, int64_t index);

/* The tensor of that name; MR_ERROR_DAMAGED when there is none. */
mr_status mr_safetensors_find(const mr_safetensors *file, const char *name,
                              const mr_safetensors_entry **entry);

/* As find, and MR_ERROR_DAMAGED when marea has no such dtype. */
mr_status mr_safetensors_read(const mr_safetensors *file, const char *name,
                              const mr_safetensors_entry **entry);

/* A new tensor on `device` with a copy of the elements. More than MR_MAX_AXES axes are
 * MR_ERROR_DAMAGED. */
mr_status mr_safetensors_tensor(const mr_safetensors *file, const char *name, mr_device *device,
                                mr_tensor **tensor);

/* Metadata, in the order of the bytes of its keys; 0 <= index < count. */
int64_t mr_safetensors_metadata_count(const mr_safetensors *file);
mr_safetensors_pair mr_safetensors_metadata_at(const mr_safetensors *file, int64_t index);

typedef struct mr_safetensors_item {
  const char *name;
  const mr_tensor *tensor;
} mr_safetensors_item;

/* Writes a file as a whole (base/file.h): the tensors in the order given, metadata sorted by key.
 * Equal arguments give equal bytes. Names and metadata are UTF-8; a name given twice, or
 * "__metadata__", is MR_ERROR_ARGUMENT. */
mr_status mr_safetensors_write(const char *path, int64_t count, const mr_safetensors_item *items,
                               int64_t pairs, const mr_safetensors_pair *metadata);

#endif
