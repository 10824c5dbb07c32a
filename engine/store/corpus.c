#include "store/corpus.h"

#include <string.h>

#include "base/memory.h"

/* The arrays are read with memcpy: a file that others wrote need not align them. */
struct mr_corpus {
  mr_safetensors *file;         /* NULL over arrays */
  const char *inputs, *targets; /* I32 [rows] */
  const char *offsets;          /* I64 [size + 1] */
  const char *split;            /* I32 [size] */
  int64_t size;
  int64_t rows;
};

static int32_t read_i32(const char *array, int64_t index) {
  int32_t value;
  memcpy(&value, array + index * (int64_t)sizeof value, sizeof value);
  return value;
}

static int64_t read_i64(const char *array, int64_t index) {
  int64_t value;
  memcpy(&value, array + index * (int64_t)sizeof value, sizeof value);
  return value;
}

/* What messages begin with. */
static const char *name_of(const mr_corpus *corpus) {
  return corpus->file ? mr_safetensors_path(corpus->file) : "corpus in memory";
}

/* Opening */

static mr_status find_array(const mr_corpus *corpus, const char *name, mr_dtype dtype,
                            const char **data, int64_t *count) {
  const mr_safetensors_entry *entry = NULL;
  MR_TRY(mr_safetensors_read(corpus->file, name, &entry));
  if (entry->dtype != (int)dtype || entry->axes != 1)
    return mr_fail(MR_ERROR_DAMAGED,
                   "%s: corpus tensor '%s': %s with 1 axis expected, %s with %lld found",
                   name_of(corpus), name, mr_dtype_name(dtype),
                   mr_dtype_name((mr_dtype)entry->dtype), (long long)entry->axes);
  *data = entry->data;
  *count = entry->count;
  return MR_OK;
}

static mr_status wrong_count(const mr_corpus *corpus, const char *name, int64_t expected,
                             int64_t found) {
  return mr_fail(MR_ERROR_DAMAGED, "%s: corpus tensor '%.200s': %lld values expected, %lld found",
                 name_of(corpus), name, (long long)expected, (long long)found);
}

static mr_status find_arrays(mr_corpus *corpus) {
  int64_t targets = 0, offsets = 0, split = 0;
  MR_TRY(find_array(corpus, "inputs", MR_I32, &corpus->inputs, &corpus->rows));
  MR_TRY(find_array(corpus, "targets", MR_I32, &corpus->targets, &targets));
  MR_TRY(find_array(corpus, "offsets", MR_I64, &corpus->offsets, &offsets));
  MR_TRY(find_array(corpus, "split", MR_I32, &corpus->split, &split));
  if (targets != corpus->rows) return wrong_count(corpus, "targets", corpus->rows, targets);
  if (offsets != split + 1) return wrong_count(corpus, "offsets", split + 1, offsets);
  corpus->size = split;
  return MR_OK;
}

static mr_status check_offsets(const mr_corpus *corpus) {
  const char *path = name_of(corpus);
  int64_t first = read_i64(corpus->offsets, 0), last = read_i64(corpus->offsets, corpus->size);
  if (first != 0 || last != corpus->rows)
    return mr_fail(MR_ERROR_DAMAGED,
                   "%s: corpus offsets from 0 to %lld expected, from %lld to %lld found", path,
                   (long long)corpus->rows, (long long)first, (long long)last);
  for (int64_t i = 0; i < corpus->size; i++) {
    int64_t begin = read_i64(corpus->offsets, i), end = read_i64(corpus->offsets, i + 1);
    if (begin < 0 || end < begin || end > corpus->rows || end - begin > INT32_MAX)
      return mr_fail(MR_ERROR_DAMAGED,
                     "%s: corpus sequence %lld: rising offsets within %lld rows expected, %lld to "
                     "%lld found",
                     path, (long long)i + 1, (long long)corpus->rows, (long long)begin,
                     (long long)end);
  }
  return MR_OK;
}

static int is_column(const char *name) {
  return strcmp(name, "inputs") != 0 && strcmp(name, "targets") != 0 &&
         strcmp(name, "offsets") != 0 && strcmp(name, "split") != 0;
}

static mr_status check_columns(const mr_corpus *corpus) {
  for (int64_t i = 0; i < mr_safetensors_count(corpus->file); i++) {
    const mr_safetensors_entry *entry = mr_safetensors_at(corpus->file, i);
    if (!is_column(entry->name)) continue;
    if (entry->axes != 1 || entry->count != corpus->size)
      return wrong_count(corpus, entry->name, corpus->size, entry->count);
  }
  return MR_OK;
}

mr_status mr_corpus_from(mr_safetensors *file, mr_corpus **corpus) {
  void *block = NULL;
  *corpus = NULL;
  mr_status status = mr_memory_allocate(sizeof(mr_corpus), &block);
  if (status != MR_OK) {
    mr_safetensors_release(file);
    return status;
  }
  mr_corpus *made = block;
  made->file = file;
  MR_GOTO(find_arrays(made));
  MR_GOTO(check_offsets(made));
  MR_GOTO(check_columns(made));
  *corpus = made;
  return MR_OK;
cleanup:
  mr_corpus_release(made);
  return status;
}

mr_status mr_corpus_over(const mr_corpus_arrays *arrays, mr_corpus **corpus) {
  void *block = NULL;
  *corpus = NULL;
  MR_TRY(mr_memory_allocate(sizeof(mr_corpus), &block));
  mr_corpus *made = block;
  *made = (mr_corpus){.inputs = arrays->inputs,
                      .targets = arrays->targets,
                      .offsets = arrays->offsets,
                      .split = arrays->split,
                      .size = arrays->size,
                      .rows = arrays->rows};
  mr_status status = check_offsets(made);
  if (status == MR_OK)
    *corpus = made;
  else
    mr_corpus_release(made);
  return status;
}

mr_status mr_corpus_open(const char *path, mr_corpus **corpus) {
  mr_safetensors *file = NULL;
  *corpus = NULL;
  MR_TRY(mr_safetensors_open(path, &file));
  return mr_corpus_from(file, corpus);
}

void mr_corpus_release(mr_corpus *corpus) {
  if (!corpus) return;
  mr_safetensors_release(corpus->file);
  mr_memory_release(corpus);
}

/* Asking */

const mr_safetensors *mr_corpus_file(const mr_corpus *corpus) { return corpus->file; }

int64_t mr_corpus_size(const mr_corpus *corpus) { return corpus->size; }

mr_status mr_corpus_check_id(const mr_corpus *corpus, int64_t id) {
  if (id >= 1 && id <= corpus->size) return MR_OK;
  return mr_fail(MR_ERROR_CONTENT,
                 "sequence %lld is not in the corpus: ids from 1 to %lld expected", (long long)id,
                 (long long)corpus->size);
}

/* The first row of a sequence, from 0. */
static int64_t first_row(const mr_corpus *corpus, int64_t id) {
  return read_i64(corpus->offsets, id - 1);
}

int64_t mr_corpus_length(const mr_corpus *corpus, int64_t id) {
  return read_i64(corpus->offsets, id) - read_i64(corpus->offsets, id - 1);
}

int64_t mr_corpus_tokens(const mr_corpus *corpus, int64_t id) {
  int64_t first = first_row(corpus, id), length = mr_corpus_length(corpus, id), tokens = 0;
  for (int64_t i = 0; i < length; i++)
    tokens += read_i32(corpus->targets, first + i) != MR_IGNORED_TARGET;
  return tokens;
}

int32_t mr_corpus_split(const mr_corpus *corpus, int64_t id) {
  return read_i32(corpus->split, id - 1);
}

static mr_status bad_symbol(const char *what, int64_t id, int64_t position, int32_t found,
                            int64_t limit) {
  return mr_fail(MR_ERROR_CONTENT,
                 "sequence %lld, position %lld: %s from 0 to %lld expected, %d found",
                 (long long)id, (long long)position, what, (long long)(limit - 1), (int)found);
}

mr_status mr_corpus_check_symbols(const mr_corpus *corpus, int64_t vocabulary, int64_t classes) {
  for (int64_t id = 1; id <= corpus->size; id++) {
    int64_t first = first_row(corpus, id), length = mr_corpus_length(corpus, id);
    for (int64_t i = 0; i < length; i++) {
      int32_t input = read_i32(corpus->inputs, first + i);
      int32_t target = read_i32(corpus->targets, first + i);
      if (input < 0 || input >= vocabulary) return bad_symbol("an input", id, i, input, vocabulary);
      if (target != MR_IGNORED_TARGET && (target < 0 || target >= classes))
        return bad_symbol("a target", id, i, target, classes);
    }
  }
  return MR_OK;
}

/* Gathering */

mr_status mr_corpus_count_rows(const mr_corpus *corpus, int64_t n, const int64_t *ids,
                               int64_t *rows) {
  *rows = 0;
  for (int64_t i = 0; i < n; i++) {
    MR_TRY(mr_corpus_check_id(corpus, ids[i]));
    if (__builtin_add_overflow(*rows, mr_corpus_length(corpus, ids[i]), rows))
      return mr_fail(MR_ERROR_ARGUMENT, "the rows of %lld sequences overflow 64 bits",
                     (long long)n);
  }
  return MR_OK;
}

/* Copies one sequence to row `start` on, followed by padding up to `length` rows. */
static void copy_sequence(const mr_corpus *corpus, int64_t id, int64_t start, int64_t length,
                          int32_t pad, const mr_corpus_batch *batch) {
  int64_t first = first_row(corpus, id), own = mr_corpus_length(corpus, id);
  int64_t size = (int64_t)sizeof(int32_t);
  memcpy(batch->inputs + start, corpus->inputs + first * size, (size_t)(own * size));
  memcpy(batch->targets + start, corpus->targets + first * size, (size_t)(own * size));
  for (int64_t i = own; i < length; i++) {
    batch->inputs[start + i] = pad;
    batch->targets[start + i] = MR_IGNORED_TARGET;
  }
  for (int64_t i = 0; i < length; i++) {
    batch->positions[start + i] = (int32_t)i;
    batch->sequence_ids[start + i] = id;
  }
}

mr_status mr_corpus_gather(const mr_corpus *corpus, int64_t n, const int64_t *ids,
                           const mr_corpus_batch *batch) {
  int64_t start = 0;
  for (int64_t i = 0; i < n; i++) {
    MR_TRY(mr_corpus_check_id(corpus, ids[i]));
    int64_t length = mr_corpus_length(corpus, ids[i]);
    copy_sequence(corpus, ids[i], start, length, 0, batch);
    batch->lengths[i] = length;
    batch->starts[i] = start;
    start += length;
  }
  return MR_OK;
}

mr_status mr_corpus_gather_padded(const mr_corpus *corpus, int64_t n, const int64_t *ids,
                                  int64_t length, int32_t pad, const mr_corpus_batch *batch) {
  if (length < 0 || length > INT32_MAX)
    return mr_fail(MR_ERROR_ARGUMENT, "a padded length from 0 to %d expected, %lld found",
                   INT32_MAX, (long long)length);
  for (int64_t i = 0; i < n; i++) {
    MR_TRY(mr_corpus_check_id(corpus, ids[i]));
    int64_t own = mr_corpus_length(corpus, ids[i]);
    if (own > length)
      return mr_fail(MR_ERROR_ARGUMENT, "sequence %lld has %lld rows, padded to %lld",
                     (long long)ids[i], (long long)own, (long long)length);
    copy_sequence(corpus, ids[i], i * length, length, pad, batch);
    batch->lengths[i] = own;
    batch->starts[i] = i * length;
  }
  return MR_OK;
}
