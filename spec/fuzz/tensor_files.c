/* Feeds arbitrary bytes to the readers of tensor files and corpora. Whatever they accept is read
 * to its last byte, so that a range the checks let through is seen by the sanitizers. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "store/corpus.h"
#include "store/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

static void read_all(const mr_safetensors *file) {
  for (int64_t i = 0; i < mr_safetensors_count(file); i++) {
    const mr_safetensors_entry *entry = mr_safetensors_at(file, i);
    const unsigned char *bytes = entry->data;
    for (int64_t b = 0; b < entry->bytes; b++) sink += bytes[b];
    for (int64_t a = 0; a < entry->axes; a++) sink += (uint64_t)entry->extents[a];
    sink += strlen(entry->name);
  }
  for (int64_t i = 0; i < mr_safetensors_metadata_count(file); i++) {
    mr_safetensors_pair pair = mr_safetensors_metadata_at(file, i);
    sink += strlen(pair.key) + strlen(pair.value);
  }
}

static void gather(const mr_corpus *corpus, int64_t id, int64_t rows) {
  void *narrow = NULL, *wide = NULL;
  if (mr_memory_allocate_array(rows, 3 * sizeof(int32_t), &narrow) != MR_OK) return;
  if (mr_memory_allocate_array(rows + 2, sizeof(int64_t), &wide) == MR_OK) {
    int32_t *thirds = narrow;
    int64_t *words = wide;
    mr_corpus_batch batch = {.inputs = thirds,
                             .targets = thirds + rows,
                             .positions = thirds + 2 * rows,
                             .sequence_ids = words,
                             .lengths = words + rows,
                             .starts = words + rows + 1};
    if (mr_corpus_gather(corpus, 1, &id, &batch) != MR_OK) __builtin_trap();
  }
  mr_memory_release(narrow);
  mr_memory_release(wide);
}

static void read_corpus(const mr_corpus *corpus) {
  for (int64_t id = 1; id <= mr_corpus_size(corpus); id++) {
    int64_t rows = 0;
    if (mr_corpus_count_rows(corpus, 1, &id, &rows) != MR_OK) __builtin_trap();
    gather(corpus, id, rows);
    sink += (uint64_t)mr_corpus_tokens(corpus, id) + (uint64_t)mr_corpus_split(corpus, id);
  }
  (void)mr_corpus_check_symbols(corpus, 6, 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mr_safetensors *file = NULL;
  mr_corpus *corpus = NULL;
  if (mr_safetensors_open_memory("input", data, (int64_t)size, &file) == MR_OK) {
    read_all(file);
    if (mr_corpus_from(file, &corpus) == MR_OK) read_corpus(corpus);
    mr_corpus_release(corpus);
  }
  if (mr_memory_used().live_bytes != 0) __builtin_trap();
  return 0;
}
