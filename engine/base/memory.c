#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"

enum { ALIGNMENT = 64 };

/* A block is preceded by one aligned header that keeps its size. */
typedef struct header {
  int64_t bytes;
} header;

static _Atomic int64_t live_bytes, peak_bytes, requests, fail_countdown;

static void account(int64_t bytes) {
  int64_t live = atomic_fetch_add(&live_bytes, bytes) + bytes;
  int64_t peak = atomic_load(&peak_bytes);
  while (live > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, live)) {
  }
}

static int told_to_fail(void) {
  atomic_fetch_add(&requests, 1);
  if (atomic_load(&fail_countdown) <= 0) return 0;
  return atomic_fetch_sub(&fail_countdown, 1) == 1;
}

/* The header and the block, whose size follows from `bytes`; so does where it comes from. */
static int64_t total_of(int64_t bytes) {
  return (bytes + 2 * (int64_t)ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static char *take(int64_t total) {
  if (total >= MR_POOL_LEAST) return mr_pool_take((size_t)total);
  return aligned_alloc(ALIGNMENT, (size_t)total);
}

static void give(char *raw, int64_t total) {
  if (total >= MR_POOL_LEAST)
    mr_pool_give(raw, (size_t)total);
  else
    free(raw);
}

static mr_status allocate(int64_t bytes, int zero, void **block) {
  *block = NULL;
  int failing = told_to_fail();
  if (bytes < 0 || bytes > INT64_MAX - 2 * (int64_t)ALIGNMENT)
    return mr_fail(MR_ERROR_MEMORY, "no memory: the size of a block overflows 64 bits");
  int64_t total = total_of(bytes);
  char *raw = failing ? NULL : take(total);
  if (!raw) return mr_fail(MR_ERROR_MEMORY, "no memory for %lld bytes", (long long)bytes);
  if (zero) memset(raw, 0, (size_t)total);
  ((header *)(void *)raw)->bytes = bytes;
  account(bytes);
  *block = raw + ALIGNMENT;
  return MR_OK;
}

mr_status mr_memory_allocate(int64_t bytes, void **block) { return allocate(bytes, 1, block); }

mr_status mr_memory_allocate_raw(int64_t bytes, void **block) { return allocate(bytes, 0, block); }

mr_status mr_memory_allocate_array(int64_t count, int64_t size, void **block) {
  int64_t bytes = 0;
  *block = NULL;
  if (count < 0 || size < 0 || __builtin_mul_overflow(count, size, &bytes))
    return mr_fail(MR_ERROR_MEMORY, "no memory: %lld items of %lld bytes overflow 64 bits",
                   (long long)count, (long long)size);
  return allocate(bytes, 1, block);
}

mr_status mr_memory_copy_string(const char *text, char **copy) {
  size_t bytes = strlen(text) + 1;
  void *block = NULL;
  *copy = NULL;
  MR_TRY(mr_memory_allocate_raw((int64_t)bytes, &block));
  memcpy(block, text, bytes);
  *copy = block;
  return MR_OK;
}

void mr_memory_release(void *block) {
  if (!block) return;
  char *raw = (char *)block - ALIGNMENT;
  int64_t bytes = ((header *)(void *)raw)->bytes;
#ifdef MR_DEBUG
  memset(block, 0xDB, (size_t)bytes);
#endif
  atomic_fetch_sub(&live_bytes, bytes);
  give(raw, total_of(bytes));
}

void mr_memory_count(int64_t bytes) { account(bytes); }

mr_memory_use mr_memory_used(void) {
  return (mr_memory_use){atomic_load(&live_bytes), atomic_load(&peak_bytes),
                         atomic_load(&requests)};
}

void mr_memory_reset_peak(void) { atomic_store(&peak_bytes, atomic_load(&live_bytes)); }

void mr_memory_fail_at(int64_t n) { atomic_store(&fail_countdown, n); }
