#include "base/memory.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/small.h"

enum { ALIGNMENT = 64 };

/* Stands right before every block. */
typedef struct header {
  int64_t bytes;
  int64_t lead; /* from the beginning of the memory to the block */
} header;

_Static_assert(sizeof(header) == MR_MEMORY_LEAD, "records follow their header");

/* All that stands below is written by whoever has the guard, which is held for some dozen
 * instructions: one exclusive access a request, instead of one a counter. */
static atomic_flag guard = ATOMIC_FLAG_INIT;
static _Atomic int64_t live_bytes, peak_bytes, requests, fail_countdown;

static void enter(void) {
  while (atomic_flag_test_and_set_explicit(&guard, memory_order_acquire)) (void)sched_yield();
}

static void leave(void) { atomic_flag_clear_explicit(&guard, memory_order_release); }

static int64_t get(const _Atomic int64_t *number) {
  return atomic_load_explicit(number, memory_order_relaxed);
}

static void set(_Atomic int64_t *number, int64_t value) {
  atomic_store_explicit(number, value, memory_order_relaxed);
}

static void account(int64_t bytes) {
  int64_t live = get(&live_bytes) + bytes;
  set(&live_bytes, live);
  if (live > get(&peak_bytes)) set(&peak_bytes, live);
}

static int told_to_fail(void) {
  int64_t countdown = get(&fail_countdown);
  set(&requests, get(&requests) + 1);
  if (countdown > 0) set(&fail_countdown, countdown - 1);
  return countdown == 1;
}

/* The memory behind a block; where it comes from follows from its size. */
static int64_t total_of(int64_t bytes, int64_t lead) {
  return (bytes + lead + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static char *take_large(int64_t total) {
  if (total >= MR_POOL_LEAST) return mr_pool_take((size_t)total);
  return aligned_alloc(ALIGNMENT, (size_t)total);
}

static void give_large(char *raw, int64_t total) {
  if (total >= MR_POOL_LEAST)
    mr_pool_give(raw, (size_t)total);
  else
    free(raw);
}

/* Counts the request, and the block where there is one. */
static char *take(int64_t bytes, int64_t total) {
  int small = total <= MR_SMALL_MOST;
  char *raw = NULL;
  enter();
  int failing = told_to_fail() || total < 0;
  if (!failing && small) raw = mr_small_take((size_t)total);
  if (raw) account(bytes);
  leave();
  if (failing || small) return raw;
  raw = take_large(total);
  if (raw) mr_memory_count(bytes);
  return raw;
}

static mr_status allocate(int64_t bytes, int64_t lead, int zero, void **block) {
  *block = NULL;
  int possible = bytes >= 0 && bytes <= INT64_MAX - 2 * (int64_t)ALIGNMENT;
  int64_t total = possible ? total_of(bytes, lead) : -1;
  char *raw = take(bytes, total);
  if (!possible)
    return mr_fail(MR_ERROR_MEMORY, "no memory: the size of a block overflows 64 bits");
  if (!raw) return mr_fail(MR_ERROR_MEMORY, "no memory for %lld bytes", (long long)bytes);
  if (zero) memset(raw + lead, 0, (size_t)(total - lead));
  *(header *)(void *)(raw + lead - MR_MEMORY_LEAD) = (header){bytes, lead};
  *block = raw + lead;
  return MR_OK;
}

mr_status mr_memory_allocate(int64_t bytes, void **block) {
  return allocate(bytes, ALIGNMENT, 1, block);
}

mr_status mr_memory_allocate_raw(int64_t bytes, void **block) {
  return allocate(bytes, ALIGNMENT, 0, block);
}

mr_status mr_memory_allocate_record(int64_t bytes, void **block) {
  return allocate(bytes, MR_MEMORY_LEAD, 0, block);
}

mr_status mr_memory_allocate_array(int64_t count, int64_t size, void **block) {
  int64_t bytes = 0;
  *block = NULL;
  if (count < 0 || size < 0 || __builtin_mul_overflow(count, size, &bytes))
    return mr_fail(MR_ERROR_MEMORY, "no memory: %lld items of %lld bytes overflow 64 bits",
                   (long long)count, (long long)size);
  return allocate(bytes, ALIGNMENT, 1, block);
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
  const header h = *(const header *)(const void *)((char *)block - MR_MEMORY_LEAD);
  char *raw = (char *)block - h.lead;
#ifdef MR_DEBUG
  memset(block, 0xDB, (size_t)h.bytes);
#endif
  int64_t total = total_of(h.bytes, h.lead);
  enter();
  set(&live_bytes, get(&live_bytes) - h.bytes);
  if (total <= MR_SMALL_MOST) mr_small_give(raw, (size_t)total);
  leave();
  if (total > MR_SMALL_MOST) give_large(raw, total);
}

void mr_memory_count(int64_t bytes) {
  enter();
  account(bytes);
  leave();
}

mr_memory_use mr_memory_used(void) {
  return (mr_memory_use){get(&live_bytes), get(&peak_bytes), get(&requests)};
}

void mr_memory_reset_peak(void) {
  enter();
  set(&peak_bytes, get(&live_bytes));
  leave();
}

void mr_memory_fail_at(int64_t n) {
  enter();
  set(&fail_countdown, n);
  leave();
}
