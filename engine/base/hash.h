/* SHA-256, as 64 lower-case hexadecimal digits. */
#ifndef MR_BASE_HASH_H
#define MR_BASE_HASH_H

#include <stdint.h>

#include "base/status.h"

typedef struct mr_hash_text {
  char digits[65]; /* with its NUL */
} mr_hash_text;

/* Of `bytes` bytes. Errors: MR_ERROR_ENVIRONMENT when the library refuses SHA-256. */
mr_status mr_hash_bytes(const void *data, int64_t bytes, mr_hash_text *text);

/* Of a file's content, read in pieces. Errors: MR_ERROR_IO as well. */
mr_status mr_hash_file(const char *path, mr_hash_text *text);

/* Of `bytes` bytes of a file from byte `first` (from 0) on. Errors: MR_ERROR_IO as well, also for a
 * file that ends before. */
mr_status mr_hash_file_range(const char *path, int64_t first, int64_t bytes, mr_hash_text *text);

/* The same in pieces: new, add ..., finish (once), release. */
typedef struct mr_hash mr_hash;
mr_status mr_hash_new(mr_hash **hash);
mr_status mr_hash_add(mr_hash *hash, const void *data, int64_t bytes);
mr_status mr_hash_finish(mr_hash *hash, mr_hash_text *text);
/* NULL does nothing. */
void mr_hash_release(mr_hash *hash);

#endif
