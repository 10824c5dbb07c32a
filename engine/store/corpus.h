/* Token corpora: a mapped safetensors file, or arrays, from which sequences are copied by id.
 *
 * The file holds S sequences end to end. `inputs` and `targets` (I32 [T]) are their rows,
 * `offsets` (I64 [S+1]) where each begins, from 0 to T; `split` (I32 [S]) says what each is for.
 * Every other tensor is a column: one value per sequence ([S]). Ids count from 1. */
#ifndef MR_STORE_CORPUS_H
#define MR_STORE_CORPUS_H

#include <stdint.h>

#include "base/status.h"
#include "store/safetensors.h"
#include "tensor/targets.h"

typedef struct mr_corpus mr_corpus;

/* Maps the file and checks its form: dtypes, lengths, offsets that never fall. Errors:
 * MR_ERROR_IO, MR_ERROR_DAMAGED, MR_ERROR_MEMORY. */
mr_status mr_corpus_open(const char *path, mr_corpus **corpus);

/* The same from an open file, which the corpus owns from now on, on failure too. */
mr_status mr_corpus_from(mr_safetensors *file, mr_corpus **corpus);

/* The file behind it, owned by the corpus; NULL for one over arrays. */
const mr_safetensors *mr_corpus_file(const mr_corpus *corpus);

/* The same sequences in memory: arrays of the host that outlive the corpus. */
typedef struct mr_corpus_arrays {
  const void *inputs, *targets; /* int32_t [rows] */
  const void *offsets;          /* int64_t [size + 1] */
  const void *split;            /* int32_t [size] */
  int64_t rows, size;
} mr_corpus_arrays;

/* A corpus over arrays. Errors: MR_ERROR_DAMAGED for offsets that fall, MR_ERROR_MEMORY. */
mr_status mr_corpus_over(const mr_corpus_arrays *arrays, mr_corpus **corpus);

/* NULL does nothing. */
void mr_corpus_release(mr_corpus *corpus);

/* Number of sequences S. */
int64_t mr_corpus_size(const mr_corpus *corpus);

/* MR_ERROR_CONTENT unless 1 <= id <= S. The three questions below need such an id. */
mr_status mr_corpus_check_id(const mr_corpus *corpus, int64_t id);
int64_t mr_corpus_length(const mr_corpus *corpus, int64_t id); /* its rows */
int64_t mr_corpus_tokens(const mr_corpus *corpus, int64_t id); /* targets not MR_IGNORED_TARGET */
int32_t mr_corpus_split(const mr_corpus *corpus, int64_t id);

/* MR_ERROR_CONTENT, with sequence and position, when an input is not in [0, vocabulary) or a
 * target is neither in [0, classes) nor MR_IGNORED_TARGET. Reads the whole corpus. */
mr_status mr_corpus_check_symbols(const mr_corpus *corpus, int64_t vocabulary, int64_t classes);

/* Where a microbatch of n sequences is gathered; all arrays are the caller's. */
typedef struct mr_corpus_batch {
  int32_t *inputs, *targets, *positions; /* [rows]; positions count from 0 in each sequence */
  int64_t *sequence_ids;                 /* [rows] */
  int64_t *lengths, *starts;             /* [n]; starts are rows, from 0 */
} mr_corpus_batch;

/* Sets *rows to the sum of the lengths. Errors: MR_ERROR_CONTENT for an unknown id. */
mr_status mr_corpus_count_rows(const mr_corpus *corpus, int64_t n, const int64_t *ids,
                               int64_t *rows);

/* Copies the sequences end to end, in the order of `ids`; `batch` has mr_corpus_count_rows rows.
 * Errors: MR_ERROR_CONTENT for an unknown id. */
mr_status mr_corpus_gather(const mr_corpus *corpus, int64_t n, const int64_t *ids,
                           const mr_corpus_batch *batch);

/* Gives each sequence `length` rows of n * length: its own, then rows of input `pad` and target
 * MR_IGNORED_TARGET whose positions go on; `lengths` are without padding. Errors:
 * MR_ERROR_CONTENT for an unknown id, MR_ERROR_ARGUMENT for a sequence longer than `length`. */
mr_status mr_corpus_gather_padded(const mr_corpus *corpus, int64_t n, const int64_t *ids,
                                  int64_t length, int32_t pad, const mr_corpus_batch *batch);

#endif
