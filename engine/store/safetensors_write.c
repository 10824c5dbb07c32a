/* Writing safetensors files (store/safetensors.h). */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/safetensors.h"
#include "store/safetensors_dtype.h"

enum { LENGTH_BYTES = 8 };

static mr_status no_memory(const char *path) {
  return mr_fail(MR_ERROR_MEMORY, "no memory for the header of %s", path);
}

/* A JSON string; text that is not UTF-8 is MR_ERROR_ARGUMENT. */
static mr_status new_string(const char *path, const char *text, json_t **string) {
  *string = json_string(text);
  if (*string) return MR_OK;
  return mr_fail(MR_ERROR_ARGUMENT, "cannot write %s: '%.200s' is not valid UTF-8", path, text);
}

static int by_key(const void *a, const void *b) {
  return strcmp(((const mr_safetensors_pair *)a)->key, ((const mr_safetensors_pair *)b)->key);
}

/* Adds the pairs to `map` in their order. */
static mr_status fill_metadata(const char *path, int64_t pairs, const mr_safetensors_pair *metadata,
                               json_t *map) {
  for (int64_t i = 0; i < pairs; i++) {
    json_t *value = NULL;
    MR_TRY(new_string(path, metadata[i].value, &value));
    if (json_object_get(map, metadata[i].key)) {
      json_decref(value);
      return mr_fail(MR_ERROR_ARGUMENT, "cannot write %s: metadata '%.200s' is given twice", path,
                     metadata[i].key);
    }
    if (json_object_set_new(map, metadata[i].key, value) != 0)
      return mr_fail(MR_ERROR_ARGUMENT, "cannot write %s: metadata key '%.200s' is not UTF-8", path,
                     metadata[i].key);
  }
  return MR_OK;
}

static mr_status add_metadata(const char *path, int64_t pairs, const mr_safetensors_pair *metadata,
                              json_t *header) {
  void *block = NULL;
  if (pairs == 0) return MR_OK;
  json_t *map = json_object();
  if (!map || json_object_set_new(header, "__metadata__", map) != 0) return no_memory(path);
  MR_TRY(mr_memory_allocate_array(pairs, sizeof *metadata, &block));
  memcpy(block, metadata, (size_t)pairs * sizeof *metadata);
  qsort(block, (size_t)pairs, sizeof *metadata, by_key);
  mr_status status = fill_metadata(path, pairs, block, map);
  mr_memory_release(block);
  return status;
}

/* Describes one tensor whose elements begin at *offset, and moves *offset to their end. */
static mr_status add_item(const char *path, const mr_safetensors_item *item, int64_t *offset,
                          json_t *header) {
  const mr_tensor *tensor = item->tensor;
  int64_t end = 0;
  MR_TRY(mr_tensor_readable(tensor, item->name));
  if (strcmp(item->name, "__metadata__") == 0 || json_object_get(header, item->name))
    return mr_fail(MR_ERROR_ARGUMENT, "cannot write %s: the tensor name '%.200s' is taken", path,
                   item->name);
  if (__builtin_add_overflow(*offset, mr_tensor_bytes(tensor), &end))
    return mr_fail(MR_ERROR_ARGUMENT, "cannot write %s: its size overflows 64 bits", path);
  json_t *shape = json_array();
  for (int i = 0; shape && i < tensor->shape.axes; i++)
    (void)json_array_append_new(shape, json_integer((json_int_t)tensor->shape.extent[i]));
  json_t *info = json_pack("{s:s, s:o, s:[I,I]}", "dtype", mr_safetensors_dtype_name(tensor->dtype),
                           "shape", shape, "data_offsets", (json_int_t)*offset, (json_int_t)end);
  if (!info) return no_memory(path);
  if (json_object_set_new(header, item->name, info) != 0)
    return mr_fail(MR_ERROR_ARGUMENT, "cannot write %s: the tensor name '%.200s' is not UTF-8",
                   path, item->name);
  *offset = end;
  return MR_OK;
}

/* Sets *text to the header with its length in front and its padding behind. */
static mr_status pack_header(const char *path, const json_t *header, char **text, int64_t *bytes) {
  void *block = NULL;
  char *json = json_dumps(header, JSON_COMPACT);
  if (!json) return no_memory(path);
  mr_status status = MR_OK;
  uint64_t used = strlen(json), length = (used + 7) / 8 * 8;
  if (length > MR_SAFETENSORS_MAX_HEADER)
    status = mr_fail(MR_ERROR_ARGUMENT,
                     "cannot write %s: its header of %llu bytes is longer than the format's %d",
                     path, (unsigned long long)length, (int)MR_SAFETENSORS_MAX_HEADER);
  else
    status = mr_memory_allocate_raw((int64_t)length + LENGTH_BYTES, &block);
  if (status == MR_OK) {
    *text = block;
    *bytes = (int64_t)length + LENGTH_BYTES;
    memcpy(*text, &length, LENGTH_BYTES); /* a little-endian machine: safetensors_read.c */
    memcpy(*text + LENGTH_BYTES, json, used);
    memset(*text + LENGTH_BYTES + used, ' ', length - used);
  }
  free(json);
  return status;
}

static mr_status make_header(const char *path, int64_t count, const mr_safetensors_item *items,
                             int64_t pairs, const mr_safetensors_pair *metadata, char **text,
                             int64_t *bytes) {
  mr_status status;
  int64_t offset = 0;
  json_t *header = json_object();
  if (!header) return no_memory(path);
  MR_GOTO(add_metadata(path, pairs, metadata, header));
  for (int64_t i = 0; i < count; i++) MR_GOTO(add_item(path, &items[i], &offset, header));
  MR_GOTO(pack_header(path, header, text, bytes));
cleanup:
  json_decref(header);
  return status;
}

static mr_status add_elements(mr_file_writer *writer, const mr_tensor *tensor) {
  int64_t bytes = mr_tensor_bytes(tensor);
  if (bytes == 0) return MR_OK;
  if (mr_tensor_device(tensor)->host_memory)
    return mr_file_writer_add(writer, mr_tensor_data(tensor), bytes);
  void *host = NULL;
  MR_TRY(mr_memory_allocate_raw(bytes, &host));
  mr_status status = mr_tensor_read_sync(tensor, host);
  if (status == MR_OK) status = mr_file_writer_add(writer, host, bytes);
  mr_memory_release(host);
  return status;
}

mr_status mr_safetensors_write(const char *path, int64_t count, const mr_safetensors_item *items,
                               int64_t pairs, const mr_safetensors_pair *metadata) {
  mr_status status;
  char *header = NULL;
  int64_t bytes = 0;
  mr_file_writer *writer = NULL;
  MR_TRY(make_header(path, count, items, pairs, metadata, &header, &bytes));
  MR_GOTO(mr_file_writer_new(path, &writer));
  MR_GOTO(mr_file_writer_add(writer, header, bytes));
  for (int64_t i = 0; i < count; i++) MR_GOTO(add_elements(writer, items[i].tensor));
  MR_GOTO(mr_file_writer_commit(writer));
cleanup:
  mr_file_writer_release(writer);
  mr_memory_release(header);
  return status;
}
