/* Blocks of a device's memory, kept when they are given back: asking a device for memory, and
 * returning it, makes the host wait for it.
 *
 * Invariants: a block that is given back may be taken again at once, since the device works in
 * order; every block is known by its address until the pool goes. Sizes are rounded up to four
 * steps between powers of two, and a taker gets a block of up to twice its size, so that windows of
 * uneven lengths soon find blocks of theirs. Only when the device has no memory left do blocks
 * that wait return to it. */
#ifndef MR_DEVICE_BLOCKS_H
#define MR_DEVICE_BLOCKS_H

#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

typedef struct mr_blocks mr_blocks;

/* Where blocks come from. */
typedef struct mr_block_source {
  void *owner;
  /* Sets *memory to NULL, and returns MR_OK, when there is none left. */
  mr_status (*take)(void *owner, int64_t bytes, void **memory);
  void (*give)(void *owner, void *memory);
} mr_block_source;

mr_status mr_blocks_new(const mr_block_source *source, mr_blocks **blocks);
/* Gives all blocks back to the source, those in use too. NULL does nothing. */
void mr_blocks_release(mr_blocks *blocks);

/* A block of at least `bytes`; 0 bytes give a valid, unique one. *memory is NULL, with MR_OK, when
 * the source has none left even after all waiting blocks were returned to it. Errors:
 * MR_ERROR_MEMORY for host memory, and those of the source. */
mr_status mr_blocks_take(mr_blocks *blocks, int64_t bytes, void **memory);
/* `memory` is a block in use. */
void mr_blocks_give(mr_blocks *blocks, void *memory);

/* Bytes that were asked for and are in use, their peak, and requests. */
mr_memory_use mr_blocks_used(const mr_blocks *blocks);
void mr_blocks_reset_peak(mr_blocks *blocks);

#endif
