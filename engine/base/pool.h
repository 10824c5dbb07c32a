/* Large blocks that were given back wait here for the next request of about their size, so that a
 * training loop takes no page from the system in its steady state.
 *
 * Invariant: blocks in use and blocks waiting together never take more than the blocks in use did
 * at some moment, so keeping blocks costs no memory beyond the peak. */
#ifndef MR_BASE_POOL_H
#define MR_BASE_POOL_H

#include <stddef.h>

enum { MR_POOL_LEAST = 1 << 16 }; /* smaller blocks are not for the pool */

/* A block of at least `bytes` (which are at least MR_POOL_LEAST), aligned to 64, its contents
 * undefined; NULL when there is no memory. To be given back with the same number. Any thread. */
void *mr_pool_take(size_t bytes);
void mr_pool_give(void *block, size_t bytes);

#endif
