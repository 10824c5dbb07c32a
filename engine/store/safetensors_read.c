/* Opening and reading safetensors files (store/safetensors.h).
 *
 * The JSON library's tree of the header lives as long as the file: names, dtype names and metadata
 * point into it. Its memory is the one part of a file that is not accounted. */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/safetensors.h"
#include "store/safetensors_dtype.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensor files are read in place, which needs a little-endian machine"
#endif

enum { LENGTH_BYTES = 8, SHAPE_TEXT = 160 };

struct mr_safetensors {
  char *path;
  mr_mapping *mapping; /* NULL for a file in memory */
  const char *data;
  int64_t bytes;
  const char *buffer; /* the elements: data + 8 + header length */
  int64_t buffer_bytes;
  json_t *header;
  mr_safetensors_entry *entries;
  int64_t count;
  int64_t *extents; /* of all entries, one after another */
  mr_safetensors_pair *metadata;
  int64_t pairs;
};

/* "[2,3]", cut off with "..." where it is long. */
static const char *shape_text(const mr_safetensors_entry *entry, char text[SHAPE_TEXT]) {
  size_t used = 1;
  text[0] = '[';
  for (int64_t i = 0; i < entry->axes; i++) {
    if (used > SHAPE_TEXT - 30) {
      used += (size_t)snprintf(text + used, SHAPE_TEXT - used, ",...");
      break;
    }
    used += (size_t)snprintf(text + used, SHAPE_TEXT - used, i ? ",%lld" : "%lld",
                             (long long)entry->extents[i]);
  }
  (void)snprintf(text + used, SHAPE_TEXT - used, "]");
  return text;
}

static mr_status damaged(const mr_safetensors *file, const char *name, const char *what) {
  return mr_fail(MR_ERROR_DAMAGED, "%s: tensor '%.200s': %s", file->path, name, what);
}

/* The header */

/* Splits the file into header and buffer and parses the header. */
static mr_status read_header(mr_safetensors *file) {
  uint64_t length = 0;
  if (file->bytes < LENGTH_BYTES)
    return mr_fail(MR_ERROR_DAMAGED,
                   "%s: no safetensors file: expected at least 8 bytes, found %lld", file->path,
                   (long long)file->bytes);
  memcpy(&length, file->data, LENGTH_BYTES);
  if (length > MR_SAFETENSORS_MAX_HEADER)
    return mr_fail(MR_ERROR_DAMAGED,
                   "%s: no safetensors file: a header of at most %d bytes expected, %llu found",
                   file->path, (int)MR_SAFETENSORS_MAX_HEADER, (unsigned long long)length);
  if ((int64_t)length > file->bytes - LENGTH_BYTES)
    return mr_fail(MR_ERROR_DAMAGED, "%s: truncated: a header of %llu bytes expected, %lld found",
                   file->path, (unsigned long long)length, (long long)(file->bytes - LENGTH_BYTES));
  const char *text = file->data + LENGTH_BYTES;
  file->buffer = text + length;
  file->buffer_bytes = file->bytes - LENGTH_BYTES - (int64_t)length;
  if (length == 0 || text[0] != '{')
    return mr_fail(MR_ERROR_DAMAGED, "%s: no safetensors file: its header is no JSON object",
                   file->path);
  json_error_t error;
  file->header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
  if (!file->header)
    return mr_fail(MR_ERROR_DAMAGED, "%s: damaged header: %s, at its byte %d", file->path,
                   error.text, error.position);
  return MR_OK;
}

static int by_key(const void *a, const void *b) {
  return strcmp(((const mr_safetensors_pair *)a)->key, ((const mr_safetensors_pair *)b)->key);
}

static mr_status read_metadata(mr_safetensors *file) {
  json_t *map = json_object_get(file->header, "__metadata__"), *value = NULL;
  const char *key = NULL;
  void *block = NULL;
  if (!map) return MR_OK;
  if (!json_is_object(map))
    return mr_fail(MR_ERROR_DAMAGED, "%s: damaged header: __metadata__ is no object", file->path);
  MR_TRY(mr_memory_allocate_array((int64_t)json_object_size(map), sizeof *file->metadata, &block));
  file->metadata = block;
  json_object_foreach(map, key, value) {
    if (!json_is_string(value))
      return mr_fail(MR_ERROR_DAMAGED, "%s: damaged header: metadata '%.200s' is no string",
                     file->path, key);
    file->metadata[file->pairs++] = (mr_safetensors_pair){key, json_string_value(value)};
  }
  qsort(file->metadata, (size_t)file->pairs, sizeof *file->metadata, by_key);
  return MR_OK;
}

/* One tensor of the header */

static mr_status read_dtype(const mr_safetensors *file, json_t *info, mr_safetensors_entry *entry,
                            int64_t *bits) {
  const char *name = json_string_value(json_object_get(info, "dtype"));
  if (!name) return damaged(file, entry->name, "its dtype is missing");
  const mr_safetensors_dtype *dtype = mr_safetensors_dtype_find(name);
  if (!dtype)
    return mr_fail(MR_ERROR_DAMAGED, "%s: tensor '%.200s': unknown dtype '%.100s'", file->path,
                   entry->name, name);
  entry->dtype_name = dtype->name;
  entry->dtype = dtype->dtype;
  *bits = dtype->bits;
  return MR_OK;
}

/* Reads a non-negative integer. */
static int read_extent(json_t *value, int64_t *number) {
  *number = json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
  return *number >= 0;
}

static mr_status read_shape(const mr_safetensors *file, json_t *info, mr_safetensors_entry *entry,
                            int64_t *extents) {
  json_t *shape = json_object_get(info, "shape");
  if (!json_is_array(shape)) return damaged(file, entry->name, "its shape is missing");
  entry->axes = (int64_t)json_array_size(shape);
  entry->extents = extents;
  entry->count = 1;
  for (int64_t i = 0; i < entry->axes; i++) {
    if (!read_extent(json_array_get(shape, (size_t)i), &extents[i]))
      return damaged(file, entry->name, "its shape holds something else than counts");
    if (__builtin_mul_overflow(entry->count, extents[i], &entry->count))
      return damaged(file, entry->name, "the number of its elements overflows 64 bits");
  }
  return MR_OK;
}

/* Where the elements lie; `bits` of one element. Neighbours are compared later. */
static mr_status read_offsets(const mr_safetensors *file, json_t *info, int64_t bits,
                              mr_safetensors_entry *entry) {
  json_t *offsets = json_object_get(info, "data_offsets");
  int64_t begin = 0, end = 0, all_bits = 0;
  char text[SHAPE_TEXT];
  if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
      !read_extent(json_array_get(offsets, 0), &begin) ||
      !read_extent(json_array_get(offsets, 1), &end))
    return damaged(file, entry->name, "two data_offsets, begin and end, expected");
  if (begin > end || end > file->buffer_bytes)
    return mr_fail(MR_ERROR_DAMAGED,
                   "%s: tensor '%.200s': offsets within the file's %lld bytes of elements "
                   "expected, %lld to %lld found",
                   file->path, entry->name, (long long)file->buffer_bytes, (long long)begin,
                   (long long)end);
  if (__builtin_mul_overflow(entry->count, bits, &all_bits))
    return damaged(file, entry->name, "the number of its bytes overflows 64 bits");
  if (all_bits % CHAR_BIT != 0 || all_bits / CHAR_BIT != end - begin)
    return mr_fail(MR_ERROR_DAMAGED,
                   "%s: tensor '%.200s': %lld bits expected for %s %s, %lld bytes found",
                   file->path, entry->name, (long long)all_bits, entry->dtype_name,
                   shape_text(entry, text), (long long)(end - begin));
  entry->data = file->buffer + begin;
  entry->bytes = end - begin;
  return MR_OK;
}

/* All tensors */

/* Makes room for one entry per tensor and for all their extents. */
static mr_status allocate_entries(mr_safetensors *file) {
  json_t *info = NULL;
  const char *name = NULL;
  int64_t extents = 0, tensors = 0;
  void *block = NULL;
  json_object_foreach(file->header, name, info) {
    extents += (int64_t)json_array_size(json_object_get(info, "shape")); /* 0 for non-arrays */
    tensors++;
  }
  MR_TRY(mr_memory_allocate_array(tensors, sizeof *file->entries, &block));
  file->entries = block;
  MR_TRY(mr_memory_allocate_array(extents, sizeof *file->extents, &block));
  file->extents = block;
  return MR_OK;
}

static mr_status read_entries(mr_safetensors *file) {
  json_t *info = NULL;
  const char *name = NULL;
  int64_t *extents = file->extents;
  json_object_foreach(file->header, name, info) {
    if (strcmp(name, "__metadata__") == 0) continue;
    mr_safetensors_entry *entry = &file->entries[file->count];
    int64_t bits = 0;
    entry->name = name;
    if (!json_is_object(info)) return damaged(file, name, "its description is no object");
    MR_TRY(read_dtype(file, info, entry, &bits));
    MR_TRY(read_shape(file, info, entry, extents));
    MR_TRY(read_offsets(file, info, bits, entry));
    extents += entry->axes;
    file->count++;
  }
  return MR_OK;
}

/* By place in the buffer, empty tensors first; then by name, so that the order is one. */
static int by_place(const void *first, const void *second) {
  const mr_safetensors_entry *a = first, *b = second;
  if (a->data != b->data) return (const char *)a->data < (const char *)b->data ? -1 : 1;
  if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
  return strcmp(a->name, b->name);
}

/* Every byte of the buffer belongs to one tensor. */
static mr_status check_places(mr_safetensors *file) {
  if (file->count > 1) qsort(file->entries, (size_t)file->count, sizeof *file->entries, by_place);
  int64_t expected = 0;
  for (int64_t i = 0; i < file->count; i++) {
    const mr_safetensors_entry *entry = &file->entries[i];
    int64_t begin = (const char *)entry->data - file->buffer;
    if (begin != expected)
      return mr_fail(MR_ERROR_DAMAGED, "%s: tensor '%.200s' %s: begin at %lld expected, %lld found",
                     file->path, entry->name,
                     begin < expected ? "overlaps another" : "follows a gap", (long long)expected,
                     (long long)begin);
    expected += entry->bytes;
  }
  if (expected == file->buffer_bytes) return MR_OK;
  return mr_fail(MR_ERROR_DAMAGED, "%s: %lld bytes of elements expected, %lld found", file->path,
                 (long long)expected, (long long)file->buffer_bytes);
}

static mr_status read_all(mr_safetensors *file) {
  MR_TRY(read_header(file));
  MR_TRY(read_metadata(file));
  MR_TRY(allocate_entries(file));
  MR_TRY(read_entries(file));
  return check_places(file);
}

/* Opening */

static mr_status open_file(const char *path, mr_mapping *mapping, const void *data, int64_t bytes,
                           mr_safetensors **file) {
  mr_status status;
  void *block = NULL;
  MR_TRY(mr_memory_allocate(sizeof(mr_safetensors), &block));
  mr_safetensors *made = block;
  made->data = data;
  made->bytes = bytes;
  made->mapping = mapping ? mr_mapping_retain(mapping) : NULL;
  MR_GOTO(mr_memory_copy_string(path, &made->path));
  MR_GOTO(read_all(made));
  *file = made;
  return MR_OK;
cleanup:
  mr_safetensors_release(made);
  return status;
}

mr_status mr_safetensors_open_memory(const char *path, const void *data, int64_t bytes,
                                     mr_safetensors **file) {
  *file = NULL;
  return open_file(path, NULL, data, bytes, file);
}

mr_status mr_safetensors_open(const char *path, mr_safetensors **file) {
  mr_mapping *mapping = NULL;
  *file = NULL;
  MR_TRY(mr_mapping_open(path, &mapping));
  mr_status status =
      open_file(path, mapping, mr_mapping_data(mapping), mr_mapping_bytes(mapping), file);
  mr_mapping_release(mapping);
  return status;
}

void mr_safetensors_release(mr_safetensors *file) {
  if (!file) return;
  mr_memory_release(file->metadata);
  mr_memory_release(file->extents);
  mr_memory_release(file->entries);
  json_decref(file->header);
  mr_mapping_release(file->mapping);
  mr_memory_release(file->path);
  mr_memory_release(file);
}

/* Asking */

const char *mr_safetensors_path(const mr_safetensors *file) { return file->path; }

int64_t mr_safetensors_count(const mr_safetensors *file) { return file->count; }

const mr_safetensors_entry *mr_safetensors_at(const mr_safetensors *file, int64_t index) {
  return &file->entries[index];
}

int64_t mr_safetensors_metadata_count(const mr_safetensors *file) { return file->pairs; }

mr_safetensors_pair mr_safetensors_metadata_at(const mr_safetensors *file, int64_t index) {
  return file->metadata[index];
}

mr_status mr_safetensors_find(const mr_safetensors *file, const char *name,
                              const mr_safetensors_entry **entry) {
  for (int64_t i = 0; i < file->count; i++) {
    if (strcmp(file->entries[i].name, name) != 0) continue;
    *entry = &file->entries[i];
    return MR_OK;
  }
  *entry = NULL;
  return mr_fail(MR_ERROR_DAMAGED, "%s: tensor '%.200s' expected, none of its %lld has this name",
                 file->path, name, (long long)file->count);
}

mr_status mr_safetensors_read(const mr_safetensors *file, const char *name,
                              const mr_safetensors_entry **entry) {
  MR_TRY(mr_safetensors_find(file, name, entry));
  if ((*entry)->dtype >= 0) return MR_OK;
  return mr_fail(MR_ERROR_DAMAGED, "%s: tensor '%.200s': F32, F64, I32 or I64 expected, %s found",
                 file->path, name, (*entry)->dtype_name);
}

mr_status mr_safetensors_tensor(const mr_safetensors *file, const char *name, mr_device *device,
                                mr_tensor **tensor) {
  const mr_safetensors_entry *entry = NULL;
  *tensor = NULL;
  MR_TRY(mr_safetensors_read(file, name, &entry));
  if (entry->axes > MR_MAX_AXES)
    return mr_fail(MR_ERROR_DAMAGED, "%s: tensor '%.200s': at most %d axes expected, %lld found",
                   file->path, name, (int)MR_MAX_AXES, (long long)entry->axes);
  mr_shape shape = {.axes = (int)entry->axes};
  for (int i = 0; i < shape.axes; i++) shape.extent[i] = entry->extents[i];
  mr_tensor *made = NULL;
  MR_TRY(mr_tensor_new_raw(device, (mr_dtype)entry->dtype, &shape, &made));
  mr_status status = mr_tensor_write(made, entry->data);
  if (status == MR_OK)
    *tensor = made;
  else
    mr_tensor_release(made);
  return status;
}
