#include "base/small.h"

#include <stdlib.h>

#include "base/keeps.h"

enum { SLAB = 1 << 16, SIZES = MR_SMALL_MOST / MR_SMALL_STEP + 1 };

typedef struct spare {
  struct spare *next;
} spare;

static spare *of_size[SIZES];
/* What is left of the newest slab. Slabs are chained through their first step, so that whoever
 * looks for lost memory finds them. */
static char *slabs, *next;
static size_t left;

static void *cut(size_t bytes) {
  if (left < bytes) {
    char *slab = aligned_alloc(MR_SMALL_STEP, SLAB);
    if (!slab) return NULL;
    *(char **)(void *)slab = slabs;
    slabs = slab;
    next = slab + MR_SMALL_STEP;
    left = SLAB - MR_SMALL_STEP;
  }
  void *block = next;
  next += bytes;
  left -= bytes;
  return block;
}

void *mr_small_take(size_t bytes) {
  if (!MR_KEEPS_BLOCKS) return aligned_alloc(MR_SMALL_STEP, bytes);
  spare *found = of_size[bytes / MR_SMALL_STEP];
  if (!found) return cut(bytes);
  of_size[bytes / MR_SMALL_STEP] = found->next;
  return found;
}

void mr_small_give(void *block, size_t bytes) {
  if (!MR_KEEPS_BLOCKS) {
    free(block);
    return;
  }
  spare *waiting = block;
  waiting->next = of_size[bytes / MR_SMALL_STEP];
  of_size[bytes / MR_SMALL_STEP] = waiting;
}
