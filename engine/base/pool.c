#define _DEFAULT_SOURCE /* madvise */
#include "base/pool.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/keeps.h"

enum { ALIGNMENT = 64, STEPS = 8, CLASSES = 64 * STEPS, SLACK = 8 };

static const size_t HUGE_PAGE = (size_t)2 << 20; /* of x86-64 and of most arm64 */

/* At the beginning of a block that waits: its neighbours by size and by age. */
typedef struct spare {
  struct spare *next, *previous; /* of one class */
  struct spare *older, *newer;
  size_t bytes;
  int class;
} spare;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static spare *of_class[CLASSES], *oldest, *newest;
static size_t used_bytes, spare_bytes, high_bytes;

/* Sizes are rounded up to one of STEPS between two powers of two: at most an eighth is lost. */
static int class_of(size_t bytes, size_t *rounded) {
  int power = 63 - __builtin_clzll((unsigned long long)bytes);
  size_t base = (size_t)1 << power, step = base / STEPS;
  size_t number = (bytes - base + step - 1) / step;
  *rounded = base + number * step;
  return power * STEPS + (int)number; /* STEPS: the first of the next power */
}

static void unlink_spare(spare *s) {
  if (s->previous) s->previous->next = s->next;
  if (!s->previous) of_class[s->class] = s->next;
  if (s->next) s->next->previous = s->previous;
  if (s->older) s->older->newer = s->newer;
  if (!s->older) oldest = s->newer;
  if (s->newer) s->newer->older = s->older;
  if (!s->newer) newest = s->older;
  spare_bytes -= s->bytes;
}

static void link_spare(spare *s) {
  s->previous = NULL;
  s->next = of_class[s->class];
  if (s->next) s->next->previous = s;
  of_class[s->class] = s;
  s->newer = NULL;
  s->older = newest;
  if (newest) newest->newer = s;
  if (!newest) oldest = s;
  newest = s;
  spare_bytes += s->bytes;
}

/* The oldest go, until no more than `limit` bytes are held. The analyzer cannot see that a block
 * stands in the list once, so that nothing there is free. */
static void shrink(size_t limit) {
  while (oldest && used_bytes + spare_bytes > limit) {
    spare *gone = oldest;
    unlink_spare(gone); /* NOLINT(clang-analyzer-unix.Malloc) */
    free(gone);
  }
}

static void *take_spare(int class) {
  spare *found = of_class[class];
  if (found) unlink_spare(found);
  return found;
}

/* Products read large arrays at strides of a page and more: with small pages address translation
 * took a tenth of the time of a large model's step. A system that has no huge pages says so to
 * madvise, and nothing is lost. */
static void *take_from_system(size_t rounded) {
  if (rounded < HUGE_PAGE) return aligned_alloc(ALIGNMENT, rounded);
  void *block = NULL;
  if (posix_memalign(&block, HUGE_PAGE, rounded) != 0) return NULL;
  (void)madvise(block, rounded / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
  return block;
}

static void *take_new(size_t rounded) {
  size_t high = used_bytes > high_bytes ? used_bytes : high_bytes;
  shrink(high + high / SLACK);
  void *block = take_from_system(rounded);
  if (block) return block;
  shrink(0);
  return take_from_system(rounded);
}

void *mr_pool_take(size_t bytes) {
  size_t rounded = 0;
  int class = class_of(bytes, &rounded);
  (void)pthread_mutex_lock(&lock);
  used_bytes += rounded;
  void *block = take_spare(class);
  if (!block) block = take_new(rounded);
  if (!block) used_bytes -= rounded;
  if (used_bytes > high_bytes) high_bytes = used_bytes;
  (void)pthread_mutex_unlock(&lock);
  return block;
}

void mr_pool_give(void *block, size_t bytes) {
  size_t rounded = 0;
  int class = class_of(bytes, &rounded);
  (void)pthread_mutex_lock(&lock);
  used_bytes -= rounded;
  if (MR_KEEPS_BLOCKS) {
    spare *waiting = block;
    *waiting = (spare){.bytes = rounded, .class = class};
    link_spare(waiting);
  } else {
    free(block);
  }
  (void)pthread_mutex_unlock(&lock);
}
