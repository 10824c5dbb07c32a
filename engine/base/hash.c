#define _GNU_SOURCE 1
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include "base/call.h"
#include "base/memory.h"

enum { DIGEST_BYTES = 32, PIECE = 64 * 1024 };
static const int64_t to_the_end = -1;

struct mr_hash {
  EVP_MD_CTX *context;
};

static mr_status refused(void) {
  return mr_fail(MR_ERROR_ENVIRONMENT, "the cryptographic library refuses SHA-256");
}

mr_status mr_hash_new(mr_hash **hash) {
  void *block = NULL;
  *hash = NULL;
  MR_TRY(mr_memory_allocate(sizeof(mr_hash), &block));
  mr_hash *made = block;
  made->context = EVP_MD_CTX_new();
  if (!made->context || EVP_DigestInit_ex(made->context, EVP_sha256(), NULL) != 1) {
    mr_hash_release(made);
    return refused();
  }
  *hash = made;
  return MR_OK;
}

mr_status mr_hash_add(mr_hash *hash, const void *data, int64_t bytes) {
  return EVP_DigestUpdate(hash->context, data, (size_t)bytes) == 1 ? MR_OK : refused();
}

mr_status mr_hash_finish(mr_hash *hash, mr_hash_text *text) {
  static const char digits[] = "0123456789abcdef";
  unsigned char digest[EVP_MAX_MD_SIZE];
  if (EVP_DigestFinal_ex(hash->context, digest, NULL) != 1) return refused();
  char *next = text->digits;
  for (int i = 0; i < DIGEST_BYTES; i++) {
    *next++ = digits[digest[i] >> 4];
    *next++ = digits[digest[i] & 15];
  }
  *next = '\0';
  return MR_OK;
}

void mr_hash_release(mr_hash *hash) {
  if (!hash) return;
  EVP_MD_CTX_free(hash->context);
  mr_memory_release(hash);
}

mr_status mr_hash_bytes(const void *data, int64_t bytes, mr_hash_text *text) {
  mr_hash *hash = NULL;
  MR_TRY(mr_hash_new(&hash));
  mr_status status = mr_hash_add(hash, data, bytes);
  if (status == MR_OK) status = mr_hash_finish(hash, text);
  mr_hash_release(hash);
  return status;
}

/* What of a file is hashed: `bytes` bytes, or all that follow. */
typedef struct range {
  int64_t first, bytes;
} range;

static mr_status add_descriptor(mr_hash *hash, int descriptor, const char *path, range what,
                                void *piece) {
  int64_t rest = what.bytes;
  if (what.first > 0 && MR_CALL(lseek(descriptor, what.first, SEEK_SET)) < 0)
    return mr_call_error("read", path);
  while (rest != 0) {
    size_t wanted = rest > 0 && rest < PIECE ? (size_t)rest : (size_t)PIECE;
    ssize_t got = MR_CALL(read(descriptor, piece, wanted));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return mr_call_error("read", path);
    if (got == 0) break;
    MR_TRY(mr_hash_add(hash, piece, got));
    if (rest > 0) rest -= got;
  }
  if (rest > 0)
    return mr_fail(MR_ERROR_IO, "cannot read %s: it ends %lld bytes too early", path,
                   (long long)rest);
  return MR_OK;
}

static mr_status hash_range(const char *path, range what, mr_hash_text *text) {
  mr_status status = MR_OK;
  mr_hash *hash = NULL;
  void *piece = NULL;
  int descriptor = -1;
  MR_TRY(mr_call_open_regular(path, &descriptor));
  MR_GOTO(mr_memory_allocate_raw(PIECE, &piece));
  MR_GOTO(mr_hash_new(&hash));
  MR_GOTO(add_descriptor(hash, descriptor, path, what, piece));
  MR_GOTO(mr_hash_finish(hash, text));
cleanup:
  mr_hash_release(hash);
  mr_memory_release(piece);
  (void)close(descriptor);
  return status;
}

mr_status mr_hash_file(const char *path, mr_hash_text *text) {
  return hash_range(path, (range){0, to_the_end}, text);
}

mr_status mr_hash_file_range(const char *path, int64_t first, int64_t bytes, mr_hash_text *text) {
  if (first < 0 || bytes < 0)
    return mr_fail(MR_ERROR_ARGUMENT, "a range of a file begins at byte 0 or later, got %lld, %lld",
                   (long long)first, (long long)bytes);
  return hash_range(path, (range){first, bytes}, text);
}
