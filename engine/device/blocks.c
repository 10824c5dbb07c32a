#include "device/blocks.h"

#include <stddef.h>
#include <string.h>

enum { STEPS = 4, CLASSES = 64 * STEPS, LEAST_POWER = 9 };

typedef struct block {
  void *memory;
  int64_t bytes, rounded; /* asked for; taken from the source */
  int class;
  int waiting;
  struct block *next; /* of one class, while waiting */
} block;

struct mr_blocks {
  mr_block_source source;
  block *waiting[CLASSES];
  block **table; /* all blocks by address, open addressing; a power of two, at most half full */
  int64_t slots, count;
  mr_memory_use use;
};

/* --- classes --- */

static int class_of(int64_t bytes, int64_t *rounded) {
  int64_t least = (int64_t)1 << LEAST_POWER;
  if (bytes < least) bytes = least;
  int power = 63 - __builtin_clzll((unsigned long long)bytes);
  int64_t base = (int64_t)1 << power, step = base / STEPS;
  int64_t number = (bytes - base + step - 1) / step;
  *rounded = base + number * step;
  return power * STEPS + (int)number; /* STEPS: the first of the next power */
}

static block *take_waiting(mr_blocks *blocks, int class) {
  for (int i = class; i <= class + STEPS && i < CLASSES; i++) {
    block *found = blocks->waiting[i];
    if (!found) continue;
    blocks->waiting[i] = found->next;
    found->waiting = 0;
    return found;
  }
  return NULL;
}

/* --- by address --- */

static int64_t slot_of(const mr_blocks *blocks, const void *memory) {
  uint64_t hash = ((uint64_t)(uintptr_t)memory >> LEAST_POWER) * UINT64_C(0x9E3779B97F4A7C15);
  int64_t slot = (int64_t)(hash >> 20) & (blocks->slots - 1);
  while (blocks->table[slot] && blocks->table[slot]->memory != memory)
    slot = (slot + 1) & (blocks->slots - 1);
  return slot;
}

static mr_status make_table(mr_blocks *blocks, int64_t slots) {
  void *made = NULL;
  block **old = blocks->table;
  int64_t old_slots = blocks->slots;
  MR_TRY(mr_memory_allocate_array(slots, sizeof(block *), &made));
  blocks->table = made;
  blocks->slots = slots;
  for (int64_t i = 0; i < old_slots; i++)
    if (old[i]) blocks->table[slot_of(blocks, old[i]->memory)] = old[i];
  mr_memory_release(old);
  return MR_OK;
}

/* Returns the waiting blocks to the source and takes them out of the table. */
static mr_status empty_waiting(mr_blocks *blocks) {
  void *made = NULL;
  block **old = blocks->table;
  MR_TRY(mr_memory_allocate_array(blocks->slots, sizeof(block *), &made));
  blocks->table = made;
  memset(blocks->waiting, 0, sizeof blocks->waiting);
  for (int64_t i = 0; i < blocks->slots; i++) {
    block *b = old[i];
    if (!b) continue;
    if (!b->waiting) {
      blocks->table[slot_of(blocks, b->memory)] = b;
      continue;
    }
    blocks->source.give(blocks->source.owner, b->memory);
    blocks->count--;
    mr_memory_release(b);
  }
  mr_memory_release(old);
  return MR_OK;
}

/* --- life --- */

mr_status mr_blocks_new(const mr_block_source *source, mr_blocks **blocks) {
  void *made = NULL;
  *blocks = NULL;
  MR_TRY(mr_memory_allocate(sizeof(mr_blocks), &made));
  mr_blocks *b = made;
  b->source = *source;
  mr_status status = make_table(b, 256);
  if (status != MR_OK) {
    mr_memory_release(b);
    return status;
  }
  *blocks = b;
  return MR_OK;
}

void mr_blocks_release(mr_blocks *blocks) {
  if (!blocks) return;
  for (int64_t i = 0; i < blocks->slots; i++) {
    if (!blocks->table[i]) continue;
    blocks->source.give(blocks->source.owner, blocks->table[i]->memory);
    mr_memory_release(blocks->table[i]);
  }
  mr_memory_release(blocks->table);
  mr_memory_release(blocks);
}

/* --- taking and giving --- */

static mr_status take_from_source(mr_blocks *blocks, int64_t rounded, void **memory) {
  mr_block_source *source = &blocks->source;
  MR_TRY(source->take(source->owner, rounded, memory));
  if (*memory) return MR_OK;
  MR_TRY(empty_waiting(blocks));
  return source->take(source->owner, rounded, memory);
}

static mr_status take_new(mr_blocks *blocks, int class, int64_t rounded, block **taken) {
  void *made = NULL;
  *taken = NULL;
  if (2 * (blocks->count + 1) > blocks->slots) MR_TRY(make_table(blocks, 2 * blocks->slots));
  MR_TRY(mr_memory_allocate(sizeof(block), &made));
  block *b = made;
  mr_status status = take_from_source(blocks, rounded, &b->memory);
  if (status != MR_OK || !b->memory) {
    mr_memory_release(b);
    return status;
  }
  b->rounded = rounded;
  b->class = class;
  blocks->table[slot_of(blocks, b->memory)] = b;
  blocks->count++;
  *taken = b;
  return MR_OK;
}

mr_status mr_blocks_take(mr_blocks *blocks, int64_t bytes, void **memory) {
  int64_t rounded = 0;
  *memory = NULL;
  blocks->use.requests++;
  if (bytes < 0 || bytes > INT64_MAX / 4)
    return mr_fail(MR_ERROR_MEMORY, "no memory: the size of a block overflows 64 bits");
  int class = class_of(bytes, &rounded);
  block *taken = take_waiting(blocks, class);
  if (!taken) MR_TRY(take_new(blocks, class, rounded, &taken));
  if (!taken) return MR_OK;
  taken->bytes = bytes;
  blocks->use.live_bytes += bytes;
  if (blocks->use.live_bytes > blocks->use.peak_bytes)
    blocks->use.peak_bytes = blocks->use.live_bytes;
  *memory = taken->memory;
  return MR_OK;
}

void mr_blocks_give(mr_blocks *blocks, void *memory) {
  block *b = blocks->table[slot_of(blocks, memory)];
  blocks->use.live_bytes -= b->bytes;
  b->waiting = 1;
  b->next = blocks->waiting[b->class];
  blocks->waiting[b->class] = b;
}

mr_memory_use mr_blocks_used(const mr_blocks *blocks) { return blocks->use; }

void mr_blocks_reset_peak(mr_blocks *blocks) { blocks->use.peak_bytes = blocks->use.live_bytes; }
