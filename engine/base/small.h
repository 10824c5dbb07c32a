/* Small blocks: cut from slabs, by size in steps of 64 bytes, and kept in a list a size when they
 * are given back. A recorded operation takes four, so they cost no search and no header of their
 * own.
 *
 * Invariant: a block lies in one list or is in use; slabs are never given back to the system, so
 * they hold what the small blocks of each size took at their peak. Not for several threads at once:
 * the caller holds a lock. */
#ifndef MR_BASE_SMALL_H
#define MR_BASE_SMALL_H

#include <stddef.h>

enum { MR_SMALL_STEP = 64, MR_SMALL_MOST = 4096 }; /* larger blocks are not for these lists */

/* `bytes`, a multiple of MR_SMALL_STEP up to MR_SMALL_MOST, aligned to 64, contents undefined; NULL
 * when there is no memory. To be given back with the same number. */
void *mr_small_take(size_t bytes);
void mr_small_give(void *block, size_t bytes);

#endif
